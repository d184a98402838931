/// Numbers as bytes, the least significant first.
enum LittleEndian {
  /// The four bytes at a place as a number; they must be there.
  static func word32(_ bytes: Span<UInt8>, at place: Int) -> UInt32 {
    UInt32(bytes[place]) | UInt32(bytes[place + 1]) << 8 | UInt32(bytes[place + 2]) << 16
      | UInt32(bytes[place + 3]) << 24
  }

  /// Appends a number's bytes.
  static func append(_ value: some FixedWidthInteger, to buffer: inout [UInt8]) {
    for shift in stride(from: 0, to: value.bitWidth, by: 8) {
      buffer.append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }
}
