public import SystemIO

/// Bytes that are read at given places: a file's, a packed file's or a test's.
public protocol ByteSource: ~Copyable {
  /// Reads `count` bytes at `offset`; gives fewer only where the bytes end.
  func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8]
}

extension Descriptor: ByteSource {}

extension [UInt8] {
  /// The unsigned number in the four bytes at `offset`; nil beyond the end.
  func number32(at offset: Int, bigEndian: Bool = false) -> UInt32? {
    number(at: offset, size: 4, bigEndian: bigEndian).map { UInt32(truncatingIfNeeded: $0) }
  }

  /// The unsigned number in the eight bytes at `offset`; nil beyond the end.
  func number64(at offset: Int, bigEndian: Bool = false) -> UInt64? {
    number(at: offset, size: 8, bigEndian: bigEndian)
  }

  private func number(at offset: Int, size: Int, bigEndian: Bool) -> UInt64? {
    guard offset >= 0, offset <= count - size else { return nil }
    let field = self[offset..<(offset + size)]
    return bigEndian
      ? field.reduce(0) { $0 << 8 | UInt64($1) }
      : field.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}
