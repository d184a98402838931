internal import Codecs
internal import Synchronization
internal import SystemIO

/// The packs of one run, shared by all threads.
///
/// A full pack becomes durable on a thread of its own, so that compression does not wait for the
/// disk. Only one further pack may wait for that thread, which bounds memory and the loss in a
/// crash. Another host answers later, and several packs are on their way to it.
final class RunPacks: Sendable {
  let lease: Lease
  private let status: RunStatus
  private let state: Mutex<State>

  private struct State {
    var opened = 0
    /// The durable packs that are in no index object yet, by their number.
    var finished: [Int: PackTables.Pack] = [:]
    var count = 0
    var storedBytes: UInt64 = 0
    var lastIndex = Host.monotonicSeconds()
    /// The thread that closes packs, while there is one.
    var closer: Workers?
  }

  /// The number of packs that are made durable at once. A storage may permit fewer transfers.
  private let closers: Int
  private static let closersOfOtherHosts = 4

  init(_ lease: Lease, _ status: RunStatus) {
    self.lease = lease
    closers = lease.storage.isOnAnotherHost ? Self.closersOfOtherHosts : 1
    self.status = status
    state = Mutex(State())
  }

  /// The number of durable packs and their bytes.
  var counts: (packs: Int, bytes: UInt64) { state.withLock { ($0.count, $0.storedBytes) } }

  /// Opens the next pack, which is full at `target` bytes. It is hashed with the others of
  /// `hasher`, or alone.
  func open(
    target: Int = PackWriter.target, isReadSoon: Bool, hasher: MultiStreamHasher? = nil
  ) throws(StoreError) -> PackWriter {
    let number = state.withLock { state in
      defer { state.opened += 1 }
      return state.opened
    }
    return try PackWriter(
      number: number, lease: lease, target: target, isReadSoon: isReadSoon, hasher: hasher)
  }

  /// Makes a pack durable now.
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

  /// Makes a pack durable in the background, before a later `wait()` returns. A failure ends the
  /// run.
  func closeSoon(_ pack: PackWriter) throws(StoreError) {
    // Another thread may be at a checkpoint. The closer for which it waits accepts no more packs,
    // not even from a thread that waits for room. The next closer then takes the pack; otherwise
    // the pack would be lost and its blobs with it.
    while true {
      do {
        try status.check()
      } catch {
        pack.discard()
        throw error
      }
      let isAccepted = try closer().submit { [self] in
        do throws(StoreError) { try close(pack) } catch { status.fail(error) }
      }
      if isAccepted { return }
    }
  }

  /// Whether all opened packs are durable.
  var areAllClosed: Bool { state.withLock { $0.opened == $0.count } }

  /// Waits until all packs passed to `closeSoon` are closed, and throws if the run has failed.
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
        try Workers(count: closers, capacity: closers, name: "packs")
      }
      state.closer = closer
      return closer
    }
  }
}

// MARK: - Index

extension RunPacks {
  /// The bytes of finished packs, and the seconds, after which an index object is due.
  private static let indexBytes: UInt64 = 512 << 20
  private static let indexSeconds = 300.0

  var isIndexDue: Bool {
    state.withLock { state in
      Host.monotonicSeconds() - state.lastIndex >= Self.indexSeconds
        || state.finished.values.reduce(0) { $0 + $1.size } >= Self.indexBytes
    }
  }

  /// The finished packs that are in no index object yet, ordered by number.
  var unindexed: [(number: Int, pack: PackTables.Pack)] {
    state.withLock { $0.finished }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// Records that an index object names these packs.
  func recordIndexed(_ numbers: some Sequence<Int>) {
    state.withLock { state in
      for number in numbers { state.finished[number] = nil }
      state.lastIndex = Host.monotonicSeconds()
    }
  }
}

/// The status of a run, shared by all threads. The first failure ends it for all of them.
final class RunStatus: Sendable {
  private let location: String
  private let isOver = Atomic<Bool>(false)
  private let failure = Mutex<StoreError?>(nil)

  /// Creates the status of an active run; `location` is the subject of its errors.
  init(location: String) { self.location = location }

  /// Throws the failure that ended the run, if it has ended.
  func check() throws(StoreError) {
    guard isOver.load(ordering: .acquiring) else { return }
    throw failure.withLock { $0 } ?? .invalid(location, "the session is over")
  }

  /// Ends the run with a failure, unless it has failed before.
  func fail(_ error: StoreError) {
    failure.withLock { $0 = $0 ?? error }
    isOver.store(true, ordering: .releasing)
  }

  /// Ends the run without a failure.
  func end() { isOver.store(true, ordering: .releasing) }

  /// Runs a step. A failure ends the run, unless it is caused by invalid input of the caller.
  func step<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    try check()
    do {
      return try body()
    } catch {
      if error.code != .invalid { try failUnlessOver(error) }
      throw error
    }
  }

  /// Runs a step that stores claimed blobs, so that any failure must end the run.
  func mustStep<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    try check()
    do {
      return try body()
    } catch {
      try failUnlessOver(error)
      throw error
    }
  }

  /// Ends the run with the failure of a step. If the run was ended during the step, throws the
  /// original failure instead: the lease is released with the run, and errors that result from that
  /// are not causes.
  private func failUnlessOver(_ error: StoreError) throws(StoreError) {
    try check()
    fail(error)
  }
}
