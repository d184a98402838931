internal import Codecs
internal import Synchronization
internal import SystemIO

/// Delivers the frames with used blobs of some packs to several threads. Each pack is read by one
/// thread, from its first frame to its last. Every used blob matches its hash.
final class FrameDelivery: Sendable {
  typealias Pack = PrunePlan.Pack

  /// A receiver of frames. Each thread has its own.
  protocol Receiver: SendableMetatype {
    /// Begins a pack. Returns a check for the blobs that are used.
    mutating func begin(_ pack: Pack) throws(StoreError) -> (BlobRecord) -> Bool

    /// Receives a frame. An error ends the delivery.
    mutating func receive(_ frame: PackFrames.Frame) throws(StoreError)

    /// Receives the used blobs of a frame that is damaged, or nil if the whole pack cannot be read.
    /// Returns whether to continue with the next frame of the pack.
    mutating func reportMissing(
      _ blobs: [BlobRecord]?, of pack: Pack, _ error: StoreError
    ) throws(StoreError) -> Bool

    /// Ends a pack, unless `reportMissing` returned false for it.
    mutating func end(_ pack: Pack) throws(StoreError)

    /// Ends the work of the thread, if no error ended it.
    mutating func finish() throws(StoreError)
  }

  private let storage: RepositoryStorage
  private let limit: UnusedShare
  private let queue: Mutex<[Pack]>
  private let isStopping: @Sendable () -> Bool
  private let state = Mutex(State())

  private struct State {
    var isInterrupted = false
    var failure: (any Error)?
  }

  /// Prepares to read packs in the given order; frames may move unchanged up to an unused share.
  /// `isStopping` is called before each pack.
  init(
    _ packs: [Pack], from storage: RepositoryStorage, movingUpTo limit: UnusedShare = .none,
    isStopping: @escaping @Sendable () -> Bool
  ) {
    (self.storage, self.limit, self.isStopping) = (storage, limit, isStopping)
    queue = Mutex(packs.reversed())
  }

  /// Delivers all packs on `threads` threads. Returns false if it was interrupted: packs that were
  /// begun are then complete. Throws the first error of a thread.
  func run<Receiver: FrameDelivery.Receiver>(
    threads: Int, _ makeReceiver: @escaping @Sendable () throws(StoreError) -> Receiver
  ) throws -> Bool {
    let count = max(1, min(threads, queue.withLock { $0.count }))
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
      var reader = try PackFrames(storage, movingUpTo: limit)
      while let pack = next() { try deliver(pack, &reader, to: &receiver) }
      try receiver.finish()
    } catch {
      state.withLock { $0.failure = $0.failure ?? error }
    }
  }

  private func next() -> Pack? {
    if state.withLock({ $0.failure != nil }) { return nil }
    guard let pack = queue.withLock({ $0.popLast() }) else { return nil }
    guard !isStopping() else {
      state.withLock { $0.isInterrupted = true }
      return nil
    }
    return pack
  }

  private func deliver<Receiver: FrameDelivery.Receiver>(
    _ pack: Pack, _ reader: inout PackFrames, to receiver: inout Receiver
  ) throws(StoreError) {
    let isUsed = try receiver.begin(pack)
    do throws(StoreError) {
      try reader.open(pack.id, size: pack.size)
    } catch {
      guard error.kind == .damaged else { throw error }
      if try receiver.reportMissing(nil, of: pack, error) { try receiver.end(pack) }
      return
    }
    while true {
      var frame: PackFrames.Frame
      do throws(StoreError) {
        guard let next = try reader.next(where: isUsed) else { break }
        frame = next
      } catch {
        guard error.kind == .damaged else { throw error }
        guard try receiver.reportMissing(reader.used, of: pack, error) else { return }
        continue
      }
      try receiver.receive(frame)
      reader.reuse(&frame)
    }
    try receiver.end(pack)
  }
}
