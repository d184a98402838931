/// The key of a payload, which encrypts and decrypts its pieces of 64 KiB, wiped with the last
/// reference ("Payload").
///
/// Pieces are independent, so several threads may use one value at once: each piece is sealed by
/// its number.
public final class AgePayload: Sendable {
  /// The plain bytes of each piece but the last, which has 1 to this many, or none if the payload is
  /// empty.
  public static let plainCount = 65_536
  /// The stored bytes of each piece but the last.
  public static let storedCount = plainCount + AEAD.tagCount
  /// The bytes that each piece adds.
  static let tagCount = AEAD.tagCount
  /// The bytes between the header and the first piece.
  static let nonceCount = 16

  private let key: SecretBytes

  init(key: consuming SecretBytes) { self.key = key }

  /// Returns the stored size of plain bytes in whole pieces, without header and nonce.
  public static func storedCount(ofPlain count: Int) -> Int {
    count + max(1, (count + plainCount - 1) / plainCount) * AEAD.tagCount
  }

  /// Appends the stored bytes of adjacent pieces to a buffer, which needs no memory if it has the
  /// capacity.
  ///
  /// - Parameters:
  ///   - plain: whole pieces; with `endsPayload` also the last one, of any length.
  ///   - first: the number of the first piece, from 0.
  ///   - endsPayload: whether the last of them is the last piece of the payload. The payload is
  ///     empty if there are no plain bytes; then `first` is 0.
  public func seal(
    _ plain: Span<UInt8>, from first: UInt64, endsPayload: Bool, appendingTo buffer: inout [UInt8]
  ) {
    precondition(endsPayload || plain.count % Self.plainCount == 0, "a piece is not whole")
    precondition(!plain.isEmpty || !endsPayload || first == 0, "an empty last piece")
    guard !plain.isEmpty || endsPayload else { return }
    buffer.append(addingCapacity: Self.storedCount(ofPlain: plain.count)) { output in
      var nonce = AEAD.Nonce(number: first)
      var start = 0
      repeat {
        let end = min(plain.count, start + Self.plainCount)
        nonce.isLast = endsPayload && end == plain.count
        AEAD.seal(plain.extracting(start..<end), key: key, nonce: nonce, to: &output)
        (start, nonce.number) = (end, nonce.number + 1)
      } while start < plain.count
    }
  }

  /// Decrypts adjacent pieces and appends their plain bytes to a buffer. On failure it has those of
  /// the pieces before.
  ///
  /// - Parameters:
  ///   - stored: whole pieces; with `endsPayload` also the last one.
  ///   - first: the number of the first piece, from 0.
  ///   - endsPayload: whether the last of them is the last piece of the payload.
  /// - Throws: `payload` if a piece is not the one with its number, or is damaged.
  public func open(
    _ stored: Span<UInt8>, from first: UInt64, endsPayload: Bool,
    appendingTo buffer: inout [UInt8]
  ) throws(AgeError) {
    precondition(endsPayload || stored.count % Self.storedCount == 0, "a piece is not whole")
    guard !stored.isEmpty || endsPayload else { return }
    var failure: AgeError?
    buffer.append(addingCapacity: stored.count) { output in
      var nonce = AEAD.Nonce(number: first)
      var start = 0
      repeat {
        let end = min(stored.count, start + Self.storedCount)
        nonce.isLast = endsPayload && end == stored.count
        failure = open(stored.extracting(start..<end), nonce, to: &output)
        (start, nonce.number) = (end, nonce.number + 1)
      } while failure == nil && start < stored.count
    }
    if let failure { throw failure }
  }

  /// Decrypts one piece and returns the failure, if any.
  private func open(
    _ piece: Span<UInt8>, _ nonce: AEAD.Nonce, to output: inout OutputSpan<UInt8>
  ) -> AgeError? {
    let before = output.count
    guard AEAD.open(piece, key: key, nonce: nonce, to: &output) else {
      return refusal(of: piece, nonce, to: &output)
    }
    // "MUST NOT be empty unless the whole payload is empty".
    return output.count == before && nonce.number > 0
      ? AgeError(.payload, "the last piece, \(nonce.number), is empty") : nil
  }

  /// Returns the reason why a piece was refused. A whole piece that is the last one although data
  /// follows, or is not although none does, is authentic and decrypted.
  private func refusal(
    of piece: Span<UInt8>, _ nonce: AEAD.Nonce, to output: inout OutputSpan<UInt8>
  ) -> AgeError {
    let other = AEAD.Nonce(number: nonce.number, isLast: !nonce.isLast)
    if piece.count == Self.storedCount, AEAD.open(piece, key: key, nonce: other, to: &output) {
      return AgeError(
        .payload,
        nonce.isLast
          ? "it is truncated: piece \(nonce.number) is not the last one"
          : "data follows the last piece, \(nonce.number)")
    }
    let isCut = piece.count < AEAD.tagCount
    return AgeError(
      .payload, "piece \(nonce.number) is \(isCut ? "truncated" : "damaged, truncated or moved")")
  }
}
