internal import CSodium

/// BLAKE2b with 32 bytes of output and no key (RFC 7693): what `b2sum -l 256` computes.
///
/// The one-shot functions are for bytes in memory; a value of the type takes them piece by piece
/// and can be used again after `finish()`.
///
/// libsodium is initialised, so that it chooses its code for AVX2. While both of two cores hash,
/// that takes 1.44 ns a byte, the portable code 1.65 (in 5 kB, 2.0); alone on an idle machine the
/// portable one is the faster (0.76), but a backup is never alone: it keeps all cores busy.
@safe public struct Blake2b: ~Copyable {
  /// libsodium's state, which must lie at a multiple of 64.
  private let state: UnsafeMutableRawPointer

  /// Whether libsodium is ready; it can only fail where the machine has no randomness, which hashing
  /// does not need.
  private static let isReady = sodium_init() >= 0

  /// Makes a hash of no bytes yet.
  public init() {
    _ = Self.isReady
    unsafe state = UnsafeMutableRawPointer.allocate(
      byteCount: crypto_generichash_statebytes(), alignment: 64)
    restart()
  }

  deinit { unsafe state.deallocate() }

  /// Another hash of the same bytes so far.
  func copy() -> Blake2b {
    let copy = Blake2b()
    unsafe copy.state.copyMemory(from: state, byteCount: crypto_generichash_statebytes())
    return copy
  }

  /// Takes in more bytes.
  public mutating func update(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      _ = unsafe crypto_generichash_update(
        OpaquePointer(state), buffer.baseAddress, UInt64(buffer.count))
    }
  }

  /// Takes in more bytes.
  public mutating func update(_ bytes: [UInt8]) { update(bytes.span) }

  /// The digest of all bytes taken in; the next `update` begins another.
  public mutating func finish() -> Digest {
    let digest = unsafe Self.digest { output in
      unsafe crypto_generichash_final(OpaquePointer(state), output, Digest.byteCount)
    }
    restart()
    return digest
  }

  private func restart() {
    _ = unsafe crypto_generichash_init(OpaquePointer(state), nil, 0, Digest.byteCount)
  }

  /// The digest of bytes in memory.
  public static func hash(_ bytes: Span<UInt8>) -> Digest {
    _ = Self.isReady
    return unsafe bytes.withUnsafeBufferPointer { buffer in
      unsafe digest { output in
        unsafe crypto_generichash(
          output, Digest.byteCount, buffer.baseAddress, UInt64(buffer.count), nil, 0)
      }
    }
  }

  /// The digest of bytes in memory.
  public static func hash(_ bytes: RawSpan) -> Digest {
    unsafe bytes.withUnsafeBytes { buffer in
      unsafe hash(Span(_unsafeElements: buffer.assumingMemoryBound(to: UInt8.self)))
    }
  }

  /// The digest of bytes in memory.
  public static func hash(_ bytes: [UInt8]) -> Digest { hash(bytes.span) }

  /// Runs a call that fills 32 bytes. It can fail only for a wrong length, and no length here is.
  private static func digest(
    _ fill: (UnsafeMutablePointer<UInt8>) -> Int32
  ) -> Digest {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    let status = unsafe withUnsafeMutableBytes(of: &words) { buffer in
      unsafe buffer.withMemoryRebound(to: UInt8.self) { bytes in
        if let output = bytes.baseAddress { unsafe fill(output) } else { -1 as Int32 }
      }
    }
    precondition(status == 0, "libsodium refused 32 bytes of output")
    return Digest(
      UInt64(bigEndian: words.0), UInt64(bigEndian: words.1), UInt64(bigEndian: words.2),
      UInt64(bigEndian: words.3))
  }
}
