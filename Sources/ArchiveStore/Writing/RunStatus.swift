internal import Synchronization

/// The status of a run, shared by all threads. The first failure ends it for all of them.
final class RunStatus: Sendable {
  private let place: String
  private let isOver = Atomic<Bool>(false)
  private let failure = Mutex<StoreError?>(nil)

  /// Creates the status of an active run; `place` is the subject of its errors.
  init(place: String) { self.place = place }

  /// Throws the failure that ended the run, if it has ended.
  func check() throws(StoreError) {
    guard isOver.load(ordering: .acquiring) else { return }
    throw failure.withLock { $0 } ?? .invalid(place, "the session is over")
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
