internal import CSodium

/// Bytes of a secret, wiped when the value is destroyed.
///
/// Long-lived secrets (identities, passphrases) are `locked`: in separate pages that are neither
/// swapped nor in core dumps, between inaccessible pages (`sodium_malloc`). If the process may not
/// lock more memory (`RLIMIT_MEMLOCK`), they are only wiped. The keys of single files are not
/// locked: a reader keeps one for each pack, and each locked secret takes four pages of address
/// space and four mappings, of which Linux allows 65,530.
///
/// A value is never changed after its initialization, so several threads may read it.
@safe public struct SecretBytes: ~Copyable, @unchecked Sendable {
  private let start: UnsafeMutablePointer<UInt8>
  private let isLocked: Bool
  /// The number of bytes.
  public let count: Int

  /// Copies bytes into locked memory. The caller wipes the original.
  public init(copying bytes: Span<UInt8>) { self.init(copying: bytes, locked: true) }

  init(copying bytes: Span<UInt8>, locked: Bool) {
    unsafe self.init(count: bytes.count, locked: locked) { target in
      unsafe bytes.withUnsafeBufferPointer { source in
        if let first = source.baseAddress {
          unsafe target.update(from: first, count: source.count)
        }
      }
    }
  }

  /// Allocates zeros and lets `fill` write into them.
  init(count: Int, locked: Bool, filling fill: (UnsafeMutablePointer<UInt8>) -> Void) {
    precondition(Sodium.isReady, "libsodium cannot be initialized")
    self.count = count
    if locked, let memory = unsafe sodium_malloc(max(1, count)) {
      isLocked = true
      unsafe start = memory.assumingMemoryBound(to: UInt8.self)
    } else {
      isLocked = false
      unsafe start = UnsafeMutablePointer.allocate(capacity: max(1, count))
    }
    unsafe start.initialize(repeating: 0, count: max(1, count))
    unsafe fill(start)
  }

  deinit {
    if isLocked { return unsafe sodium_free(start) }
    unsafe sodium_memzero(start, count)
    unsafe start.deallocate()
  }

  /// Returns random bytes from libsodium, which takes them from the operating system.
  package static func random(count: Int, locked: Bool = false) -> SecretBytes {
    unsafe SecretBytes(count: count, locked: locked) { target in
      unsafe randombytes_buf(target, count)
    }
  }

  /// Calls `body` with the bytes, which it must not keep.
  public borrowing func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try unsafe body(Span(_unsafeStart: start, count: count))
  }

  /// Calls `body` with the address of the bytes, for a C library.
  borrowing func withPointer<Value: ~Copyable, Failure: Error>(
    _ body: (UnsafePointer<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try unsafe body(UnsafePointer(start))
  }
}

extension SecretBytes {
  /// Returns random bytes that are not secret, such as a nonce or a salt.
  package static func publicRandom(count: Int) -> [UInt8] {
    random(count: count).withBytes { bytes in bytes.indices.map { bytes[$0] } }
  }
}
