internal import ArchiveStore
internal import Synchronization
internal import SystemIO

/// What the threads of a backup share.
final class BackupRun: Sendable {
  let trees: [SelectedTree]
  let known: [UnchangedEntries]
  let links: HardLinks
  let session: WritingSession
  let source: SourceState
  let request: BackupRequest
  let queue: WorkQueue
  let assembly: TreeSaver
  /// When the run began, for the files of each container.
  private let clocks: [RunClock]
  private let state: Mutex<State>

  private struct State {
    var findings = BackupFindings()
    /// Directories that could not be entered.
    var closed: Set<EntryID> = []
    /// What ended the work.
    var failure: (any Error)?
    /// Until when busy databases are waited for, once the first of them is.
    var databaseDeadline: Double?
    var lastCheckpoint: Double
    var isAtCheckpoint = false
  }

  init(
    _ trees: [SelectedTree], _ known: [UnchangedEntries], _ links: HardLinks,
    _ session: WritingSession,
    _ source: SourceState, _ request: BackupRequest, began: Timestamp
  ) {
    (self.trees, self.known, self.links) = (trees, known, links)
    (self.session, self.source, self.request) = (session, source, request)
    let clock =
      request.now.map { RunClock(start: $0()) } ?? source.clock.starting(noLaterThan: began)
    clocks = trees.map { tree in
      if known[tree.number].root != nil { return clock }
      return request.times.map { clock.reading([$0]) } ?? clock.reading(tree.scan)
    }
    queue = WorkQueue(trees, known, links)
    assembly = TreeSaver(trees, known, session, source, clocks)
    state = Mutex(State(lastCheckpoint: Host.monotonicSeconds()))
  }

  /// What was found amiss so far.
  var findings: BackupFindings { state.withLock { $0.findings } }

  /// When the run began, by the clock that gave the times of a container's files.
  func clock(of container: Int) -> RunClock { clocks[container] }

  /// The time of the moment.
  var now: Timestamp { request.now?() ?? Host.now() }

  /// Reads and stores everything with several threads.
  ///
  /// - Throws: what ended the work; `interrupted` when it was asked to stop.
  func work() throws {
    let workers = try Workers(
      count: request.workers, capacity: request.workers, name: "backup")
    for _ in 0..<request.workers {
      workers.submit {
        do {
          var worker = try BackupWorker(self)
          try worker.work()
        } catch { self.end(by: error) }
      }
    }
    workers.finish()
    if let failure = state.withLock({ $0.failure }) { throw failure }
  }

  /// Ends a thread's work when it is to end early, or another thread's has failed.
  func requireGoingOn() throws(LifecycleError) {
    if request.isStopping() { throw .interrupted }
  }

  /// Ends the work; the first reason counts.
  func end(by error: any Error) {
    state.withLock { $0.failure = $0.failure ?? error }
    queue.stop()
  }

  // MARK: - What is amiss

  /// Notes what could not be read; what is gone by now is no longer the policy's to keep.
  func miss(_ entry: EntryID, _ path: ByteString, _ error: SystemError) {
    request.counters.didFail()
    state.withLock { $0.findings.miss(entry, path, error) }
  }

  /// Notes what is stored but not as it should be.
  func note(_ note: (inout BackupFindings) -> Void) { state.withLock { note(&$0.findings) } }

  /// Leaves a directory out that cannot be entered, once.
  func close(_ directory: EntryID, _ error: SystemError) throws {
    guard state.withLock({ $0.closed.insert(directory).inserted }) else { return }
    let scan = trees[Int(directory.container)].scan
    // What the scan could not list it has named already.
    if scan.entries[Int(directory.index)].isUnreadable {
      state.withLock { _ = $0.findings.missing.insert(directory) }
    } else {
      miss(directory, scan.logicalPath(Int(directory.index)), error)
    }
    try assembly.miss(directory)
  }

  /// Whether a directory or one above it could not be entered.
  func isClosed(_ directory: EntryID) -> Bool {
    state.withLock { state in
      if state.closed.isEmpty { return false }
      let scan = trees[Int(directory.container)].scan
      var at = Int(directory.index)
      while !state.closed.contains(EntryID(Int(directory.container), at)) {
        if at == 0 { return false }
        at = Int(scan.entries[at].parent)
      }
      return true
    }
  }

  /// Until when busy databases are waited for.
  var databaseDeadline: Double {
    state.withLock { state in
      let deadline =
        state.databaseDeadline ?? Host.monotonicSeconds() + request.databaseTimeout
      state.databaseDeadline = deadline
      return deadline
    }
  }

  /// Makes sure that of all that was begun nothing is lacking but what is named as missing. A mistake
  /// of the program must not make a snapshot that lacks something without a word.
  func requireWhole() throws {
    for directory in assembly.begun where !isClosed(directory) {
      throw LifecycleError.uncertain(
        trees[Int(directory.container)].scan.logicalPath(Int(directory.index)))
    }
    for tree in trees where !tree.isEmpty {
      let isThere = assembly.root(tree.number) != nil || known[tree.number].root != nil
      guard isThere || isClosed(tree.id(0)) else {
        throw LifecycleError.uncertain(tree.scan.logicalPath(0))
      }
    }
  }

  // MARK: - Checkpoints

  /// Makes what is done good for the next run, when that is due and no other thread is at it;
  /// `flush` hands over what the calling thread has gathered.
  func checkpointIfDue(_ flush: () throws -> Void = {}) throws {
    let isDue = state.withLock { state in
      guard !state.isAtCheckpoint,
        session.checkpointIsDue
          || Host.monotonicSeconds() - state.lastCheckpoint >= request.checkpointSeconds
      else { return false }
      state.isAtCheckpoint = true
      return true
    }
    guard isDue else { return }
    defer {
      state.withLock {
        $0.isAtCheckpoint = false
        $0.lastCheckpoint = Host.monotonicSeconds()
      }
    }
    try flush()
    try checkpoint()
  }

  /// Makes what is done good for the next run: first what is stored, then the notes of it. Notes
  /// that cannot be kept cost time, not data.
  func checkpoint() throws {
    try session.checkpoint()
    do throws(SystemError) {
      try source.checkpoint()
    } catch { state.withLock { $0.findings.note("what is done so far is not noted: \(error)") } }
  }
}

extension LifecycleError {
  /// The work was asked to end before its snapshot was made.
  public static let interrupted = LifecycleError(
    .interrupted, "the backup was interrupted: no snapshot was made",
    hint: "run it again: what is done already is not done twice")
}
