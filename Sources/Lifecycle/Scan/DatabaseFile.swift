internal import SystemIO

/// Whether a file is a SQLite database's: the database, its log, journal or shared memory
/// (docs/design.md, databases).
enum DatabaseFile {
  static let companions = ["-wal", "-shm", "-journal"].map { Array($0.utf8) }
  private static let magic = Array("SQLite format 3\0".utf8)

  /// Looks at a file's name, at what lies beside it, and last at its first bytes.
  static func isDatabase(_ name: ByteString, in folder: borrowing Folder) -> Bool {
    for suffix in companions where name.bytes.count > suffix.count && name.bytes.ends(with: suffix)
    {
      let base = ByteString(name.bytes.dropLast(suffix.count))
      return isFile(base, folder)
    }
    if isFile(ByteString(Array(name.bytes) + companions[0]), folder) { return true }
    guard let file = try? folder.file(name),
      let beginning = try? file.read(count: magic.count, at: 0)
    else { return false }
    return beginning == magic
  }

  private static func isFile(_ name: ByteString, _ folder: borrowing Folder) -> Bool {
    ((try? folder.statusIfPresent(name)) ?? nil)?.kind == .file
  }
}

extension Collection<UInt8> where Self: BidirectionalCollection {
  func ends(with suffix: [UInt8]) -> Bool { self.suffix(suffix.count).elementsEqual(suffix) }
}
