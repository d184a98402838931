internal import Codecs

// Integers in the format's tables are little-endian and not aligned.

extension [UInt8] {
  /// Appends an integer's bytes, the lowest first.
  mutating func append<Value: FixedWidthInteger>(littleEndian value: Value) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }

  /// Reads an integer at an offset that was checked to have room for it.
  @inline(__always)
  func integer<Value: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as: Value.Type) -> Value
  {
    withUnsafeBytes {
      Value(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Value.self))
    }
  }

  /// Reads a hash at an offset that was checked to have room for it.
  func digest(at offset: Int) -> Digest {
    guard let digest = Digest(span.extracting(offset..<(offset + Digest.byteCount))) else {
      preconditionFailure("32 bytes are a digest")
    }
    return digest
  }

  /// Appends the bytes of a span.
  mutating func append(_ span: Span<UInt8>) {
    span.withUnsafeBufferPointer { append(contentsOf: $0) }
  }
}
