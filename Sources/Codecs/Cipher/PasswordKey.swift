internal import CCrypto

/// Keys of passwords by PBKDF2 (RFC 8018, section 5.2) with HMAC, by OpenSSL's libcrypto.
package enum PasswordKey {
  /// The hash function of the HMAC.
  package enum Hash: Sendable { case sha1, sha256 }

  /// Returns a key of `count` bytes.
  ///
  /// - Parameters:
  ///   - password: The password's bytes, in the encoding that the format requires.
  ///   - rounds: The number of iterations, at least 1. The caller limits it: ten million take
  ///     seconds.
  package static func derive(
    from password: borrowing SecretBytes, salt: [UInt8], rounds: UInt32, hash: Hash,
    count: Int = BlockCipher.keySize
  ) -> SecretBytes {
    precondition(rounds >= 1 && rounds <= UInt32(Int32.max) && count >= 1)
    return unsafe SecretBytes(count: count, locked: true) { output in
      let status = unsafe password.withPointer { start in
        unsafe start.withMemoryRebound(to: CChar.self, capacity: max(1, password.count)) { text in
          unsafe PKCS5_PBKDF2_HMAC(
            text, CInt(password.count), salt, CInt(salt.count), CInt(rounds),
            hash == .sha1 ? EVP_sha1() : EVP_sha256(), CInt(count), output)
        }
      }
      precondition(status == 1, "PBKDF2 failed in libcrypto")
    }
  }
}
