internal import CSodium

/// The public half of a signing key: anyone who has it can verify signatures but not make them.
public struct Signer: Hashable, Sendable, CustomStringConvertible {
  static let prefix = "sbxsig"
  /// The size of a public key of Ed25519, in bytes.
  static let byteCount = 32

  /// The public key of Ed25519.
  let point: [UInt8]

  /// Parses the text `sbxsig1…`.
  ///
  /// - Throws: `SigningError` for other text, a point that is not on the curve and a point of low
  ///   order.
  public init(_ text: String) throws(SigningError) {
    guard !text.uppercased().hasPrefix(SigningKey.prefix) else {
      throw SigningError("it is a signing key, which is secret, and not a signer")
    }
    let decoded = try Bech32.decode(Array(text.utf8).span)
    guard decoded.prefix == Self.prefix else {
      throw SigningError("a signer begins with 'sbxsig1' in lower case")
    }
    let point = decoded.data.withBytes { data in data.indices.map { data[$0] } }
    guard point.count == Self.byteCount else {
      throw SigningError("it has \(point.count) bytes instead of \(Self.byteCount)")
    }
    guard Ed25519.isValid(point) else {
      throw SigningError("it is not a valid public key of Ed25519")
    }
    self.point = point
  }

  /// The public half of a key.
  init(point: [UInt8]) { self.point = point }

  /// The text `sbxsig1…`.
  public var description: String {
    Bech32.encode(point.span, prefix: Self.prefix).withBytes { text in
      String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
    }
  }

  /// Whether a signature is this signer's signature of a message.
  public func verifies(_ signature: Signature, of message: [UInt8]) -> Bool {
    Ed25519.verifies(signature.bytes, of: message, by: point)
  }
}

/// A signature of Ed25519.
public struct Signature: Hashable, Sendable {
  /// The size in bytes.
  static let byteCount = 64

  let bytes: [UInt8]

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// Parses Base64 with padding, or returns nil if it is not canonical or does not have 64 bytes.
  public init?(base64 text: String) {
    guard let bytes = Base64.decode(text.utf8), bytes.count == Self.byteCount else { return nil }
    self.init(bytes: bytes)
  }

  /// The signature as Base64 with padding.
  public var base64: String { Base64.encode(bytes) }
}

/// A text that is neither a signer nor a signing key. The reason never quotes the text.
public struct SigningError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The reason in plain words, without a full stop.
  public let reason: String

  init(_ reason: String) { self.reason = reason }

  /// The whole message: "cannot use the signer: …".
  public var description: String { "cannot use the signer: \(reason)" }
}

extension Bech32 {
  /// Decodes the text of a signer or a signing key.
  static func decode(_ text: Span<UInt8>) throws(SigningError) -> Bech32 {
    do { return try Bech32(text) } catch { throw SigningError(error.reason) }
  }
}

/// Ed25519 of RFC 8032, section 5.1, by libsodium's `crypto_sign`.
enum Ed25519 {
  /// Whether 32 bytes are a point of the main subgroup, in canonical form.
  static func isValid(_ point: [UInt8]) -> Bool {
    precondition(point.count == Signer.byteCount, "a public key has 32 bytes")
    return unsafe crypto_core_ed25519_is_valid_point(point) == 1
  }

  /// Whether a signature is valid for a message. libsodium refuses signatures and public keys that
  /// are not canonical, and points of low order.
  static func verifies(_ signature: [UInt8], of message: [UInt8], by point: [UInt8]) -> Bool {
    precondition(Sodium.isReady, "libsodium cannot be initialized")
    guard signature.count == Signature.byteCount, point.count == Signer.byteCount else {
      return false
    }
    return unsafe crypto_sign_verify_detached(
      signature, message, UInt64(message.count), point) == 0
  }

  /// Returns the signature of a message by a secret of 64 bytes.
  static func sign(_ message: [UInt8], with secret: borrowing SecretBytes) -> [UInt8] {
    precondition(secret.count == SigningKey.byteCount, "a secret key has 64 bytes")
    var signature = [UInt8](repeating: 0, count: Signature.byteCount)
    _ = unsafe secret.withPointer {
      unsafe crypto_sign_detached(&signature, nil, message, UInt64(message.count), $0)
    }
    return signature
  }
}
