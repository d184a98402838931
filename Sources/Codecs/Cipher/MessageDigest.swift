internal import CCrypto

/// The digest of a message by a hash function that only formats and protocols of other programs
/// use, by OpenSSL's libcrypto. SHA-1 (FIPS 180-4) and MD5 (RFC 1321) give no protection against
/// attackers, who can make two messages with the same digest.
@safe package struct MessageDigest: ~Copyable {
  /// A hash function.
  package enum Function: Sendable {
    case sha1
    case sha3x384
    case sha256
    case md5

    /// The size of the digest in bytes.
    package var size: Int {
      switch self {
      case .sha1: 20
      case .sha3x384: 48
      case .sha256: 32
      case .md5: 16
      }
    }

    /// libcrypto's description of the function, a constant of the library.
    fileprivate var method: OpaquePointer? {
      switch self {
      case .sha1: unsafe EVP_sha1()
      case .sha3x384: unsafe EVP_sha3_384()
      case .sha256: unsafe EVP_sha256()
      case .md5: unsafe EVP_md5()
      }
    }
  }

  private let context: OpaquePointer
  private let function: Function

  /// Begins a message.
  package init(_ function: Function) {
    guard let context = unsafe EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
    let status = unsafe EVP_DigestInit_ex(context, function.method, nil)
    precondition(status == 1, "libcrypto has no such hash function")
    unsafe self.context = context
    self.function = function
  }

  deinit { unsafe EVP_MD_CTX_free(context) }

  /// Adds bytes to the message.
  package mutating func update(_ bytes: Span<UInt8>) {
    let status = unsafe bytes.withUnsafeBufferPointer { bytes in
      unsafe EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
    }
    precondition(status == 1, "hashing failed in libcrypto")
  }

  /// Returns the digest of the message.
  package consuming func finish() -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: function.size)
    let status = unsafe EVP_DigestFinal_ex(context, &digest, nil)
    precondition(status == 1, "hashing failed in libcrypto")
    return digest
  }

  /// Returns the digest of a whole message.
  package static func digest(of bytes: Span<UInt8>, _ function: Function) -> [UInt8] {
    var digest = MessageDigest(function)
    digest.update(bytes)
    return digest.finish()
  }
}
