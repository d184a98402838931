/// The key of a payload, which encrypts and decrypts its pieces of 64 KiB, wiped with the last
/// reference ("Payload").
///
/// Pieces are independent, so several threads may use one value at once: each piece is sealed by
/// its number.
public final class AgePayload: Sendable {
  /// The plain bytes of each piece except the last, which has between 1 and this number, or none if
  /// the payload is empty.
  public static let plainCount = 65_536
  /// The stored bytes of each piece except the last.
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

  /// Decrypts adjacent pieces and appends their plain bytes to a buffer. After a failure the buffer
  /// has those of the earlier pieces.
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

  /// Returns the reason why a piece was refused. A complete piece that is the last one although
  /// data follows, or is not the last although none follows, is authentic and decrypted.
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

/// The key of one file, from which the keys of its header's MAC and of its payload are derived;
/// wiped when it is destroyed ("File key").
///
/// A file key belongs to one file. It is reused only for another header of the same file.
struct AgeFileKey: ~Copyable {
  static let byteCount = 16

  private let secret: SecretBytes

  /// Creates a random key.
  init() { secret = .random(count: Self.byteCount) }

  /// Copies a key of 16 bytes, which the caller wipes.
  init(copying bytes: Span<UInt8>) {
    precondition(bytes.count == Self.byteCount, "a file key has 16 bytes")
    secret = SecretBytes(copying: bytes, locked: false)
  }

  /// Returns the MAC of a header up to and including `---` ("Header MAC").
  func headerMAC(of header: Span<UInt8>) -> [UInt8] {
    let key = HKDF.derive(from: secret, salt: [], info: "header")
    return key.withBytes { MessageCode.hmac(key: $0, message: header) }
      .withBytes { mac in mac.indices.map { mac[$0] } }
  }

  /// Returns the key of the payload after a nonce ("Payload").
  func payload(nonce: [UInt8]) -> AgePayload {
    AgePayload(key: HKDF.derive(from: secret, salt: nonce, info: "payload"))
  }

  // MARK: - Wrapping

  /// Returns the body of a stanza: the file key encrypted with a key that is used only once, so the
  /// nonce is zero ("X25519 recipient stanza", "scrypt recipient stanza").
  func wrapped(with key: borrowing SecretBytes) -> [UInt8] {
    secret.withBytes { plain in
      var body: [UInt8] = []
      body.append(addingCapacity: plain.count + AEAD.tagCount) { output in
        AEAD.seal(plain, key: key, nonce: AEAD.Nonce(), to: &output)
      }
      return body
    }
  }

  /// Decrypts the body of a stanza, or returns nil if it was encrypted with another key.
  static func unwrap(_ body: [UInt8], with key: borrowing SecretBytes) -> AgeFileKey? {
    precondition(body.count == byteCount + AEAD.tagCount, "the parser admits no other body")
    var isRight = false
    let secret = unsafe SecretBytes(count: byteCount, locked: false) { target in
      isRight = unsafe AEAD.open(body.span, key: key, nonce: AEAD.Nonce(), to: target)
    }
    return isRight ? AgeFileKey(secret: secret) : nil
  }

  private init(secret: consuming SecretBytes) { self.secret = secret }
}
