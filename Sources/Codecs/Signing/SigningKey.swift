internal import CSodium

/// A key that signs, in locked memory that is wiped with the last reference.
///
/// Its text is `SBX-SIGNING-KEY-1…`: the seed of Ed25519 (RFC 8032, section 5.1.5) as Bech32.
public final class SigningKey: Sendable {
  static let prefix = "SBX-SIGNING-KEY-"
  /// The size of a seed, in bytes.
  private static let seedCount = 32
  /// The size of the secret in the form of libsodium, the seed and the public key, in bytes.
  static let byteCount = 64

  private let secret: SecretBytes
  /// The public half.
  public let signer: Signer

  /// Creates a random key.
  public convenience init() {
    self.init(seed: .random(count: Self.seedCount, locked: true))
  }

  /// Parses the text `SBX-SIGNING-KEY-1…`, which the caller wipes. White space after it is ignored.
  ///
  /// - Throws: `SigningError` for other text, which the error does not quote.
  public convenience init(_ text: Span<UInt8>) throws(SigningError) {
    let end = text.indices.last { !text[$0].isSpace } ?? -1
    let decoded = try Bech32.decode(text.extracting(0..<(end + 1)))
    guard decoded.prefix == Self.prefix else {
      throw SigningError("a signing key begins with 'SBX-SIGNING-KEY-1' in upper case")
    }
    guard decoded.data.count == Self.seedCount else {
      throw SigningError("it has \(decoded.data.count) bytes instead of \(Self.seedCount)")
    }
    self.init(seed: decoded.data)
  }

  private init(seed: borrowing SecretBytes) {
    var point = [UInt8](repeating: 0, count: Signer.byteCount)
    let secret = unsafe SecretBytes(count: Self.byteCount, locked: true) { target in
      _ = unsafe seed.withPointer { unsafe crypto_sign_seed_keypair(&point, target, $0) }
    }
    self.secret = secret
    signer = Signer(point: point)
  }

  /// Returns the text `SBX-SIGNING-KEY-1…`, to write it to a file.
  public func text() -> SecretBytes {
    secret.withBytes { Bech32.encode($0.extracting(0..<Self.seedCount), prefix: Self.prefix) }
  }

  /// Returns the signature of a message. For each message a key has exactly one signature.
  public func sign(_ message: [UInt8]) -> Signature {
    Signature(bytes: Ed25519.sign(message, with: secret))
  }
}
