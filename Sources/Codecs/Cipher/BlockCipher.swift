internal import CCrypto

/// AES-256 in cipher block chaining mode (NIST SP 800-38A, section 6.2) over whole blocks, by
/// OpenSSL's libcrypto. The padding of the last block is the caller's: `BlockPadding`.
///
/// The mode has no authentication: a changed block decrypts to other bytes without an error. It is
/// only used for the formats of other programs.
@safe package struct BlockCipher: ~Copyable {
  /// The direction of a cipher.
  package enum Direction: Sendable { case encrypt, decrypt }

  /// The size of a block and of the initialization vector in bytes.
  package static let blockSize = 16
  /// The size of a key in bytes.
  package static let keySize = 32

  private let context: OpaquePointer

  /// Creates a cipher with a key of 32 bytes and an initialization vector of 16 bytes, which is
  /// zeros by default.
  package init(
    _ direction: Direction, key: borrowing SecretBytes,
    vector: [UInt8] = [UInt8](repeating: 0, count: blockSize)
  ) {
    precondition(key.count == Self.keySize && vector.count == Self.blockSize)
    unsafe context = LibCrypto.cipherContext()
    let isReady = unsafe key.withPointer { key in
      unsafe EVP_CipherInit_ex(
        context, EVP_aes_256_cbc(), nil, key, vector, direction == .encrypt ? 1 : 0)
    }
    precondition(isReady == 1, "libcrypto has no AES-256-CBC")
    unsafe EVP_CIPHER_CTX_set_padding(context, 0)
  }

  deinit { unsafe EVP_CIPHER_CTX_free(context) }

  /// Processes whole blocks and appends as many bytes to `output`.
  package mutating func process(_ blocks: Span<UInt8>, appendingTo output: inout [UInt8]) {
    precondition(blocks.count % Self.blockSize == 0)
    let start = output.count
    output.append(contentsOf: repeatElement(0, count: blocks.count))
    unsafe output.withUnsafeMutableBufferPointer { output in
      let target = unsafe UnsafeMutableBufferPointer(rebasing: output[start...])
      unsafe process(blocks, into: target)
    }
  }

  /// Processes whole blocks in place.
  package mutating func process(_ blocks: UnsafeMutableRawBufferPointer) {
    precondition(blocks.count % Self.blockSize == 0)
    let bytes = unsafe blocks.bindMemory(to: UInt8.self)
    unsafe process(Span(_unsafeElements: UnsafeBufferPointer(bytes)), into: bytes)
  }

  private mutating func process(
    _ blocks: Span<UInt8>, into target: UnsafeMutableBufferPointer<UInt8>
  ) {
    unsafe blocks.withUnsafeBufferPointer { source in
      var done = 0
      while done < source.count {
        // The function takes an `int`.
        let portion = min(source.count - done, 1 << 30)
        var count: CInt = 0
        let status = unsafe EVP_CipherUpdate(
          context, target.baseAddress.map { unsafe $0 + done }, &count,
          source.baseAddress.map { unsafe $0 + done }, CInt(portion))
        precondition(status == 1 && Int(count) == portion, "AES-256-CBC failed in libcrypto")
        done += portion
      }
    }
  }
}

/// The padding of the last block (PKCS #7, RFC 5652, section 6.3): 1 to 16 bytes, each with the
/// value of their number.
package enum BlockPadding {
  /// Returns the padding of a content of `count` bytes.
  package static func bytes(after count: UInt64) -> [UInt8] {
    let size = BlockCipher.blockSize - Int(count % UInt64(BlockCipher.blockSize))
    return [UInt8](repeating: UInt8(size), count: size)
  }

  /// Returns the number of bytes of padding at the end of a decrypted content, or nil if the end is
  /// not valid padding.
  package static func count(atEndOf bytes: Span<UInt8>) -> Int? {
    guard bytes.count >= BlockCipher.blockSize else { return nil }
    let size = Int(bytes[bytes.count - 1])
    guard (1...BlockCipher.blockSize).contains(size) else { return nil }
    for index in (bytes.count - size)..<bytes.count where bytes[index] != UInt8(size) {
      return nil
    }
    return size
  }
}
