internal import Glibc

extension Folder {
  /// Removes a child with all that is below it, of any depth, by folder handles: never through a
  /// link, and never into another mount, which is an error and stays. Goes on after a failure and
  /// throws the first one at the end; what is gone already is none.
  public func removeTree(_ name: ByteString) throws(SystemError) {
    guard try status(name).kind == .directory else { return try remove(name) }
    var removal = Removal(root: try duplicate())
    removal.run(name)
    if let failure = removal.failure { throw failure }
  }
}

/// The removal of a tree: each folder is listed once, its files go at once, it goes itself when what
/// is below it is gone.
private struct Removal: ~Copyable {
  private enum Step {
    case empty(ByteString, depth: Int)
    case remove(ByteString, depth: Int)
  }

  private var ladder: FolderLadder
  private var steps: [Step] = []
  private(set) var failure: SystemError?

  init(root: consuming Folder) { ladder = FolderLadder(root: root) }

  mutating func run(_ name: ByteString) {
    steps = [.empty(name, depth: 0)]
    while let step = steps.popLast() {
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
      try emptyFolderInHand(depth: depth + 1)
    case .remove(let name, let depth):
      try ladder.ascend(to: depth)
      try ladder.withFolder { folder throws(SystemError) in try folder.removeFolder(name) }
    }
  }

  private func refuseMount() throws(SystemError) {
    let isMountPoint = try ladder.withFolder { folder throws(SystemError) in
      try folder.status().isMountPoint
    }
    if isMountPoint { throw SystemError(.remove, ladder.path, number: EBUSY) }
  }

  private mutating func emptyFolderInHand(depth: Int) throws(SystemError) {
    let (folders, failures) = try ladder.withFolder { folder throws(SystemError) in
      var (folders, failures): ([Step], [SystemError]) = ([], [])
      for (name, isFolder) in try folder.children() {
        if isFolder {
          folders.append(.empty(name, depth: depth))
          continue
        }
        do throws(SystemError) { try folder.remove(name) } catch { failures.append(error) }
      }
      return (folders, failures)
    }
    steps += folders
    for error in failures { note(error) }
  }

  private mutating func note(_ error: SystemError) {
    if !error.isMissing { failure = failure ?? error }
  }
}
