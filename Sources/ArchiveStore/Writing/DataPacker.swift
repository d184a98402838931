internal import Codecs
internal import Synchronization
internal import SystemIO

/// Where finished frames of one sort go: the pack that is open, and the next when it is full. For
/// any thread.
final class DataPacker: Sendable {
  private let packs: RunPacks
  private let known: KnownBlobs
  private let target: Int
  private let isReadSoon: Bool
  private let state: Mutex<State>
  /// Bytes that have come since packs are opened to be hashed with others. Ways that get as many of them have
  /// as many that are not hashed yet.
  private let shared = Atomic<Int>(0)

  private struct State {
    var open: PackWriter?
    var next: Next
    /// How packs are opened after a checkpoint.
    var first: Next
  }

  /// How the next pack is opened.
  private struct Next {
    var target: Int
    var hashes: PackHashes?
  }

  /// Packs are full with `target` bytes. The next commands read those that have trees; what files
  /// hold is read when something is lost.
  init(
    _ packs: RunPacks, _ known: KnownBlobs, target: Int = PackWriter.target, isReadSoon: Bool
  ) {
    (self.packs, self.known, self.target, self.isReadSoon) = (packs, known, target, isReadSoon)
    let next = Next(target: target)
    state = Mutex(State(next: next, first: next))
  }

  var sharedBytes: Int { shared.load(ordering: .relaxed) }

  /// Lets the packs that are opened from now on be hashed with the others of `hashes`. The first of
  /// them, and the first after each checkpoint, is full with `first` bytes.
  func share(_ hashes: PackHashes, first: Int) {
    state.withLock { state in
      state.first = Next(target: first, hashes: hashes)
      state.next = state.first
    }
  }

  /// Appends a frame to the open pack; a pack that is full then is closed soon.
  func append(_ frame: PackFrame) throws(StoreError) {
    for pack in try put(frame) { try packs.closeSoon(pack) }
  }

  /// Appends a frame to the open pack, and gives the packs that are full then.
  func put(_ frame: PackFrame) throws(StoreError) -> [PackWriter] {
    try state.withLock { state throws(StoreError) in try put(frame, into: &state) }
  }

  /// The same, but for when another thread does just now: then nothing.
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

  /// Takes the open pack out, for who closes it; the next frame opens another.
  func takeOpen() -> PackWriter? {
    state.withLock { state in
      defer { (state.open, state.next) = (nil, state.first) }
      return state.open
    }
  }

  /// Removes what is open.
  func discard() { takeOpen()?.discard() }
}
