internal import Codecs
internal import Synchronization

/// The ways of frames of contents into packs, for all threads: while one thread writes a frame into a
/// pack, the others have packs of their own.
///
/// The first frames all take the first way, waiting for each other, so that a run which stores little
/// makes one pack, whatever its threads. From then on a frame takes the first way that is free; where
/// all are busy a thread waits. Once the run has filled a pack, and if the processor has lanes, there
/// are more ways, whatever the workers: packs that grow alike are hashed together. They must not all be
/// full at once, or all threads would wait for the disk; so the first pack of each way is of another
/// size.
final class PackerPool: Sendable {
  /// All ways there can be.
  let all: [DataPacker]
  /// How many of them a run begins with.
  private let atFirst: Int
  private let packs: RunPacks
  private let target: Int
  private let alone: Int
  private let hashes: [PackHashes]
  /// Bytes of frames that have come so far.
  private let placed = Atomic<Int>(0)
  private let isSharing = Atomic<Bool>(false)
  private let isShared = Atomic<Bool>(false)

  /// How many ways share what their packs are hashed in. More of them are hashed in still less time,
  /// but then more bytes must be gathered until each has some.
  private static let together = 4

  /// How packs are hashed together, where the processor can.
  static var usualHashes: (() -> PackHashes)? {
    Blake2b.Stream.gainsTogether ? { PackHashes() } : nil
  }

  /// One way for each two workers, at least two for several: of the time that content takes which
  /// does not compress, about a third goes into the pack's hash and its file. The first `alone` bytes
  /// of frames take the first way, a quarter of a pack unless told: one pack less is worth more than
  /// the time that threads wait for each other until then.
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

  /// Appends a frame to an open pack; a pack that is full then is closed soon.
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

  /// The ways that are in use, those first into which the next frame is to go.
  var ways: [DataPacker] {
    guard isShared.load(ordering: .acquiring) else { return Array(all[..<atFirst]) }
    return all.map { ($0.sharedBytes, $0) }.sorted { $0.0 < $1.0 }.map(\.1)
  }

  /// Lets packs be hashed together from now on, once.
  private func share() {
    guard !hashes.isEmpty, !isSharing.exchange(true, ordering: .relaxed) else { return }
    for (number, way) in all.enumerated() {
      way.share(hashes[number / Self.together], first: target * (number + 1) / all.count)
    }
    isShared.store(true, ordering: .releasing)
  }

  /// Removes what is open.
  func discard() { for way in all { way.discard() } }
}
