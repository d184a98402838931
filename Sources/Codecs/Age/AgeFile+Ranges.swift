/// Ranges of the plain bytes: each is in adjacent pieces, which are read and decrypted alone
/// ("The payload can be seeked").
extension AgeFile {
  /// Returns the number of plain bytes in a file of a stored size.
  ///
  /// It is verified only when a range that includes the last piece is opened: the size of a file that
  /// was cut between two pieces seems valid.
  ///
  /// - Throws: `payload` if no file with this head has that size.
  public func plainCount(ofStored size: UInt64) throws(AgeError) -> UInt64 {
    let pieces = try Pieces(self, size)
    return pieces.stored - pieces.count * UInt64(AgePayload.tagCount)
  }

  /// Returns the stored size of a file with this head and a number of plain bytes.
  public func storedCount(ofPlain count: Int) -> Int {
    head.count + AgePayload.storedCount(ofPlain: count)
  }

  /// Returns the range of stored bytes that `open(_:stored:size:appendingTo:)` needs for a range of
  /// plain bytes: whole pieces. It is empty for an empty range.
  ///
  /// - Throws: `payload` if the range is not within the file.
  public func storedRange(
    of plain: Range<UInt64>, size: UInt64
  ) throws(AgeError) -> Range<UInt64> {
    let pieces = try Pieces(self, size)
    try check(plain, pieces)
    let (numbers, start) = (pieces.numbers(of: plain), UInt64(head.count))
    return (start + pieces.offset(numbers.lowerBound))..<(start + pieces.offset(numbers.upperBound))
  }

  /// Decrypts a range of plain bytes and appends it to a buffer, which is unchanged on failure.
  ///
  /// - Parameters:
  ///   - plain: the range.
  ///   - stored: the bytes in `storedRange(of:size:)`, no more and no fewer.
  ///   - size: the stored size of the file in bytes.
  /// - Throws: `payload` if the range is not within the file, or a piece of it is damaged or not the
  ///   one with its number.
  public func open(
    _ plain: Range<UInt64>, stored: Span<UInt8>, size: UInt64, appendingTo buffer: inout [UInt8]
  ) throws(AgeError) {
    let pieces = try Pieces(self, size)
    try check(plain, pieces)
    let (numbers, before) = (pieces.numbers(of: plain), buffer.count)
    let wanted = pieces.offset(numbers.upperBound) - pieces.offset(numbers.lowerBound)
    guard UInt64(stored.count) == wanted else {
      throw AgeError(.payload, "\(stored.count) bytes were read instead of \(wanted)")
    }
    guard !numbers.isEmpty else { return }
    do throws(AgeError) {
      try payload.open(
        stored, from: numbers.lowerBound, endsPayload: numbers.upperBound == pieces.count,
        appendingTo: &buffer)
    } catch {
      buffer.removeLast(buffer.count - before)
      throw error
    }
    let start = Int(plain.lowerBound - numbers.lowerBound * UInt64(AgePayload.plainCount))
    buffer.removeLast(buffer.count - before - start - plain.count)
    buffer.removeSubrange(before..<(before + start))
  }

  private func check(_ plain: Range<UInt64>, _ pieces: Pieces) throws(AgeError) {
    let count = pieces.stored - pieces.count * UInt64(AgePayload.tagCount)
    guard plain.upperBound <= count else {
      throw AgeError(.payload, "byte \(plain.upperBound) is beyond its \(count) plain bytes")
    }
  }

  /// The pieces of a payload, from its stored size.
  private struct Pieces {
    /// The stored bytes of all pieces.
    let stored: UInt64
    /// The number of pieces, at least 1.
    let count: UInt64

    init(_ file: AgeFile, _ size: UInt64) throws(AgeError) {
      let (whole, tag) = (UInt64(AgePayload.storedCount), UInt64(AgePayload.tagCount))
      guard size >= UInt64(file.head.count) + tag else {
        throw AgeError(.payload, "the first piece is truncated")
      }
      stored = size - UInt64(file.head.count)
      count = (stored - 1) / whole + 1
      // Only the first piece may be empty.
      guard count == 1 || stored - (count - 1) * whole > tag else {
        throw AgeError(.payload, "the last piece is truncated or empty")
      }
    }

    /// Returns the numbers of the pieces with a range of plain bytes.
    func numbers(of plain: Range<UInt64>) -> Range<UInt64> {
      let whole = UInt64(AgePayload.plainCount)
      let first = plain.lowerBound / whole
      return plain.isEmpty ? first..<first : first..<((plain.upperBound - 1) / whole + 1)
    }

    /// Returns the offset of a piece, or of the end.
    func offset(_ number: UInt64) -> UInt64 {
      number >= count ? stored : number * UInt64(AgePayload.storedCount)
    }
  }
}
