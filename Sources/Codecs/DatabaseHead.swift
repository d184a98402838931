/// The first bytes of every SQLite database that is not encrypted (fileformat2, section 1.3.1).
public enum DatabaseHead {
  /// The bytes themselves.
  public static let bytes = Array("SQLite format 3\0".utf8)

  /// Whether a file is a database by its first bytes, of which there may be more.
  public static func begins(_ file: Span<UInt8>) -> Bool {
    guard file.count >= bytes.count else { return false }
    for index in bytes.indices where file[index] != bytes[index] { return false }
    return true
  }
}
