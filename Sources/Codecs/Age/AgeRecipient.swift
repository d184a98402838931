internal import CSodium

/// The public half of an X25519 identity: whoever has it can encrypt, but not decrypt ("The X25519
/// recipient type").
///
/// A host that writes backups it cannot read has recipients only.
public struct AgeRecipient: Hashable, Sendable, CustomStringConvertible {
  static let prefix = "age"
  private static let wrapInfo = "age-encryption.org/v1/X25519"

  /// The point on the curve, 32 bytes.
  let point: [UInt8]

  /// Parses the text `age1…`.
  ///
  /// - Throws: `key` for other text or a point of low order; `unsupported`, with the name of the
  ///   type, for recipients of plugins, tagged and post-quantum ones, and SSH keys.
  public init(_ text: String) throws(AgeError) {
    try AgeKeyType.refuseUnsupportedRecipient(text)
    let decoded = try Bech32(Array(text.utf8).span)
    try AgeKeyType.refusePlugin(prefix: decoded.prefix)
    guard decoded.prefix == Self.prefix else {
      throw AgeError(.key, "a recipient begins with 'age1' in lower case")
    }
    try self.init(point: decoded.data.withBytes { data in data.indices.map { data[$0] } })
  }

  /// Creates a recipient from its point.
  ///
  /// - Throws: `key` if it has not 32 bytes or is of low order, so that its shared secrets would be
  ///   known to everyone.
  init(point: [UInt8]) throws(AgeError) {
    guard point.count == AgeStanza.shareCount else {
      throw AgeError(.key, "it has \(point.count) bytes instead of \(AgeStanza.shareCount)")
    }
    let probe = SecretBytes.random(count: AgeStanza.shareCount)
    guard X25519.multiply(probe, point) != nil else {
      throw AgeError(.key, "it is a point of low order")
    }
    self.point = point
  }

  /// The public half of a secret.
  init(of secret: borrowing SecretBytes) { point = X25519.base(secret) }

  /// The text `age1…`.
  public var description: String {
    Bech32.encode(point.span, prefix: Self.prefix).withBytes { text in
      String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
    }
  }

  /// Returns a stanza with the file key for this recipient, with a new ephemeral secret ("X25519
  /// recipient stanza").
  func wrap(_ key: borrowing AgeFileKey) -> AgeStanza {
    wrap(key, ephemeral: .random(count: AgeStanza.shareCount))
  }

  /// Returns a stanza with an ephemeral secret that MUST NOT be used twice.
  func wrap(_ key: borrowing AgeFileKey, ephemeral: consuming SecretBytes) -> AgeStanza {
    let share = X25519.base(ephemeral)
    guard let shared = X25519.multiply(ephemeral, point) else {
      preconditionFailure("a recipient is no point of low order")
    }
    return .x25519(share: share, body: key.wrapped(with: wrapKey(shared, share: share)))
  }

  /// Returns the key that wraps a file key.
  func wrapKey(_ shared: borrowing SecretBytes, share: [UInt8]) -> SecretBytes {
    HKDF.derive(from: shared, salt: share + point, info: Self.wrapInfo)
  }
}

/// X25519 of RFC 7748, section 5, by libsodium's `crypto_scalarmult`.
enum X25519 {
  /// Returns the point of a secret.
  static func base(_ secret: borrowing SecretBytes) -> [UInt8] {
    var point = [UInt8](repeating: 0, count: AgeStanza.shareCount)
    _ = unsafe secret.withPointer { unsafe crypto_scalarmult_base(&point, $0) }
    return point
  }

  /// Returns the secret that is shared with a point of 32 bytes, or nil if it would be zero: the
  /// point is of low order.
  static func multiply(_ secret: borrowing SecretBytes, _ point: [UInt8]) -> SecretBytes? {
    precondition(point.count == AgeStanza.shareCount, "a point has 32 bytes")
    var status: Int32 = -1
    let shared = unsafe SecretBytes(count: AgeStanza.shareCount, locked: false) { target in
      status = unsafe secret.withPointer { unsafe crypto_scalarmult(target, $0, point) }
    }
    guard status == 0 else { return nil }
    return shared
  }
}
