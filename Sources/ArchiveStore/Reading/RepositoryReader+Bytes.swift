// Whole files in order, for outputs that are written from the start to the end.

extension RepositoryReader {
  /// Writes all bytes of a file in order, with holes as zeros. Each blob is verified before its
  /// bytes are written. The watch counts the bytes.
  public func writeBytes(
    of content: Content, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    try writeRuns(of: content) { hole, bytes in
      if hole > 0 { return false }
      try sink(bytes)
      return true
    }
  }

  /// Passes all bytes of a file in order as runs: the length of a hole without bytes, or 0 with
  /// bytes. Each blob is verified before its bytes are passed. The watch counts the bytes.
  ///
  /// - Parameter sink: returns false if a hole must arrive as zeros.
  package func writeRuns(
    of content: Content, to sink: (_ hole: UInt64, Span<UInt8>) throws -> Bool
  ) throws {
    func give(_ bytes: Span<UInt8>) throws {
      try watch?.checkCancellation()
      _ = try sink(0, bytes)
      watch?.counters.didHandle(bytes: UInt64(bytes.count))
    }
    func giveHole(_ length: UInt64) throws {
      guard length > 0 else { return }
      try watch?.checkCancellation()
      let none: [UInt8] = []
      guard try sink(length, none.span) else { return try Self.writeZeros(length, to: give) }
      watch?.counters.didHandle(bytes: length)
    }
    var end: UInt64 = 0
    try readContent(content) { offset, bytes in
      try giveHole(offset - end)
      try give(bytes)
      end = offset + UInt64(bytes.count)
    }
    try giveHole(content.size - end)
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
