internal import Codecs
internal import Synchronization

/// The packers of frames of file contents, shared by all threads. While one thread writes a frame
/// to a pack, others use packs of their own.
///
/// The first frames all go to the first packer, even if threads wait for each other, so that a run
/// that stores little creates one pack, regardless of its threads. After that a frame goes to the
/// first available packer, and a thread waits only if all are busy. Once the run has filled a pack,
/// and if the processor has vector lanes, there are more packers, regardless of the workers: packs
/// that grow at the same rate are hashed together. They must not all become full at once, or all
/// threads would wait for the disk, so the first pack of each packer has a different size.
final class PackerPool: Sendable {
  /// All packers that may be used.
  let all: [DataPacker]
  /// The number of packers at the start of a run.
  private let atFirst: Int
  private let packs: RunPacks
  private let target: Int
  private let alone: Int
  private let hashes: [PackHashes]
  /// The bytes of the frames received so far.
  private let placed = Atomic<Int>(0)
  private let isSharing = Atomic<Bool>(false)
  private let isShared = Atomic<Bool>(false)

  /// The number of packers that share a hasher. More packs are hashed faster, but more bytes must
  /// be collected until each has some.
  private static let together = 4

  /// The factory for shared hashers, or nil if the processor gains nothing from hashing together.
  static var usualHashes: (() -> PackHashes)? {
    Blake2b.Stream.gainsTogether ? { PackHashes() } : nil
  }

  /// Creates one packer for each two workers, and at least two for several workers: for
  /// incompressible content about a third of the time goes into the pack's hash and its file. The
  /// first `alone` bytes of frames go to the first packer, by default a quarter of a pack: one pack
  /// less is worth more than the time that threads wait until then.
  init(
    _ packs: RunPacks, _ known: KnownBlobs, workers: Int, target: Int = PackWriter.target,
    alone: Int? = nil, hashes makeHashes: (() -> PackHashes)? = usualHashes
  ) {
    (self.packs, self.target, self.alone) = (packs, target, alone ?? target / 4)
    atFirst = min(workers, max(2, (workers + 1) / 2))
    let groups = (atFirst + Self.together - 1) / Self.together
    hashes = makeHashes.map { make in (0..<groups).map { _ in make() } } ?? []
    let ways = hashes.isEmpty ? atFirst : groups * Self.together
    all = (0..<ways).map { _ in DataPacker(packs, known, target: target, isReadSoon: false) }
  }

  /// Appends a frame to an open pack. A pack that becomes full is closed in the background.
  func append(_ frame: PackFrame) throws(StoreError) {
    let full = try put(frame)
    if !full.isEmpty { share() }
    for pack in full { try packs.closeSoon(pack) }
  }

  private func put(_ frame: PackFrame) throws(StoreError) -> [PackWriter] {
    let before = placed.add(frame.stored.count, ordering: .relaxed).oldValue
    if before < alone { return try all[0].put(frame) }
    let ways = ways
    for way in ways { if let full = try way.putIfFree(frame) { return full } }
    return try ways[0].put(frame)
  }

  /// The active packers, in the order in which the next frame tries them.
  var ways: [DataPacker] {
    guard isShared.load(ordering: .acquiring) else { return Array(all[..<atFirst]) }
    return all.map { ($0.sharedBytes, $0) }.sorted { $0.0 < $1.0 }.map(\.1)
  }

  /// Switches to shared hashing, once.
  private func share() {
    guard !hashes.isEmpty, !isSharing.exchange(true, ordering: .relaxed) else { return }
    for (number, way) in all.enumerated() {
      way.share(hashes[number / Self.together], first: target * (number + 1) / all.count)
    }
    isShared.store(true, ordering: .releasing)
  }

  /// Discards all open packs.
  func discard() { for way in all { way.discard() } }
}
