/// Little-endian numbers.
public enum LittleEndian {
  /// Returns the number at an offset, which need not be aligned. Its bytes must exist.
  @inlinable public static func integer<Value: FixedWidthInteger & BitwiseCopyable>(
    _ bytes: Span<UInt8>, at offset: Int, as: Value.Type = Value.self
  ) -> Value {
    precondition(offset >= 0 && offset <= bytes.count - MemoryLayout<Value>.size)
    return Value(
      littleEndian: unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self))
  }

  /// Returns the 32-bit number at an offset. Its bytes must exist.
  static func word32(_ bytes: Span<UInt8>, at offset: Int) -> UInt32 { integer(bytes, at: offset) }

  /// Appends the bytes of a number.
  @inlinable public static func append(_ value: some FixedWidthInteger, to buffer: inout [UInt8]) {
    unsafe withUnsafeBytes(of: value.littleEndian) { unsafe buffer.append(contentsOf: $0) }
  }
}
