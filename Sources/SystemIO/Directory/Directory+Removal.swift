internal import Glibc

extension Directory {
  /// Removes a child and everything below it, of any depth. Symbolic links are not followed.
  /// Another mount is an error and stays. Continues after failures and throws the first one at the
  /// end; entries that no longer exist are not failures.
  public func removeTree(_ name: ByteString) throws(SystemError) {
    _ = try removeTree(name, watch: RemovalWatch())
  }

  /// Removes a tree that may be large. Returns false if it was stopped before the end.
  public func removeTree(
    _ name: ByteString, watch: RemovalWatch
  ) throws(SystemError) -> Bool {
    if try removeUnlessDirectory(name, watch) { return true }
    return try duplicate().removeDirectoryTree(name, watch)
  }

  /// Removes a tree as `removeTree` does, and closes this directory. At the limit of open files
  /// three descriptors are enough, that of this directory included.
  public consuming func removeTreeAndClose(
    _ name: ByteString, watch: RemovalWatch
  ) throws(SystemError) -> Bool {
    if try removeUnlessDirectory(name, watch) { return true }
    return try removeDirectoryTree(name, watch)
  }

  /// Removes a child that is not a directory. Returns false if it is one.
  private func removeUnlessDirectory(
    _ name: ByteString, _ watch: RemovalWatch
  ) throws(SystemError) -> Bool {
    guard try status(name).kind != .directory else { return false }
    try remove(name)
    watch.didRemove()
    return true
  }

  private consuming func removeDirectoryTree(
    _ name: ByteString, _ watch: RemovalWatch
  ) throws(SystemError) -> Bool {
    var removal = Removal(root: self, watch)
    removal.run(name)
    if let failure = removal.failure { throw failure }
    return !removal.isStopped
  }
}

/// Controls the removal of a tree: counts removed entries, can stop it, and can make directories
/// writable.
public struct RemovalWatch {
  /// Called for each removed entry that is not a directory.
  public var didRemove: () -> Void
  /// Whether to stop. Called before each entry.
  public var isStopping: () -> Bool
  /// Whether a directory that its owner may not change is made writable, if this user is the owner:
  /// for a tree that is no longer used.
  public let makesWritable: Bool

  /// Creates a watch that does nothing by default.
  public init(
    makesWritable: Bool = false, didRemove: @escaping () -> Void = {},
    isStopping: @escaping () -> Bool = { false }
  ) {
    self.makesWritable = makesWritable
    self.didRemove = didRemove
    self.isStopping = isStopping
  }
}

extension Directory {
  /// The removal of a tree. Each directory is listed once and its files are removed at once; the
  /// directory itself is removed after its subdirectories.
  private struct Removal: ~Copyable {
    private enum Step {
      case empty(ByteString, depth: Int)
      case remove(ByteString, depth: Int)
    }

    private var cursor: DirectoryCursor
    private var steps: [Step] = []
    private let watch: RemovalWatch
    private(set) var failure: SystemError?
    private(set) var isStopped = false

    init(root: consuming Directory, _ watch: RemovalWatch) {
      cursor = DirectoryCursor(root: root)
      self.watch = watch
    }

    mutating func run(_ name: ByteString) {
      steps = [.empty(name, depth: 0)]
      while !isStopped, let step = steps.popLast() {
        do throws(SystemError) {
          try perform(step)
        } catch {
          record(error)
        }
      }
    }

    private mutating func perform(_ step: Step) throws(SystemError) {
      switch step {
      case .empty(let name, let depth):
        try cursor.ascend(to: depth)
        try cursor.descend(name)
        try prepare()
        steps.append(.remove(name, depth: depth))
        try emptyDirectory(depth: depth + 1)
      case .remove(let name, let depth):
        try cursor.ascend(to: depth)
        try cursor.withDirectory { directory throws(SystemError) in
          try directory.removeDirectory(name)
        }
      }
    }

    /// Refuses a mount point as the current directory, and makes another one writable by its owner.
    private func prepare() throws(SystemError) {
      let makesWritable = watch.makesWritable
      let isMountPoint = try cursor.withDirectory { directory throws(SystemError) in
        let status = try directory.status()
        if status.isMountPoint { return true }
        let permissions = status.permissions | 0o700
        if makesWritable, permissions != status.permissions {
          // Another user's directory is left unchanged, and its entries fail.
          try? directory.setPermissions(permissions)
        }
        return false
      }
      if isMountPoint { throw SystemError(.remove, cursor.path, number: EBUSY) }
    }

    private mutating func emptyDirectory(depth: Int) throws(SystemError) {
      let watch = watch
      let (directories, failures, isStopped) = try cursor.withDirectory {
        directory throws(SystemError) in
        var (directories, failures): ([Step], [SystemError]) = ([], [])
        for (name, isDirectory) in try directory.childrenListedOnce() {
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
      for error in failures { record(error) }
    }

    private mutating func record(_ error: SystemError) {
      if !error.isMissing { failure = failure ?? error }
    }
  }
}
