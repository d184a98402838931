/// Numbers as bytes, the least significant first.
public enum LittleEndian {
  /// The number at a place, which need not be a multiple of anything; its bytes must be there.
  @inlinable
  public static func integer<Value: FixedWidthInteger & BitwiseCopyable>(
    _ bytes: Span<UInt8>, at place: Int, as: Value.Type = Value.self
  ) -> Value {
    precondition(place >= 0 && place <= bytes.count - MemoryLayout<Value>.size)
    return Value(
      littleEndian: unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: place, as: Value.self))
  }

  /// The four bytes at a place as a number; they must be there.
  static func word32(_ bytes: Span<UInt8>, at place: Int) -> UInt32 { integer(bytes, at: place) }

  /// Appends a number's bytes.
  @inlinable
  public static func append(_ value: some FixedWidthInteger, to buffer: inout [UInt8]) {
    unsafe withUnsafeBytes(of: value.littleEndian) { unsafe buffer.append(contentsOf: $0) }
  }
}
