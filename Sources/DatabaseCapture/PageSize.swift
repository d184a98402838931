internal import Codecs

/// Numbers of SQLite's files, which are big-endian.
enum BigEndian {
  /// The number of 32 bits at a place; its bytes must be there.
  static func word(_ bytes: Span<UInt8>, _ place: Int) -> UInt32 {
    LittleEndian.integer(bytes, at: place, as: UInt32.self).byteSwapped
  }
}

/// The sizes that SQLite's pages may have (fileformat2, section 1.3.2).
enum PageSize {
  /// A number as a size in bytes; nil when no page can have it.
  static func checked(_ bytes: UInt32) -> Int? {
    guard (512...65_536).contains(bytes), bytes.nonzeroBitCount == 1 else { return nil }
    return Int(bytes)
  }
}

extension DatabaseUnit {
  /// How many bytes of a database `pageSize(head:)` needs.
  public static let headSize = 18

  /// The size of a database's pages in bytes by its first bytes; nil when these are no header, as in
  /// an encrypted database, or name no size.
  public static func pageSize(head: Span<UInt8>) -> Int? {
    guard head.count >= headSize, DatabaseHead.begins(head) else { return nil }
    let size = UInt32(head[16]) << 8 | UInt32(head[17])
    // 65536 does not fit.
    return PageSize.checked(size == 1 ? 65_536 : size)
  }
}
