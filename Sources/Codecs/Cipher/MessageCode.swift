internal import CSodium

/// HMAC-SHA-256 (RFC 2104), a message authentication code, by libsodium.
package enum MessageCode {
  /// The size of a code in bytes.
  package static let byteCount = 32

  /// Returns the HMAC-SHA-256 of a message. A code may be the key of another one, so it is wiped.
  package static func hmac(key: Span<UInt8>, message: Span<UInt8>) -> SecretBytes {
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
