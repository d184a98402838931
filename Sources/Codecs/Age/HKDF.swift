internal import CSodium

/// HMAC-SHA-256 (RFC 2104) and HKDF-SHA-256 (RFC 5869) with 32 bytes of output, by libsodium's
/// HMAC: version 1.0.18 has no HKDF of its own. ("Conventions used in this document".)
enum HKDF {
  static let byteCount = 32

  /// Returns the key that HKDF-SHA-256 derives from a secret, a salt, which may be empty, and a
  /// purpose.
  static func derive(
    from secret: borrowing SecretBytes, salt: [UInt8], info: String
  ) -> SecretBytes {
    // HKDF-Extract: an empty salt is a key of no bytes, which HMAC fills up with zeros.
    let extracted = secret.withBytes { hmac(key: salt.span, message: $0) }
    // HKDF-Expand: the output is one block of HMAC, whose number is 1.
    let message = Array(info.utf8) + [1]
    return extracted.withBytes { hmac(key: $0, message: message.span) }
  }

  /// Returns the HMAC-SHA-256 of a message.
  static func hmac(key: Span<UInt8>, message: Span<UInt8>) -> SecretBytes {
    unsafe SecretBytes(count: byteCount, locked: false) { output in
      var state = crypto_auth_hmacsha256_state()
      unsafe key.withUnsafeBufferPointer { key in
        // The address must exist even for no bytes.
        let start = unsafe key.baseAddress ?? UnsafePointer(output)
        _ = unsafe crypto_auth_hmacsha256_init(&state, start, key.count)
      }
      unsafe message.withUnsafeBufferPointer { message in
        _ = unsafe crypto_auth_hmacsha256_update(
          &state, message.baseAddress, UInt64(message.count))
      }
      _ = unsafe crypto_auth_hmacsha256_final(&state, output)
      unsafe sodium_memzero(&state, MemoryLayout<crypto_auth_hmacsha256_state>.size)
    }
  }
}
