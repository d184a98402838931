// Whole files in order, for outputs that know no holes.

extension RepositoryReader {
  /// Writes all bytes of a file in order, with holes as zeros. Each blob is verified before its
  /// bytes are written. The watch counts the bytes.
  public func writeBytes(
    of content: Content, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    func give(_ bytes: Span<UInt8>) throws {
      try watch?.checkCancellation()
      try sink(bytes)
      watch?.counters.didHandle(bytes: UInt64(bytes.count))
    }
    var end: UInt64 = 0
    try readContent(content) { offset, bytes in
      try Self.writeZeros(offset - end, to: give)
      try give(bytes)
      end = offset + UInt64(bytes.count)
    }
    try Self.writeZeros(content.size - end, to: give)
  }

  private static func writeZeros(
    _ count: UInt64, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    guard count > 0 else { return }
    let zeros = [UInt8](repeating: 0, count: Int(min(count, 64 << 10)))
    var left = count
    while left > 0 {
      let piece = Int(min(left, UInt64(zeros.count)))
      try sink(zeros.span.extracting(0..<piece))
      left -= UInt64(piece)
    }
  }
}
