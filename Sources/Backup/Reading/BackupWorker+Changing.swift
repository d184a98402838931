internal import ArchiveStore
internal import DeviceScan
internal import SystemIO

extension BackupWorker {
  /// The number of times a changing file is read before the last version read is stored.
  private static let readings = 3

  /// Stores or holds a file's content; reads it again if it changed meanwhile.
  ///
  /// - Parameter isMapped: whether a program may be writing to the file through mapped memory.
  borrowing func readUntilUnchanged(
    _ file: borrowing Descriptor, at path: ByteString, of directory: DirectoryContext,
    mode: ReadMode, isMapped: Bool
  ) throws -> (content: ReadContent, status: FileStatus, wasUnchanged: Bool) {
    var before = try file.status()
    guard before.kind == .file else { throw SystemError.replaced(path) }
    var readings = 0
    while true {
      if isMapped { before = try MappedDatabases.status(before, beforeReading: file) }
      let content = try read(file, at: path, of: directory, status: before, mode: mode)
      let after = try file.status()
      let isSame = before.isSameContent(as: after)
      readings += 1
      if isSame || readings == Self.readings { return (content, after, isSame) }
      before = after
    }
  }
}

/// Databases to which their programs write through mapped memory, without a log of their own: Realm
/// (`X.realm` beside `X.realm.lock`) and LMDB (`data.mdb` beside `lock.mdb`, or `X.mdb` beside
/// `X.mdb-lock`). They are stored as ordinary files, of which a copy is usable if no transaction
/// was committed while it was read.
///
/// The first write to a page of mapped memory changes the modification time, further writes only
/// after the page was written to the disk, which can take half a minute. Writing all pages before
/// the file is read makes each later change visible.
enum MappedDatabases {
  private static let names: [(suffix: [UInt8], lock: ByteString)] = [
    (Array(".realm".utf8), ".lock"), (Array(".mdb".utf8), "-lock"), (Array(".lmdb".utf8), "-lock"),
  ]
  private static let environment: (data: ByteString, lock: ByteString) = ("data.mdb", "lock.mdb")

  /// Whether a file is such a database, by its name and that of the lock beside it, which a program
  /// creates when it opens the database.
  static func contain(_ name: ByteString, beside directory: DirectoryContext) -> Bool {
    for (suffix, lock) in names where name.bytes.suffix(suffix.count).elementsEqual(suffix) {
      if directory.child(name.concatenating(lock)) != nil { return true }
      return name == environment.data && directory.child(environment.lock) != nil
    }
    return false
  }

  /// The interval in seconds within which two writes may have the same modification time.
  private static let clockStep = 0.02

  /// Writes the changed pages of a file and returns its status from before, so that a change
  /// meanwhile shows. If this fails, the file is read like any other.
  static func status(
    _ status: FileStatus, beforeReading file: borrowing Descriptor
  ) throws(SystemError) -> FileStatus {
    var status = status
    let age = Host.now().since(status.modified)
    if abs(age) < clockStep {
      Host.pause(seconds: clockStep - age)
      status = try file.status()
    }
    do throws(SystemError) { try file.sync() } catch {}
    return status
  }
}
