extension [UInt8] {
  /// Appends the bytes of a span.
  package mutating func append(_ span: Span<UInt8>) {
    unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }
}
