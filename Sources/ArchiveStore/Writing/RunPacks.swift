internal import Codecs
internal import Synchronization
internal import SystemIO

/// The packs of one run, for all its threads.
///
/// A full pack becomes durable on a thread of its own, so that none who compresses waits for the
/// disk; of those that wait for it only one may, so that memory and what a crash costs are bounded.
final class RunPacks: Sendable {
  let lease: Lease
  private let status: RunStatus
  private let state: Mutex<State>

  private struct State {
    var opened = 0
    /// Packs that are durable, by their number, and in no index object yet.
    var finished: [Int: IndexBuilder.Pack] = [:]
    var count = 0
    var storedBytes: UInt64 = 0
    var lastIndex = Host.monotonicSeconds()
    /// The thread that closes packs, while there is one.
    var closer: Workers?
  }

  init(_ lease: Lease, _ status: RunStatus) {
    self.lease = lease
    self.status = status
    state = Mutex(State())
  }

  /// Packs that are durable, and their bytes.
  var counts: (packs: Int, bytes: UInt64) { state.withLock { ($0.count, $0.storedBytes) } }

  /// Opens the next pack, which so many bytes fill; it is hashed with the others of `hashes`, or by
  /// itself.
  func open(
    target: Int = PackWriter.target, isReadSoon: Bool, hashes: PackHashes? = nil
  ) throws(StoreError) -> PackWriter {
    let number = state.withLock { state in
      defer { state.opened += 1 }
      return state.opened
    }
    return try PackWriter(
      number: number, lease: lease, target: target, isReadSoon: isReadSoon, hashes: hashes)
  }

  /// Makes a pack durable, now.
  func close(_ pack: PackWriter) throws(StoreError) {
    do {
      let done = try pack.close()
      state.withLock { state in
        state.finished[pack.number] = done
        state.count += 1
        state.storedBytes += done.size
      }
    } catch {
      pack.discard()
      throw error
    }
  }

  /// Makes a pack durable, some time before `wait()` returns, if that is called after this. A failure ends
  /// the run.
  func closeSoon(_ pack: PackWriter) throws(StoreError) {
    // Another thread may be at a checkpoint: the closer that it waits for takes nothing more, also of
    // one who waits for room at it. The next one takes the pack then; else it would be lost, and what
    // its blobs are in the snapshot with it.
    while true {
      do {
        try status.check()
      } catch {
        pack.discard()
        throw error
      }
      let isTaken = try closer().submit { [self] in
        do throws(StoreError) { try close(pack) } catch { status.fail(error) }
      }
      if isTaken { return }
    }
  }

  /// Whether all packs that were opened are durable.
  var areAllClosed: Bool { state.withLock { $0.opened == $0.count } }

  /// Waits until all packs that were to be closed are, and tells of a failure.
  func wait() throws(StoreError) {
    let closer = state.withLock { state in
      defer { state.closer = nil }
      return state.closer
    }
    closer?.finish()
    try status.check()
  }

  private func closer() throws(StoreError) -> Workers {
    try state.withLock { state throws(StoreError) in
      if let closer = state.closer { return closer }
      let closer = try StoreError.wrap { () throws(SystemError) in
        try Workers(count: 1, capacity: 1, name: "packs")
      }
      state.closer = closer
      return closer
    }
  }
}

// MARK: - Index

extension RunPacks {
  /// An index object is due for so many bytes of finished packs, or after so many seconds.
  private static let indexBytes: UInt64 = 512 << 20
  private static let indexSeconds = 300.0

  var isIndexDue: Bool {
    state.withLock { state in
      Host.monotonicSeconds() - state.lastIndex >= Self.indexSeconds
        || state.finished.values.reduce(0) { $0 + $1.size } >= Self.indexBytes
    }
  }

  /// The finished packs that are in no index object yet, by their numbers.
  var unindexed: [(number: Int, pack: IndexBuilder.Pack)] {
    state.withLock { $0.finished }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// Notes that an index object has these packs.
  func noteIndexed(_ numbers: some Sequence<Int>) {
    state.withLock { state in
      for number in numbers { state.finished[number] = nil }
      state.lastIndex = Host.monotonicSeconds()
    }
  }
}
