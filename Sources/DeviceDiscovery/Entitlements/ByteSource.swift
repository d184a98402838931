package import SystemIO

/// Random access to bytes: of a file, a compressed file or a test.
package protocol ByteSource: ~Copyable {
  /// Reads `count` bytes at `offset`. Returns fewer bytes only at the end.
  func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8]
}

extension Descriptor: ByteSource {}

extension [UInt8] {
  /// Returns the unsigned number in the four bytes at `offset`, or nil beyond the end.
  func number32(at offset: Int, bigEndian: Bool = false) -> UInt32? {
    number(at: offset, size: 4, bigEndian: bigEndian).map { UInt32(truncatingIfNeeded: $0) }
  }

  /// Returns the unsigned number in the eight bytes at `offset`, or nil beyond the end.
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
