internal import Codecs

// Integers in the tables of the format are little-endian and unaligned.

extension [UInt8] {
  /// Appends an integer in little-endian byte order.
  mutating func append<Value: FixedWidthInteger>(littleEndian value: Value) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}

extension RawSpan {
  /// Returns the integer at an offset whose bounds the caller has checked.
  @inline(__always)
  func integer<Value: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as: Value.Type) -> Value
  {
    Value(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self))
  }

  @inline(__always)
  func byte(at offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
}
