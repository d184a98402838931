internal import Codecs
internal import Synchronization

/// The shared hasher of the packs that are open at the same time. Their bytes are collected and
/// hashed in parallel lanes, which takes a third of the time. Safe to use from any thread.
///
/// The collected bytes are a copy in memory, which costs a tenth of the gain. A pack's file is
/// never read back for its hash: after a write error the kernel may have dropped pages, and the
/// hash of the remaining bytes would confirm the loss.
///
/// Its lock is the last that a thread acquires, after those of the packer and the pack. While one
/// thread hashes, the other threads of the group wait with their packs: 0.5 ns per byte, much less
/// than compression takes.
final class PackHashes: Sendable {
  /// The number of portions and the bytes of each: 6 MiB in total. That is enough for four packs
  /// that receive frames of 4 MiB in turn to all have waiting bytes whenever a portion must be
  /// freed.
  private static let usual = (count: 48, size: 128 << 10)
  private let bytes: Mutex<GatheredBytes>

  convenience init() { self.init(count: Self.usual.count, size: Self.usual.size) }

  /// Collects at most `count` portions of `size` bytes.
  init(count: Int, size: Int) { bytes = Mutex(GatheredBytes(count: count, size: size)) }

  /// The number of bytes in memory that wait to be hashed.
  var gathered: Int { bytes.withLock { $0.inUse } }

  fileprivate func append(_ more: [UInt8], of pack: Int) {
    bytes.withLock { $0.append(more.span, of: pack) }
  }

  fileprivate func finish(_ pack: Int) -> Digest { bytes.withLock { $0.finish(pack) } }

  fileprivate func drop(_ pack: Int) { bytes.withLock { $0.drop(pack) } }
}

/// The hash of one pack's bytes, computed together with other packs or alone.
struct PackHash: ~Copyable {
  private let pack: Int
  private let together: PackHashes?
  private var alone = Blake2b()

  /// Starts a hash; `pack` is the unique number of the pack.
  init(of pack: Int, with together: PackHashes?) {
    (self.pack, self.together) = (pack, together)
  }

  deinit { together?.drop(pack) }

  mutating func append(_ bytes: [UInt8]) {
    if let together { together.append(bytes, of: pack) } else { alone.update(bytes) }
  }

  /// Returns the digest of all bytes and starts another hash.
  mutating func finish() -> Digest { together?.finish(pack) ?? alone.finish() }
}
