/// HKDF-SHA-256 (RFC 5869) with 32 bytes of output, by libsodium's HMAC, because version 1.0.18 has
/// no HKDF ("Conventions used in this document").
enum HKDF {
  static let byteCount = MessageCode.byteCount

  /// Returns the key that HKDF-SHA-256 derives from a secret, a salt, which may be empty, and a
  /// purpose.
  static func derive(
    from secret: borrowing SecretBytes, salt: [UInt8], info: String
  ) -> SecretBytes {
    // HKDF-Extract: an empty salt is an empty key, which HMAC pads with zeros.
    let extracted = secret.withBytes { MessageCode.hmac(key: salt.span, message: $0) }
    // HKDF-Expand: the output is one block of HMAC, whose number is 1.
    let message = Array(info.utf8) + [1]
    return extracted.withBytes { MessageCode.hmac(key: $0, message: message.span) }
  }
}
