/// The header of every unencrypted SQLite database (fileformat2, section 1.3.1).
public enum DatabaseHead {
  /// The bytes of the header.
  public static let bytes = Array("SQLite format 3\0".utf8)

  /// Whether content begins with the header.
  public static func begins(_ file: Span<UInt8>) -> Bool {
    guard file.count >= bytes.count else { return false }
    for index in bytes.indices where file[index] != bytes[index] { return false }
    return true
  }
}
