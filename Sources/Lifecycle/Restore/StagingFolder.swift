internal import SystemIO

/// The folder in which a restore makes everything before any of it gets its place: in the folder
/// that it works in, so on the same file system, and closed to everybody else.
///
/// It is locked while its run lives. What a run left behind that was killed is known by its name and
/// by its free lock, and is removed by the next run in the same folder.
struct StagingFolder: ~Copyable {
  private let parent: Folder
  private let name: ByteString
  private let lock: FileLock
  /// Where the entries are made, under the names that they are to have.
  let tree: Folder
  /// What a new file in it is like: whose it is, and which permissions it gets of all.
  let fresh: FileStatus

  private static let prefix = Array(".sandboxctl-restore-".utf8)
  private static let attempts = 8

  /// How many files and folders it has of its own: itself, the lock and the folder of the entries.
  static let entries: UInt64 = 3

  /// Whether there is such a folder, of this run or another.
  static func isAny(in parent: borrowing Folder) -> Bool {
    (try? parent.names().contains { $0.bytes.starts(with: prefix) }) ?? false
  }

  /// Whether a name is that of such a folder, or of the program's own folder on a device.
  static func isOurs(_ name: ByteString) -> Bool {
    name.bytes.starts(with: prefix) || name == ".sandboxctl"
  }

  /// Makes the folder, having removed those that nobody works in any more.
  static func make(in parent: borrowing Folder) throws(SystemError) -> StagingFolder {
    try? removeAbandoned(in: parent)
    for _ in 1...attempts {
      let name = ByteString(prefix + Array(Host.randomHex(bytes: 8).utf8))
      try parent.createFolder(name, permissions: 0o700)
      do throws(SystemError) {
        // Without a lock, somebody took the folder for abandoned before it was locked.
        guard let lock = try lock(parent.folder(name)) else { continue }
        return try StagingFolder(parent.duplicate(), name, lock)
      } catch {
        try? parent.removeTree(name)
        throw error
      }
    }
    throw SystemError.replaced(parent.path)
  }

  private init(
    _ parent: consuming Folder, _ name: ByteString, _ lock: consuming FileLock
  ) throws(SystemError) {
    let folder = try parent.folder(name)
    try Self.close(folder)
    let fresh = try Self.probe(folder)
    let tree = try folder.makeFolder("tree", permissions: 0o700)
    self.fresh = fresh
    self.tree = tree
    self.name = name
    self.lock = lock
    self.parent = parent
  }

  /// Removes it with all that is still in it.
  borrowing func remove() throws(SystemError) { try parent.removeTree(name) }

  private static let lockName: ByteString = "lock"

  /// The lock of a staging folder; nothing when somebody else has it or removes the folder.
  private static func lock(_ folder: borrowing Folder) throws(SystemError) -> FileLock? {
    do throws(SystemError) {
      let lock = try FileLock(lockName, in: folder)
      if try folder.statusIfPresent(lockName) == nil { return nil }
      return lock
    } catch {
      if error.isBusy || error.isMissing { return nil }
      throw error
    }
  }

  /// Takes away what it inherited and would hand on: an ACL, a group, and flags.
  private static func close(_ folder: borrowing Folder) throws(SystemError) {
    for name in try folder.attributes.names() where name.isAccessList {
      try folder.attributes.remove(name)
    }
    try folder.setOwner(user: .max, group: Host.groupID)
    try folder.setPermissions(0o700)
    try? folder.clearFlags()
  }

  private static func probe(_ folder: borrowing Folder) throws(SystemError) -> FileStatus {
    let status = try folder.create("probe", permissions: 0o777).status()
    try folder.remove("probe")
    return status
  }

  /// Moves it to the trash, with what came back into it.
  borrowing func keep(in trash: TrashPlace) throws(SystemError) {
    try trash.keep(name, of: parent, at: [], leaving: true, as: Self.keptName)
  }

  private static let keptName: ByteString = "staged"

  /// Removes those in which nobody works any more, as far as that is possible; throws the first error.
  static func removeAbandoned(in parent: borrowing Folder) throws(SystemError) {
    try forEachAbandoned(in: parent) { name, _ throws(SystemError) in try parent.removeTree(name) }
  }

  /// Moves those in which nobody works any more to a trash, which is made where there is one.
  static func keepAbandoned(
    in parent: borrowing Folder,
    _ makeTrash: (borrowing Folder) throws(SystemError) -> TrashPlace
  ) throws(SystemError) {
    try forEachAbandoned(in: parent) { name, folder throws(SystemError) in
      try makeTrash(folder).keep(name, of: parent, at: [], leaving: true, as: keptName)
    }
  }

  private static func forEachAbandoned(
    in parent: borrowing Folder,
    _ body: (ByteString, borrowing Folder) throws(SystemError) -> Void
  ) throws(SystemError) {
    var failure: SystemError?
    for name in try parent.names() where name.bytes.starts(with: prefix) {
      var isAbandoned = false
      do throws(SystemError) {
        let folder = try parent.folder(name)
        let lock = try FileLock(lockName, in: folder)
        isAbandoned = true
        try body(name, folder)
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
