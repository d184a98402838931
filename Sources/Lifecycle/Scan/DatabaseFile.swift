internal import Codecs
internal import DatabaseCapture
internal import SystemIO

/// Whether a file is a SQLite database's: the database, its log, journal or shared memory
/// (docs/design.md, databases).
enum DatabaseFile {
  private static let companions = [DatabaseMember.log, .sharedMemory, .journal].map(\.suffix)

  /// Looks at a file's name, at what lies beside it, and last at its first bytes. The buffer is used
  /// for the names.
  static func isDatabase(
    _ name: Span<UInt8>, size: UInt64, in directory: borrowing Directory, _ buffer: inout NameBuffer
  ) -> Bool {
    let (log, magic) = (companions[0], DatabaseHead.bytes)
    buffer.set(name)
    for number in 0..<companions.count {
      let suffix = companions[number]
      guard name.count > suffix.count, name.ends(with: suffix.span) else { continue }
      buffer.shorten(to: name.count - suffix.count)
      return isFile(buffer, directory)
    }
    buffer.extend(log.span)
    if isFile(buffer, directory) { return true }
    buffer.shorten(to: name.count)
    guard size >= UInt64(magic.count) else { return false }
    return (try? directory.begins(buffer, with: magic.span)) ?? false
  }

  private static func isFile(_ name: borrowing NameBuffer, _ directory: borrowing Directory) -> Bool
  {
    ((try? directory.statusIfPresent(name)) ?? nil)?.kind == .file
  }
}
