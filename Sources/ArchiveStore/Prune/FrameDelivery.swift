internal import Codecs
internal import Synchronization
internal import SystemIO

/// Delivers the frames with used blobs of some packs to several threads. A large pack is read by
/// several of them, each of which reads consecutive frames. Every used blob matches its hash.
final class FrameDelivery: Sendable {
  typealias Pack = PrunePlan.Pack

  /// A receiver of frames. Each thread has its own.
  protocol Receiver: SendableMetatype {
    /// Begins frames of a pack. Returns a check for the blobs that are used.
    mutating func begin(_ pack: Pack) throws(StoreError) -> (BlobRecord) -> Bool

    /// Receives a frame. An error ends the delivery.
    mutating func receive(_ frame: PackFrames.Frame) throws(StoreError)

    /// Receives the used blobs of a frame that is damaged, or nil if the whole pack cannot be read.
    /// Returns whether to continue with the next frame of the pack.
    mutating func reportMissing(
      _ blobs: [BlobRecord]?, of pack: Pack, _ error: StoreError
    ) throws(StoreError) -> Bool

    /// Ends a pack after all threads have received its frames, unless `reportMissing` returned
    /// false for it.
    mutating func end(_ pack: Pack) throws(StoreError)

    /// Ends the work of the thread, if no error ended it.
    mutating func finish() throws(StoreError)
  }

  /// The stored bytes of a pack that one thread reads at a time: several frames, because a thread
  /// that rewrites collects what is used of neighbours in one frame.
  static let shareSize: UInt64 = 16 << 20

  private let storage: RepositoryStorage
  private let shares: Mutex<[PackShare]>
  private let isStopping: @Sendable () -> Bool
  private let state = Mutex(State())

  private struct State {
    var isInterrupted = false
    var failure: (any Error)?
  }

  /// Prepares to read packs in the given order. `isStopping` is called before each pack.
  init(
    _ packs: [Pack], from storage: RepositoryStorage, isStopping: @escaping @Sendable () -> Bool
  ) {
    (self.storage, self.isStopping) = (storage, isStopping)
    shares = Mutex(packs.flatMap { SharedPack($0).shares(of: Self.shareSize) }.reversed())
  }

  /// Delivers all packs on `threads` threads. Returns false if it was interrupted: packs that were
  /// begun are then complete. Throws the first error of a thread.
  func run<Receiver: FrameDelivery.Receiver>(
    threads: Int, _ makeReceiver: @escaping @Sendable () throws(StoreError) -> Receiver
  ) throws -> Bool {
    let count = max(1, min(threads, shares.withLock { $0.count }))
    let workers = try StoreError.wrap { () throws(SystemError) in
      try Workers(count: count, capacity: count, name: "packs")
    }
    for _ in 0..<count { workers.submit { self.work(makeReceiver) } }
    workers.finish()
    let state = state.withLock { $0 }
    if let failure = state.failure { throw failure }
    return !state.isInterrupted
  }

  private func work<Receiver: FrameDelivery.Receiver>(
    _ makeReceiver: @Sendable () throws(StoreError) -> Receiver
  ) {
    do throws(StoreError) {
      var receiver = try makeReceiver()
      var reader = try PackFrames(storage)
      while let share = next() { try deliver(share, &reader, to: &receiver) }
      try receiver.finish()
    } catch {
      state.withLock { $0.failure = $0.failure ?? error }
    }
  }

  private func next() -> PackShare? {
    if state.withLock({ $0.failure != nil }) { return nil }
    return shares.withLock { shares in
      guard let share = shares.popLast() else { return nil }
      // The shares of all packs that were begun are before the first of another one.
      guard share.number == 0, isStopping() else { return share }
      shares = []
      state.withLock { $0.isInterrupted = true }
      return nil
    }
  }

  private func deliver<Receiver: FrameDelivery.Receiver>(
    _ share: PackShare, _ reader: inout PackFrames, to receiver: inout Receiver
  ) throws(StoreError) {
    let pack = share.pack.pack
    let isUsed = try receiver.begin(pack)
    switch share.pack.open(from: storage) {
    case .success(let tables): reader.open(pack.id, tables, frames: share.frames(of: tables))
    case .failure(let error):
      guard error.kind == .damaged else { throw error }
      // The first share stands for all of them.
      guard share.number == 0 else { return }
      if try receiver.reportMissing(nil, of: pack, error) { try receiver.end(pack) }
      return
    }
    while !share.pack.isAbandoned {
      var frame: PackFrames.Frame
      do throws(StoreError) {
        guard let next = try reader.next(where: isUsed) else { break }
        frame = next
      } catch {
        guard error.kind == .damaged else { throw error }
        if try !receiver.reportMissing(reader.used, of: pack, error) { share.pack.abandon() }
        continue
      }
      try receiver.receive(frame)
      reader.reuse(&frame)
    }
    if share.pack.endShare() { try receiver.end(pack) }
  }
}

/// A pack whose frames several threads read.
private final class SharedPack: Sendable {
  let pack: PrunePlan.Pack
  private let state = Mutex(State())

  private struct State {
    /// The tables, or the error of reading them; nil before that.
    var tables: Result<PackTables, StoreError>?
    /// The shares that have not ended.
    var shares = 0
    var isAbandoned = false
  }

  init(_ pack: PrunePlan.Pack) { self.pack = pack }

  /// Divides the pack into shares of `size` stored bytes.
  func shares(of size: UInt64) -> [PackShare] {
    let count = max(1, Int((pack.size + size / 2) / size))
    state.withLock { $0.shares = count }
    return (0..<count).map { PackShare(pack: self, number: $0, count: count) }
  }

  /// Returns the pack's tables. One thread reads them while the others wait.
  func open(from storage: RepositoryStorage) -> Result<PackTables, StoreError> {
    state.withLock { state in
      if let tables = state.tables { return tables }
      let tables = Result { () throws(StoreError) in
        try PackTables.load(pack.id, size: pack.size, from: storage)
      }
      state.tables = tables
      return tables
    }
  }

  /// Whether the rest of the pack is not wanted.
  var isAbandoned: Bool { state.withLock { $0.isAbandoned } }

  func abandon() { state.withLock { $0.isAbandoned = true } }

  /// Ends a share. Returns whether it was the last one of a pack that is complete.
  func endShare() -> Bool {
    state.withLock { state in
      state.shares -= 1
      // No thread needs the tables from here on.
      if state.shares == 0 { state.tables = nil }
      return state.shares == 0 && !state.isAbandoned
    }
  }
}

/// Consecutive frames of a pack, which one thread reads.
private struct PackShare {
  let pack: SharedPack
  let number: Int
  let count: Int

  /// The frames of the share: about as many in each.
  func frames(of tables: PackTables) -> Range<Int> {
    let all = tables.frames.count
    return (number * all / count)..<((number + 1) * all / count)
  }
}
