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
    var hashes: PackHashes?
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

  /// Hashes packs opened from now on together with the others of `hashes`. The first of them, and
  /// the first after each checkpoint, is full at `first` bytes.
  func share(_ hashes: PackHashes, first: Int) {
    state.withLock { state in
      state.first = Next(target: first, hashes: hashes)
      state.next = state.first
    }
  }

  /// Appends a frame to the open pack. A pack that becomes full is closed in the background.
  func append(_ frame: PackFrame) throws(StoreError) {
    for pack in try put(frame) { try packs.closeSoon(pack) }
  }

  /// Appends a frame to the open pack, and returns the packs that became full.
  func put(_ frame: PackFrame) throws(StoreError) -> [PackWriter] {
    try state.withLock { state throws(StoreError) in try put(frame, into: &state) }
  }

  /// Appends a frame like `put`, or returns nil if another thread is appending.
  func putIfFree(_ frame: PackFrame) throws(StoreError) -> [PackWriter]? {
    try state.withLockIfAvailable { state throws(StoreError) in try put(frame, into: &state) }
  }

  private func put(
    _ frame: PackFrame, into state: inout State
  ) throws(StoreError) -> [PackWriter] {
    var full: [PackWriter] = []
    if let pack = state.open, pack.isFull(before: frame.blobs.count) {
      full.append(pack)
      state.open = nil
    }
    let pack = try open(&state)
    let number = try pack.append(frame)
    known.place(frame.blobs, pack: pack.number, frame: number)
    if state.first.hashes != nil { shared.add(frame.stored.count, ordering: .relaxed) }
    if pack.isFull(before: 0) {
      full.append(pack)
      state.open = nil
    }
    return full
  }

  private func open(_ state: inout State) throws(StoreError) -> PackWriter {
    if let pack = state.open { return pack }
    let pack = try packs.open(
      target: state.next.target, isReadSoon: isReadSoon, hashes: state.next.hashes)
    state.open = pack
    state.next.target = target
    return pack
  }

  /// Removes the open pack and returns it to be closed. The next frame opens another.
  func takeOpen() -> PackWriter? {
    state.withLock { state in
      defer { (state.open, state.next) = (nil, state.first) }
      return state.open
    }
  }

  /// Discards the open pack.
  func discard() { takeOpen()?.discard() }
}
