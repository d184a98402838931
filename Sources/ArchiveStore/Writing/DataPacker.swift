internal import Codecs
internal import Synchronization
internal import SystemIO

/// Appends finished frames of one kind to an open pack, and opens the next pack when it is full.
/// Safe to use from any thread.
final class DataPacker: Sendable {
  private let packs: RunPacks
  private let known: KnownBlobs
  private let target: Int
  private let isReadSoon: Bool
  private let state: Mutex<State>
  /// The bytes appended since packs share hashers. Packers with similar counts have similar numbers
  /// of bytes waiting to be hashed.
  private let shared = Atomic<Int>(0)

  private struct State {
    var open: PackWriter?
    var next: Next
    /// The settings of the first pack after a checkpoint.
    var first: Next
  }

  /// The settings of the next pack.
  private struct Next {
    var target: Int
    var hasher: MultiStreamHasher?
  }

  /// Creates a packer whose packs are full at `target` bytes. Packs of trees are read by the next
  /// commands (`isReadSoon`); packs of file contents are read only to restore data.
  init(
    _ packs: RunPacks, _ known: KnownBlobs, target: Int = PackWriter.target, isReadSoon: Bool
  ) {
    (self.packs, self.known, self.target, self.isReadSoon) = (packs, known, target, isReadSoon)
    let next = Next(target: target)
    state = Mutex(State(next: next, first: next))
  }

  var sharedBytes: Int { shared.load(ordering: .relaxed) }

  /// Hashes packs opened from now on together with the others of `hasher`. The first of them, and
  /// the first after each checkpoint, is full at `first` bytes.
  func share(_ hasher: MultiStreamHasher, first: Int) {
    state.withLock { state in
      state.first = Next(target: first, hasher: hasher)
      state.next = state.first
    }
  }

  /// Appends a frame to the open pack. A pack that becomes full is closed in the background.
  func append(_ frame: PackFrame) throws(StoreError) {
    for pack in try add(frame) { try packs.closeSoon(pack) }
  }

  /// Appends a frame to the open pack, and returns the packs that became full.
  func add(_ frame: PackFrame) throws(StoreError) -> [PackWriter] {
    try state.withLock { state throws(StoreError) in try add(frame, into: &state) }
  }

  /// Appends a frame like `add`, or returns nil if another thread is appending.
  func addIfFree(_ frame: PackFrame) throws(StoreError) -> [PackWriter]? {
    try state.withLockIfAvailable { state throws(StoreError) in try add(frame, into: &state) }
  }

  private func add(
    _ frame: PackFrame, into state: inout State
  ) throws(StoreError) -> [PackWriter] {
    var full: [PackWriter] = []
    if let pack = state.open, pack.isFull(before: frame.blobs.count) {
      full.append(pack)
      state.open = nil
    }
    let pack = try open(&state)
    let number = try pack.append(frame)
    known.record(frame.blobs, pack: pack.number, frame: number)
    if state.first.hasher != nil { shared.add(frame.stored.count, ordering: .relaxed) }
    if pack.isFull(before: 0) {
      full.append(pack)
      state.open = nil
    }
    return full
  }

  private func open(_ state: inout State) throws(StoreError) -> PackWriter {
    if let pack = state.open { return pack }
    let pack = try packs.open(
      target: state.next.target, isReadSoon: isReadSoon, hasher: state.next.hasher)
    state.open = pack
    state.next.target = target
    return pack
  }

  /// Removes the open pack and returns it to be closed. The next frame opens another.
  func detachOpen() -> PackWriter? {
    state.withLock { state in
      defer { (state.open, state.next) = (nil, state.first) }
      return state.open
    }
  }

  /// Discards the open pack.
  func discard() { detachOpen()?.discard() }
}

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
  /// The hasher of each packer's packs, or none if hashing packs together gains nothing.
  private let hashers: [MultiStreamHasher]
  /// The bytes of the frames received so far.
  private let assigned = Atomic<Int>(0)
  private let isSharing = Atomic<Bool>(false)
  private let isShared = Atomic<Bool>(false)

  /// Creates one packer for each two workers, and at least two for several workers: for
  /// incompressible content about a third of the time goes into the pack's hash and its file. The
  /// first `alone` bytes of frames go to the first packer, by default a quarter of a pack: saving
  /// one pack is worth more than the time that threads wait until then.
  init(
    _ packs: RunPacks, _ known: KnownBlobs, workers: Int, target: Int = PackWriter.target,
    alone: Int? = nil, hasher makeHasher: (() -> MultiStreamHasher)? = MultiStreamHasher.usual
  ) {
    (self.packs, self.target, self.alone) = (packs, target, alone ?? target / 4)
    let atFirst = min(workers, max(2, (workers + 1) / 2))
    self.atFirst = atFirst
    hashers = makeHasher.map { MultiStreamHasher.hashers(ofAtLeast: atFirst, make: $0) } ?? []
    let count = max(atFirst, hashers.count)
    all = (0..<count).map { _ in DataPacker(packs, known, target: target, isReadSoon: false) }
  }

  /// Appends a frame to an open pack. A pack that becomes full is closed in the background.
  func append(_ frame: PackFrame) throws(StoreError) {
    let full = try add(frame)
    if !full.isEmpty { share() }
    for pack in full { try packs.closeSoon(pack) }
  }

  private func add(_ frame: PackFrame) throws(StoreError) -> [PackWriter] {
    let before = assigned.add(frame.stored.count, ordering: .relaxed).oldValue
    if before < alone { return try all[0].add(frame) }
    let active = active
    for packer in active { if let full = try packer.addIfFree(frame) { return full } }
    return try active[0].add(frame)
  }

  /// The active packers, in the order in which the next frame tries them.
  var active: [DataPacker] {
    guard isShared.load(ordering: .acquiring) else { return Array(all[..<atFirst]) }
    return all.map { ($0.sharedBytes, $0) }.sorted { $0.0 < $1.0 }.map(\.1)
  }

  /// Switches to shared hashing, once.
  private func share() {
    guard !hashers.isEmpty, !isSharing.exchange(true, ordering: .relaxed) else { return }
    for (number, packer) in all.enumerated() {
      packer.share(hashers[number], first: target * (number + 1) / all.count)
    }
    isShared.store(true, ordering: .releasing)
  }

  /// Discards all open packs.
  func discard() { for packer in all { packer.discard() } }
}

/// The packer of trees and lists into packs of their own, shared by all threads. They are small and
/// few, so one frame is collected and compressed under one lock.
final class TreePacker: Sendable {
  let packs: DataPacker
  private let frames: Mutex<Frames>

  private struct Frames: ~Copyable {
    var builder: FrameBuilder
    var encoder: FrameEncoder
  }

  init(_ packs: DataPacker) throws(StoreError) {
    self.packs = packs
    let builder = try FrameBuilder(limit: FrameBuilder.treeLimit)
    let encoder = try FrameEncoder()
    frames = Mutex(Frames(builder: builder, encoder: encoder))
  }

  /// Adds a member. A frame that this closes is appended to the pack.
  func append(
    _ member: TarMember, bytes: [UInt8], blob: PackFrame.Blob
  ) throws(StoreError) {
    try frames.withLock { frames throws(StoreError) in
      if let full = try frames.builder.append(member, bytes: bytes.span, blobs: [blob]) {
        try packs.append(try frames.encoder.encode(full))
      }
    }
  }

  /// Closes the open frame.
  func flush() throws(StoreError) {
    try frames.withLock { frames throws(StoreError) in
      if let last = frames.builder.finish() { try packs.append(try frames.encoder.encode(last)) }
    }
  }
}
