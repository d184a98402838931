internal import Codecs

/// Numbers in SQLite's files, which are big-endian.
enum BigEndian {
  /// Returns the 32-bit number at an offset, whose bytes must exist.
  static func word(_ bytes: Span<UInt8>, _ place: Int) -> UInt32 {
    LittleEndian.integer(bytes, at: place, as: UInt32.self).byteSwapped
  }
}

/// The valid page sizes of SQLite (fileformat2, section 1.3.2).
enum PageSize {
  /// Returns a number as a page size in bytes, or nil if it is not a valid size.
  static func checked(_ bytes: UInt32) -> Int? {
    guard (512...65_536).contains(bytes), bytes.nonzeroBitCount == 1 else { return nil }
    return Int(bytes)
  }
}

extension DatabaseUnit {
  /// The number of bytes that `pageSize(head:)` needs.
  package static let headSize = 18

  /// Returns the page size of a database in bytes from its first bytes, or nil if they are not a
  /// valid header, as in an encrypted database.
  package static func pageSize(head: Span<UInt8>) -> Int? {
    guard head.count >= headSize, DatabaseHead.begins(head) else { return nil }
    let size = UInt32(head[16]) << 8 | UInt32(head[17])
    // 65536 does not fit into 16 bits and is stored as 1.
    return PageSize.checked(size == 1 ? 65_536 : size)
  }
}
