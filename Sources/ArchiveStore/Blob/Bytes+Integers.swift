internal import Codecs

// Integers in the format's tables are little-endian and not aligned.

extension [UInt8] {
  /// Appends an integer's bytes, the lowest first.
  mutating func append<Value: FixedWidthInteger>(littleEndian value: Value) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}

extension RawSpan {
  /// Reads an integer at an offset that was checked to have room for it.
  @inline(__always)
  func integer<Value: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as: Value.Type) -> Value
  {
    Value(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self))
  }

  @inline(__always)
  func byte(at offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
}
