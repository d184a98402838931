internal import CCrypto

/// AES key wrap with a key of 256 bits (RFC 3394, with the initial value of its section 2.2.3.1),
/// by OpenSSL's libcrypto.
package enum KeyWrap {
  /// The bytes that wrapping adds: one block of 64 bits.
  package static let overhead = 8

  /// Returns a key of 16 bytes or more, a multiple of 8, wrapped with another of 32 bytes.
  package static func wrap(
    _ secret: borrowing SecretBytes, with key: borrowing SecretBytes
  ) -> [UInt8] {
    precondition(secret.count >= 16 && secret.count % overhead == 0)
    var wrapped = [UInt8](repeating: 0, count: secret.count + overhead)
    let count = secret.withBytes { plain in
      unsafe wrapped.withUnsafeMutableBufferPointer { target in
        unsafe run(plain, into: target, with: key, encrypting: true)
      }
    }
    precondition(count == wrapped.count, "AES key wrap failed in libcrypto")
    return wrapped
  }

  /// Returns the wrapped key, or nil if it was not wrapped with this key or is not wrapped at all:
  /// the integrity check of RFC 3394 detects both.
  package static func unwrap(
    _ wrapped: Span<UInt8>, with key: borrowing SecretBytes
  ) -> SecretBytes? {
    guard wrapped.count >= 24, wrapped.count <= 4096, wrapped.count % overhead == 0 else {
      return nil
    }
    var isIntact = false
    let size = wrapped.count - overhead
    // libcrypto may write a block more than the key while it works.
    let plain = unsafe SecretBytes(count: wrapped.count, locked: false) { target in
      let buffer = unsafe UnsafeMutableBufferPointer(start: target, count: wrapped.count)
      isIntact = unsafe run(wrapped, into: buffer, with: key, encrypting: false) == size
    }
    guard isIntact else { return nil }
    return plain.withBytes { SecretBytes(copying: $0.extracting(0..<size), locked: false) }
  }

  /// Returns the number of bytes that libcrypto wrote, or nil if it refused.
  private static func run(
    _ input: Span<UInt8>, into output: UnsafeMutableBufferPointer<UInt8>,
    with key: borrowing SecretBytes, encrypting: Bool
  ) -> Int? {
    precondition(key.count == BlockCipher.keySize)
    let context = unsafe LibCrypto.cipherContext()
    defer { unsafe EVP_CIPHER_CTX_free(context) }
    unsafe EVP_CIPHER_CTX_set_flags(context, CInt(EVP_CIPHER_CTX_FLAG_WRAP_ALLOW))
    let isReady = unsafe key.withPointer { key in
      unsafe EVP_CipherInit_ex(
        context, EVP_aes_256_wrap(), nil, key, nil, encrypting ? 1 : 0)
    }
    precondition(isReady == 1, "libcrypto has no AES key wrap")
    var count: CInt = 0
    let status = unsafe input.withUnsafeBufferPointer { input in
      unsafe EVP_CipherUpdate(
        context, output.baseAddress, &count, input.baseAddress, CInt(input.count))
    }
    return status == 1 ? Int(count) : nil
  }
}
