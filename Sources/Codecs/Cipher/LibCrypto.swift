internal import CCrypto

/// The handles of OpenSSL's libcrypto.
enum LibCrypto {
  /// ChaCha20-Poly1305, looked up once: a lookup takes locks, and several threads encrypt pieces.
  /// It belongs to a separate library context, which reads no configuration file: whether a backup
  /// can be opened must not depend on one.
  ///
  /// It is never freed and never changed.
  nonisolated(unsafe) static let chaCha20Poly1305: OpaquePointer = {
    guard
      let library = unsafe OSSL_LIB_CTX_new(),
      let cipher = unsafe EVP_CIPHER_fetch(library, "ChaCha20-Poly1305", "provider=default")
    else { preconditionFailure("libcrypto has no ChaCha20-Poly1305") }
    return unsafe cipher
  }()

  /// Returns a new context of a cipher. The caller frees it.
  static func cipherContext() -> OpaquePointer {
    guard let context = unsafe EVP_CIPHER_CTX_new() else { preconditionFailure("out of memory") }
    return unsafe context
  }
}
