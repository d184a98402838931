internal import Synchronization

/// Whether a run goes on, for all its threads: the first failure ends it for every one of them.
final class RunStatus: Sendable {
  private let place: String
  private let isOver = Atomic<Bool>(false)
  private let failure = Mutex<StoreError?>(nil)

  /// The status of a run that goes on; `place` is what its messages name.
  init(place: String) { self.place = place }

  /// Throws what ended the run.
  func check() throws(StoreError) {
    guard isOver.load(ordering: .acquiring) else { return }
    throw failure.withLock { $0 } ?? .invalid(place, "the session is over")
  }

  /// Ends the run with a failure, if it is the first.
  func fail(_ error: StoreError) {
    failure.withLock { $0 = $0 ?? error }
    isOver.store(true, ordering: .releasing)
  }

  /// Ends the run without a failure.
  func end() { isOver.store(true, ordering: .releasing) }

  /// Runs a step. A failure ends the run, but for one of what the caller gave.
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

  /// Ends the run with a step's failure. Where it was ended during the step, throws what ended it:
  /// with the run goes its lease, and what fails for want of that is no failure of its own.
  private func failUnlessOver(_ error: StoreError) throws(StoreError) {
    try check()
    fail(error)
  }
}
