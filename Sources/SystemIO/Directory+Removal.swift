internal import Glibc

extension Directory {
  /// Removes a child with all that is below it, of any depth, by directory handles: never through a
  /// link, and never into another mount, which is an error and stays. Goes on after a failure and
  /// throws the first one at the end; what is gone already is none.
  public func removeTree(_ name: ByteString) throws(SystemError) {
    _ = try removeTree(name, watch: RemovalWatch())
  }

  /// The same for a tree that may be large; false where it was asked to stop before all was gone.
  public func removeTree(
    _ name: ByteString, watch: RemovalWatch
  ) throws(SystemError) -> Bool {
    guard try status(name).kind == .directory else {
      try remove(name)
      watch.didRemove()
      return true
    }
    var removal = Removal(root: try duplicate(), watch)
    removal.run(name)
    if let failure = removal.failure { throw failure }
    return !removal.isStopped
  }
}

/// Follows the removal of a tree: counts what is gone, and ends it early.
public struct RemovalWatch {
  /// Called for each entry that is gone but directories.
  public var didRemove: () -> Void
  /// Asked before each entry: whether to stop.
  public var isStopping: () -> Bool

  /// Makes a watch; without arguments one that does nothing.
  public init(
    didRemove: @escaping () -> Void = {}, isStopping: @escaping () -> Bool = { false }
  ) {
    self.didRemove = didRemove
    self.isStopping = isStopping
  }
}

/// The removal of a tree: each directory is listed once, its files go at once, it goes itself when what
/// is below it is gone.
private struct Removal: ~Copyable {
  private enum Step {
    case empty(ByteString, depth: Int)
    case remove(ByteString, depth: Int)
  }

  private var ladder: DirectoryLadder
  private var steps: [Step] = []
  private let watch: RemovalWatch
  private(set) var failure: SystemError?
  private(set) var isStopped = false

  init(root: consuming Directory, _ watch: RemovalWatch) {
    ladder = DirectoryLadder(root: root)
    self.watch = watch
  }

  mutating func run(_ name: ByteString) {
    steps = [.empty(name, depth: 0)]
    while !isStopped, let step = steps.popLast() {
      do throws(SystemError) {
        try take(step)
      } catch {
        note(error)
      }
    }
  }

  private mutating func take(_ step: Step) throws(SystemError) {
    switch step {
    case .empty(let name, let depth):
      try ladder.ascend(to: depth)
      try ladder.descend(name)
      try refuseMount()
      steps.append(.remove(name, depth: depth))
      try emptyDirectoryContext(depth: depth + 1)
    case .remove(let name, let depth):
      try ladder.ascend(to: depth)
      try ladder.withDirectory { directory throws(SystemError) in
        try directory.removeDirectory(name)
      }
    }
  }

  private func refuseMount() throws(SystemError) {
    let isMountPoint = try ladder.withDirectory { directory throws(SystemError) in
      try directory.status().isMountPoint
    }
    if isMountPoint { throw SystemError(.remove, ladder.path, number: EBUSY) }
  }

  private mutating func emptyDirectoryContext(depth: Int) throws(SystemError) {
    let watch = watch
    let (directories, failures, isStopped) = try ladder.withDirectory {
      directory throws(SystemError) in
      var (directories, failures): ([Step], [SystemError]) = ([], [])
      for (name, isDirectory) in try directory.children() {
        if watch.isStopping() { return (directories, failures, true) }
        if isDirectory {
          directories.append(.empty(name, depth: depth))
          continue
        }
        do throws(SystemError) {
          try directory.remove(name)
          watch.didRemove()
        } catch { failures.append(error) }
      }
      return (directories, failures, false)
    }
    steps += directories
    self.isStopped = isStopped
    for error in failures { note(error) }
  }

  private mutating func note(_ error: SystemError) {
    if !error.isMissing { failure = failure ?? error }
  }
}
