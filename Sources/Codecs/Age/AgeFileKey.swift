internal import CSodium

/// The key of one file, from which those of its header's MAC and of its payload are derived, wiped
/// when it is destroyed ("File key").
///
/// A file key belongs to one file. It is used again only for another header of the same file.
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
    return key.withBytes { HKDF.hmac(key: $0, message: header) }
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

/// ChaCha20-Poly1305 of RFC 7539 (`crypto_aead_chacha20poly1305_ietf`), without additional data.
enum AEAD {
  /// The bytes that encryption adds.
  static let tagCount = 16

  /// 12 bytes: those of a STREAM, which are zero for number 0 unless it is the last piece
  /// ("Payload").
  struct Nonce {
    /// The piece's number, from 0: 11 bytes, big-endian, of which the first three stay 0.
    var number: UInt64 = 0
    /// Whether the piece is the last one: the last byte.
    var isLast = false

    fileprivate func withPointer<Value>(_ body: (UnsafePointer<UInt8>) -> Value) -> Value {
      unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 12) { bytes in
        unsafe bytes.initialize(repeating: 0)
        for byte in 0..<8 {
          unsafe bytes[3 + byte] = UInt8(truncatingIfNeeded: number >> (56 - 8 * byte))
        }
        unsafe bytes[11] = isLast ? 1 : 0
        guard let start = bytes.baseAddress else { preconditionFailure("12 bytes without address") }
        return unsafe body(UnsafePointer(start))
      }
    }
  }

  /// Appends the encrypted bytes and their tag. The output must have room for them.
  static func seal(
    _ plain: Span<UInt8>, key: borrowing SecretBytes, nonce: Nonce,
    to output: inout OutputSpan<UInt8>
  ) {
    precondition(output.freeCapacity >= plain.count + tagCount, "no room for a piece")
    unsafe output.withUnsafeMutableBufferPointer { target, count in
      guard let start = target.baseAddress else { return }
      let end = unsafe start + count
      unsafe plain.withUnsafeBufferPointer { plain in
        unsafe key.withPointer { key in
          unsafe nonce.withPointer { nonce in
            _ = unsafe crypto_aead_chacha20poly1305_ietf_encrypt(
              end, nil, plain.baseAddress, UInt64(plain.count), nil, 0, nil, nonce, key)
          }
        }
      }
      count += plain.count + tagCount
    }
  }

  /// Appends the decrypted bytes. The output must have room for them, or for one byte.
  ///
  /// - Returns: false, with nothing appended, if the tag is not the one of these bytes.
  static func open(
    _ sealed: Span<UInt8>, key: borrowing SecretBytes, nonce: Nonce,
    to output: inout OutputSpan<UInt8>
  ) -> Bool {
    guard sealed.count >= tagCount else { return false }
    precondition(output.freeCapacity >= max(1, sealed.count - tagCount), "no room for a piece")
    return unsafe output.withUnsafeMutableBufferPointer { target, count in
      guard let start = target.baseAddress else { return false }
      let isRight = unsafe open(sealed, key: key, nonce: nonce, to: start + count)
      if isRight { count += sealed.count - tagCount }
      return isRight
    }
  }

  /// Decrypts into memory that has room for the bytes without their tag.
  static func open(
    _ sealed: Span<UInt8>, key: borrowing SecretBytes, nonce: Nonce,
    to target: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    unsafe sealed.withUnsafeBufferPointer { sealed in
      guard let start = sealed.baseAddress else { return false }
      return unsafe key.withPointer { key in
        unsafe nonce.withPointer { nonce in
          unsafe crypto_aead_chacha20poly1305_ietf_decrypt(
            target, nil, nil, start, UInt64(sealed.count), nil, 0, nonce, key) == 0
        }
      }
    }
  }
}
