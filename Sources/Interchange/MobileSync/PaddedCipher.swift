internal import Codecs

/// Encrypts a content that arrives in pieces of any size: AES-256-CBC with an initialization vector
/// of zeros and padding (PKCS #7), as in an iTunes backup.
struct PaddedCipher: ~Copyable {
  private var cipher: BlockCipher
  /// The end of the content that is not a whole block yet.
  private var rest: [UInt8] = []

  /// Begins a content. No other content may have the same key.
  init(key: borrowing SecretBytes) { cipher = BlockCipher(.encrypt, key: key) }

  /// Returns the encrypted blocks that the next bytes complete.
  mutating func encrypt(_ bytes: [UInt8]) -> [UInt8] {
    let plain = rest + bytes
    let whole = plain.count - plain.count % BlockCipher.blockSize
    rest = Array(plain[whole...])
    var stored: [UInt8] = []
    stored.reserveCapacity(whole)
    cipher.process(plain.span.extracting(0..<whole), appendingTo: &stored)
    return stored
  }

  /// Returns the last block, which contains the padding.
  mutating func finish() -> [UInt8] { encrypt(BlockPadding.bytes(after: UInt64(rest.count))) }
}
