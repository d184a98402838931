internal import Codecs
internal import DatabaseCapture
internal import SystemIO

/// Detects the files of a SQLite database: the database, its log, journal or shared memory
/// (docs/design.md, databases).
enum DatabaseFile {
  private static let companions = [DatabaseMember.log, .sharedMemory, .journal].map(\.suffix)

  /// Whether a file belongs to a database, by its name, then by the files beside it, and last by
  /// its first bytes. The names are built in `buffer`.
  static func isDatabase(
    _ name: Span<UInt8>, size: UInt64, in directory: borrowing Directory, _ buffer: inout NameBuffer
  ) -> Bool {
    let (log, magic) = (companions[0], DatabaseHead.bytes)
    buffer.set(name)
    for number in 0..<companions.count {
      let suffix = companions[number]
      guard name.count > suffix.count, name.hasSuffix(suffix.span) else { continue }
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
