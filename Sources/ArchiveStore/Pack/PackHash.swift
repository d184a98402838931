internal import Codecs
internal import Synchronization

/// What packs that are open at the same time share: their bytes are gathered, and hashed together,
/// which takes a third of the time. For any thread.
///
/// What is gathered is a copy in memory; that takes a tenth of what is gained. A pack's file is never
/// read for its hash: what the disk refused the kernel may have dropped, and the hash of what is left
/// would confirm it.
///
/// Its lock is the last that a thread takes, after those of the way and the pack. While one thread
/// hashes, the others of the group wait for it with their packs: 0.5 ns a byte, of which compressing
/// takes many times as much.
final class PackHashes: Sendable {
  /// Portions, and bytes of each: 6 MiB in all. Where four packs get frames of 4 MiB in turn, that is
  /// enough for each to have something that waits whenever room has to be made.
  private static let usual = (count: 48, size: 128 << 10)
  private let bytes: Mutex<GatheredBytes>

  convenience init() { self.init(count: Self.usual.count, size: Self.usual.size) }

  /// Gathers at most `count` portions of `size` bytes.
  init(count: Int, size: Int) { bytes = Mutex(GatheredBytes(count: count, size: size)) }

  /// How many bytes of memory wait to be hashed.
  var gathered: Int { bytes.withLock { $0.inUse } }

  fileprivate func append(_ more: [UInt8], of pack: Int) {
    bytes.withLock { $0.append(more.span, of: pack) }
  }

  fileprivate func finish(_ pack: Int) -> Digest { bytes.withLock { $0.finish(pack) } }

  fileprivate func drop(_ pack: Int) { bytes.withLock { $0.drop(pack) } }
}

/// The hash of one pack's bytes: together with those of other packs, or by itself at once.
struct PackHash: ~Copyable {
  private let pack: Int
  private let together: PackHashes?
  private var alone = Blake2b()

  /// The hash of no bytes yet; `pack` is the pack's number, which no other has.
  init(of pack: Int, with together: PackHashes?) {
    (self.pack, self.together) = (pack, together)
  }

  deinit { together?.drop(pack) }

  mutating func append(_ bytes: [UInt8]) {
    if let together { together.append(bytes, of: pack) } else { alone.update(bytes) }
  }

  /// The digest of all bytes; the next begin another.
  mutating func finish() -> Digest { together?.finish(pack) ?? alone.finish() }
}
