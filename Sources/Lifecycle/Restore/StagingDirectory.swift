internal import SystemIO

/// The directory in which a restore makes everything before any of it gets its place: in the directory
/// that it works in, so on the same file system, and closed to everybody else.
///
/// It is locked while its run lives. What a run left behind that was killed is known by its name and
/// by its free lock, and is removed by the next run in the same directory.
struct StagingDirectory: ~Copyable {
  private let parent: Directory
  private let name: ByteString
  private let lock: FileLock
  /// Where the entries are made, under the names that they are to have.
  let tree: Directory
  /// What a new file in it is like: whose it is, and which permissions it gets of all.
  let fresh: FileStatus

  private static let prefix = Array(".sandboxctl-restore-".utf8)
  private static let attempts = 8

  /// How many files and directories it has of its own: itself, the lock and the directory of the entries.
  static let entries: UInt64 = 3

  /// Whether there is such a directory, of this run or another.
  static func isAny(in parent: borrowing Directory) -> Bool {
    (try? parent.names().contains { $0.bytes.starts(with: prefix) }) ?? false
  }

  /// Whether a name is that of such a directory, or of the program's own directory on a device.
  static func isOurs(_ name: ByteString) -> Bool {
    name.bytes.starts(with: prefix) || name == ".sandboxctl"
  }

  /// Makes the directory, having removed those that nobody works in any more.
  static func make(in parent: borrowing Directory) throws(SystemError) -> StagingDirectory {
    try? removeAbandoned(in: parent)
    for _ in 1...attempts {
      let name = ByteString(prefix + Array(Host.randomHex(bytes: 8).utf8))
      try parent.createDirectory(name, permissions: 0o700)
      do throws(SystemError) {
        // Without a lock, somebody took the directory for abandoned before it was locked.
        guard let lock = try lock(parent.directory(name)) else { continue }
        return try StagingDirectory(parent.duplicate(), name, lock)
      } catch {
        try? parent.removeTree(name)
        throw error
      }
    }
    throw SystemError.replaced(parent.path)
  }

  private init(
    _ parent: consuming Directory, _ name: ByteString, _ lock: consuming FileLock
  ) throws(SystemError) {
    let directory = try parent.directory(name)
    try Self.close(directory)
    let fresh = try Self.probe(directory)
    let tree = try directory.makeDirectory("tree", permissions: 0o700)
    self.fresh = fresh
    self.tree = tree
    self.name = name
    self.lock = lock
    self.parent = parent
  }

  /// Removes it with all that is still in it.
  borrowing func remove() throws(SystemError) { try parent.removeTree(name) }

  private static let lockName: ByteString = "lock"

  /// The lock of a staging directory; nothing when somebody else has it or removes the directory.
  private static func lock(_ directory: borrowing Directory) throws(SystemError) -> FileLock? {
    do throws(SystemError) {
      let lock = try FileLock(lockName, in: directory)
      if try directory.statusIfPresent(lockName) == nil { return nil }
      return lock
    } catch {
      if error.isBusy || error.isMissing { return nil }
      throw error
    }
  }

  /// Takes away what it inherited and would hand on: an ACL, a group, and flags.
  private static func close(_ directory: borrowing Directory) throws(SystemError) {
    for name in try directory.attributes.names() where name.isAccessList {
      try directory.attributes.remove(name)
    }
    try directory.setOwner(user: .max, group: Host.groupID)
    try directory.setPermissions(0o700)
    try? directory.clearFlags()
  }

  private static func probe(_ directory: borrowing Directory) throws(SystemError) -> FileStatus {
    let status = try directory.create("probe", permissions: 0o777).status()
    try directory.remove("probe")
    return status
  }

  /// Moves it to the trash, with what came back into it.
  borrowing func keep(in trash: TrashDirectory) throws(SystemError) {
    try trash.keep(name, of: parent, at: [], leaving: true, as: Self.keptName)
  }

  private static let keptName: ByteString = "staged"

  /// Removes those in which nobody works any more, as far as that is possible; throws the first error.
  static func removeAbandoned(in parent: borrowing Directory) throws(SystemError) {
    try forEachAbandoned(in: parent) { name, _ throws(SystemError) in try parent.removeTree(name) }
  }

  /// Moves those in which nobody works any more to a trash, which is made where there is one.
  static func keepAbandoned(
    in parent: borrowing Directory,
    _ makeTrash: (borrowing Directory) throws(SystemError) -> TrashDirectory
  ) throws(SystemError) {
    try forEachAbandoned(in: parent) { name, directory throws(SystemError) in
      try makeTrash(directory).keep(name, of: parent, at: [], leaving: true, as: keptName)
    }
  }

  private static func forEachAbandoned(
    in parent: borrowing Directory,
    _ body: (ByteString, borrowing Directory) throws(SystemError) -> Void
  ) throws(SystemError) {
    var failure: SystemError?
    for name in try parent.names() where name.bytes.starts(with: prefix) {
      var isAbandoned = false
      do throws(SystemError) {
        let directory = try parent.directory(name)
        let lock = try FileLock(lockName, in: directory)
        isAbandoned = true
        try body(name, directory)
        withExtendedLifetime(lock) {}
      } catch {
        // Where somebody works, or what is somebody else's, is let be.
        if !isAbandoned, error.isBusy || error.isMissing || error.isRefused { continue }
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }
}

extension ByteString {
  /// Whether an extended attribute of that name is a POSIX ACL (`acl(5)`).
  var isAccessList: Bool {
    self == "system.posix_acl_access" || self == "system.posix_acl_default"
  }
}
