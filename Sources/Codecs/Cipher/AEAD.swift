internal import CCrypto

/// ChaCha20-Poly1305 of RFC 8439, section 2.8, without additional data, by OpenSSL's libcrypto: it
/// takes half the time of libsodium's (docs/decisions/0025).
enum AEAD {
  /// The bytes that encryption adds.
  static let tagCount = 16
  /// The bytes of a key.
  static let keyCount = 32

  /// 12 bytes: those of a STREAM, which are zero for number 0 unless it is the last piece
  /// ("Payload" of https://age-encryption.org/v1).
  struct Nonce {
    /// The piece's number, from 0: 11 bytes, big-endian, of which the first three stay 0.
    var number: UInt64 = 0
    /// Whether the piece is the last one: the last byte.
    var isLast = false

    fileprivate func withPointer<Value>(_ body: (UnsafePointer<UInt8>) -> Value) -> Value {
      unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 12) { bytes in
        unsafe bytes.initialize(repeating: 0)
        for byte in 0..<8 {
          unsafe bytes[3 + byte] = UInt8(truncatingIfNeeded: number >> (56 - 8 * byte))
        }
        unsafe bytes[11] = isLast ? 1 : 0
        guard let start = bytes.baseAddress else { preconditionFailure("12 bytes without address") }
        return unsafe body(UnsafePointer(start))
      }
    }
  }

  /// Appends the encrypted bytes and their tag. The output must have room for them.
  static func seal(
    _ plain: Span<UInt8>, key: borrowing SecretBytes, nonce: Nonce,
    to output: inout OutputSpan<UInt8>
  ) {
    precondition(output.freeCapacity >= plain.count + tagCount, "no room for a piece")
    unsafe output.withUnsafeMutableBufferPointer { target, count in
      guard let start = target.baseAddress else { return }
      let end = unsafe start + count
      unsafe withContext(.encrypt, key: key, nonce: nonce) { context in
        unsafe update(context, plain, to: end)
        let tag = unsafe end + plain.count
        let isSealed =
          unsafe finish(context, at: tag)
          && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, CInt(tagCount), tag) == 1
        precondition(isSealed, "ChaCha20-Poly1305 failed in libcrypto")
      }
      count += plain.count + tagCount
    }
  }

  /// Appends the decrypted bytes. The output must have room for them, or for one byte.
  ///
  /// - Returns: false, with nothing appended, if the tag is not the one of these bytes.
  static func open(
    _ sealed: Span<UInt8>, key: borrowing SecretBytes, nonce: Nonce,
    to output: inout OutputSpan<UInt8>
  ) -> Bool {
    guard sealed.count >= tagCount else { return false }
    precondition(output.freeCapacity >= max(1, sealed.count - tagCount), "no room for a piece")
    return unsafe output.withUnsafeMutableBufferPointer { target, count in
      guard let start = target.baseAddress else { return false }
      let isRight = unsafe open(sealed, key: key, nonce: nonce, to: start + count)
      if isRight { count += sealed.count - tagCount }
      return isRight
    }
  }

  /// Decrypts into memory that has room for the bytes without their tag. If it returns false, the
  /// memory contains unauthenticated bytes.
  static func open(
    _ sealed: Span<UInt8>, key: borrowing SecretBytes, nonce: Nonce,
    to target: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    let count = sealed.count - tagCount
    return unsafe withContext(.decrypt, key: key, nonce: nonce) { context in
      unsafe update(context, sealed.extracting(0..<count), to: target)
      // The function that expects the tag takes it without `const`.
      let isSet = unsafe sealed.extracting(count..<sealed.count).withUnsafeBufferPointer { tag in
        let start = unsafe UnsafeMutableRawPointer(mutating: tag.baseAddress)
        return unsafe EVP_CIPHER_CTX_ctrl(
          context, EVP_CTRL_AEAD_SET_TAG, CInt(tagCount), start) == 1
      }
      precondition(isSet, "ChaCha20-Poly1305 failed in libcrypto")
      return unsafe finish(context, at: target + count)
    }
  }

  // MARK: - libcrypto

  private static func withContext<Value>(
    _ direction: BlockCipher.Direction, key: borrowing SecretBytes, nonce: Nonce,
    _ body: (OpaquePointer) -> Value
  ) -> Value {
    precondition(key.count == keyCount, "a key has 32 bytes")
    let context = unsafe LibCrypto.cipherContext()
    // It wipes its copy of the key.
    defer { unsafe EVP_CIPHER_CTX_free(context) }
    let isReady = unsafe key.withPointer { key in
      unsafe nonce.withPointer { nonce in
        unsafe EVP_CipherInit_ex2(
          context, LibCrypto.chaCha20Poly1305, key, nonce, direction == .encrypt ? 1 : 0, nil)
      }
    }
    precondition(isReady == 1, "ChaCha20-Poly1305 cannot begin in libcrypto")
    return unsafe body(context)
  }

  /// Processes the bytes of a piece; the number of bytes stays the same.
  private static func update(
    _ context: OpaquePointer, _ bytes: Span<UInt8>, to target: UnsafeMutablePointer<UInt8>
  ) {
    precondition(bytes.count <= 1 << 30, "the function takes an int")
    // Without input the function would take the call for additional data.
    guard !bytes.isEmpty else { return }
    unsafe bytes.withUnsafeBufferPointer { source in
      var count: CInt = 0
      let status = unsafe EVP_CipherUpdate(
        context, target, &count, source.baseAddress, CInt(source.count))
      precondition(
        status == 1 && Int(count) == source.count, "ChaCha20-Poly1305 failed in libcrypto")
    }
  }

  /// Ends a piece. Returns false if a tag is expected and a different one results.
  private static func finish(
    _ context: OpaquePointer, at end: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    // A stream cipher holds no bytes back: nothing is written.
    var count: CInt = 0
    return unsafe EVP_CipherFinal_ex(context, end, &count) == 1 && count == 0
  }
}
