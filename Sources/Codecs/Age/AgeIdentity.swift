internal import CSodium

/// An X25519 identity, which decrypts files for its recipient, in locked memory that is wiped with
/// the last reference ("The X25519 recipient type").
public final class AgeIdentity: Sendable {
  static let prefix = "AGE-SECRET-KEY-"

  private let secret: SecretBytes
  /// The public half.
  public let recipient: AgeRecipient

  /// Creates a random identity.
  public convenience init() {
    self.init(secret: .random(count: AgeStanza.shareCount, locked: true))
  }

  /// Parses the text `AGE-SECRET-KEY-1…`, which the caller wipes.
  ///
  /// - Throws: `key` for other text; `unsupported`, with the name of the type, for identities of
  ///   plugins, post-quantum ones and SSH keys. No error quotes the text.
  public convenience init(_ text: Span<UInt8>) throws(AgeError) {
    try AgeKeyType.refuseUnsupportedIdentity(text)
    let decoded = try Bech32(text)
    guard decoded.prefix == Self.prefix else {
      throw AgeError(.key, "an identity begins with 'AGE-SECRET-KEY-1' in upper case")
    }
    guard decoded.data.count == AgeStanza.shareCount else {
      throw AgeError(
        .key, "it has \(decoded.data.count) bytes instead of \(AgeStanza.shareCount)")
    }
    self.init(secret: decoded.data.withBytes { SecretBytes(copying: $0) })
  }

  private init(secret: consuming SecretBytes) {
    recipient = AgeRecipient(of: secret)
    self.secret = secret
  }

  /// Returns the text `AGE-SECRET-KEY-1…`, to print it once or to encrypt it.
  public func text() -> SecretBytes {
    secret.withBytes { Bech32.encode($0, prefix: Self.prefix) }
  }

  /// Unwraps a file key from the share and the body of a stanza, or returns nil if the stanza is
  /// for another recipient ("X25519 recipient stanza").
  ///
  /// - Throws: `header` if the share is a point of low order.
  func unwrap(share: [UInt8], body: [UInt8]) throws(AgeError) -> AgeFileKey? {
    guard let shared = X25519.multiply(secret, share) else {
      throw AgeError(.header, "the share of X25519 is a point of low order")
    }
    return AgeFileKey.unwrap(body, with: recipient.wrapKey(shared, share: share))
  }
}

/// A passphrase, which encrypts and decrypts files by scrypt, in locked memory that is wiped with
/// the last reference ("The scrypt recipient type").
public final class AgePassphrase: Sendable {
  private static let saltPrefix = Array("age-encryption.org/v1/scrypt".utf8)

  private let secret: SecretBytes

  /// Copies the bytes of a passphrase, which the caller wipes.
  ///
  /// - Throws: `key` if there are none.
  public init(_ bytes: Span<UInt8>) throws(AgeError) {
    guard !bytes.isEmpty else { throw AgeError(.key, "the passphrase is empty") }
    secret = SecretBytes(copying: bytes)
  }

  /// Returns the stanza with the file key for this passphrase, with a new salt ("scrypt recipient
  /// stanza").
  ///
  /// - Parameter workFactor: the base-two logarithm of the work factor, from 1 to 63.
  /// - Throws: `library` without enough memory for it.
  func wrap(_ key: borrowing AgeFileKey, workFactor: Int) throws(AgeError) -> AgeStanza {
    let salt = SecretBytes.publicRandom(count: AgeStanza.saltCount)
    let body = key.wrapped(with: try wrapKey(salt: salt, workFactor: workFactor))
    return .scrypt(salt: salt, workFactor: workFactor, body: body)
  }

  /// Unwraps a file key from a stanza, or returns nil if it was made with another passphrase.
  ///
  /// - Throws: `limit` if the work factor exceeds the limit, before any work is done.
  func unwrap(
    salt: [UInt8], workFactor: Int, body: [UInt8], limit: Int
  ) throws(AgeError) -> AgeFileKey? {
    guard workFactor <= limit else {
      throw AgeError(.limit, "the work factor of scrypt is \(workFactor), more than \(limit)")
    }
    return AgeFileKey.unwrap(body, with: try wrapKey(salt: salt, workFactor: workFactor))
  }

  /// Returns the key that wraps a file key: scrypt of RFC 7914 with r = 8 and p = 1.
  private func wrapKey(salt: [UInt8], workFactor: Int) throws(AgeError) -> SecretBytes {
    precondition(1...63 ~= workFactor, "a work factor that cannot be written")
    let salt = Self.saltPrefix + salt
    var status: Int32 = -1
    let key = unsafe SecretBytes(count: HKDF.byteCount, locked: false) { target in
      status = unsafe secret.withPointer {
        unsafe crypto_pwhash_scryptsalsa208sha256_ll(
          $0, secret.count, salt, salt.count, 1 << UInt64(workFactor), 8, 1, target,
          HKDF.byteCount)
      }
    }
    guard status == 0 else {
      throw AgeError(.library, "not enough memory for scrypt with work factor \(workFactor)")
    }
    return key
  }
}
