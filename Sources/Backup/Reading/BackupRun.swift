internal import ArchiveStore
internal import DeviceScan
internal import Synchronization
internal import SystemIO

/// The state that the threads of a backup share.
final class BackupRun: Sendable {
  let trees: [SelectedTree]
  let known: [UnchangedEntries]
  let links: HardLinks
  let session: WritingSession
  let source: SourceState
  let request: BackupRequest
  let queue: WorkQueue
  let saver: TreeSaver
  /// The start of the run for each container, by the clock of the container's files.
  private let clocks: [RunClock]
  private let state: Mutex<State>

  private struct State {
    var findings = Findings()
    /// Directories that could not be entered.
    var closed: Set<EntryID> = []
    /// The error that ended the work.
    var failure: (any Error)?
    /// The deadline for busy databases, once the first of them has to be waited for.
    var databaseDeadline: Double?
    var lastCheckpoint: Double
    var isAtCheckpoint = false
  }

  init(
    _ trees: [SelectedTree], known: [UnchangedEntries], links: HardLinks, session: WritingSession,
    source: SourceState, request: BackupRequest, began: Timestamp
  ) {
    (self.trees, self.known, self.links) = (trees, known, links)
    (self.session, self.source, self.request) = (session, source, request)
    let clock =
      request.now.map { RunClock(start: $0()) } ?? source.clock.starting(noLaterThan: began)
    clocks = trees.map { tree in
      if known[tree.number].root != nil { return clock }
      return request.times.map { clock.reading([$0]) } ?? clock.reading(tree.scan.volumes)
    }
    queue = WorkQueue(trees, known: known, links: links)
    saver = TreeSaver(trees, known: known, session: session, source: source, clocks: clocks)
    state = Mutex(State(lastCheckpoint: Host.monotonicSeconds()))
  }

  /// The problems found so far.
  var findings: Findings { state.withLock { $0.findings } }

  /// Returns the start of the run by the clock that sets the times of a container's files.
  func clock(of container: Int) -> RunClock { clocks[container] }

  /// The current time.
  var now: Timestamp { request.now?() ?? Host.now() }

  /// Reads and stores all entries with several threads.
  ///
  /// - Throws: the error that ended the work; `interrupted` if it was asked to stop.
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

  /// Throws `interrupted` if the work was asked to stop.
  func checkNotStopped() throws(OperationError) {
    if request.isStopping() { throw .interrupted }
  }

  /// Ends the work. Only the first error is kept.
  func end(by error: any Error) {
    state.withLock { $0.failure = $0.failure ?? error }
    queue.stop()
  }

  // MARK: - Problems

  /// Records an entry that could not be read.
  func addUnreadable(_ entry: EntryID, at path: ByteString, error: SystemError) {
    request.counters.didFail()
    state.withLock { $0.findings.addUnreadable(entry, at: path, error: error) }
  }

  /// Updates the findings.
  func record(_ change: (inout Findings) -> Void) { state.withLock { change(&$0.findings) } }

  /// Omits a directory that could not be entered. Only the first call has an effect.
  func close(_ directory: EntryID, _ error: SystemError) throws {
    guard state.withLock({ $0.closed.insert(directory).inserted }) else { return }
    let scan = trees[Int(directory.container)].scan
    let entry = scan.entries[Int(directory.index)]
    // The scan has already reported a directory that it could not list, and a mount that it did not
    // enter, whose program may be gone.
    let isSkipped =
      entry.status.isMountPoint && scan.mounts.contains(scan.path(Int(directory.index)))
    if entry.isUnreadable || isSkipped {
      state.withLock { _ = $0.findings.missing.insert(directory) }
    } else {
      addUnreadable(directory, at: trees.logicalPath(of: directory), error: error)
    }
    try saver.addUnreadable(directory)
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

  /// The deadline for busy databases, set by the first use.
  var databaseDeadline: Double {
    state.withLock { state in
      let deadline =
        state.databaseDeadline ?? Host.monotonicSeconds() + request.databaseTimeout
      state.databaseDeadline = deadline
      return deadline
    }
  }

  /// Checks that every directory that was begun is complete or reported as missing. A bug must not
  /// produce a snapshot with unreported gaps.
  func requireWhole() throws {
    for directory in saver.begun where !isClosed(directory) {
      throw OperationError.uncertain(trees.logicalPath(of: directory))
    }
    for tree in trees where !tree.isEmpty {
      let isThere = saver.root(tree.number) != nil || known[tree.number].root != nil
      guard isThere || isClosed(tree.id(0)) else {
        throw OperationError.uncertain(tree.scan.logicalPath(0))
      }
    }
  }

  // MARK: - Checkpoints

  /// Makes a checkpoint if one is due and no other thread is making one; `flush` stores the data
  /// that the calling thread has buffered.
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

  /// Makes a checkpoint for the next run: first of the stored data, then of the records about it.
  /// Records that cannot be written cost time, not data.
  func checkpoint() throws {
    try session.checkpoint()
    do throws(SystemError) {
      try source.checkpoint()
    } catch { state.withLock { $0.findings.record("the checkpoint was not written: \(error)") } }
  }
}

extension BackupRun {
  /// The problems that a backup found, and the differences between its scan and the stored data.
  struct Findings: Sendable {
    /// Entries included by the policy that could not be read.
    private(set) var unreadable: [PathRemark] = []
    /// Entries in the snapshot that have a warning.
    private(set) var warnings: [PathRemark] = []
    /// Remarks that concern no single path.
    private(set) var remarks: [String] = []
    /// Entries missing from the snapshot, with everything below them.
    var missing: Set<EntryID> = []
    /// Missing entries that were removed or replaced after the scan.
    private(set) var vanished: Set<EntryID> = []
    /// The sizes of files whose size at reading differs from the scanned one.
    var sizes: [EntryID: UInt64] = [:]
    /// The directories of stores in which files appeared or vanished between the scan and the
    /// reading of a list of their files.
    var changedStores: Set<EntryID> = []

    /// Files that were not opened because the device is locked.
    private(set) var waiting: [LockedFile] = []
    /// The capture method of each database.
    private(set) var databases: [DatabaseRecord] = []
    /// The databases with a journal that may be that of a committed transaction.
    var undecided: Set<ByteString> = []
    /// The stores whose files were replaced in every round, and the mapped databases that changed
    /// each time they were read: their copies may be unusable.
    private(set) var restlessDatabases: Set<ByteString> = []
    /// Files created after the scan, each with the entry whose data class it has.
    private(set) var extras: [(owner: EntryID, size: UInt64)] = []

    /// Records a file that was not opened because the device is locked. Without an earlier version
    /// it is missing.
    mutating func addWaiting(_ entry: EntryID, _ file: LockedFile) {
      waiting.append(file)
      if !file.hasEarlier { missing.insert(entry) }
    }

    /// Records how a database was captured.
    mutating func record(_ database: DatabaseRecord) { databases.append(database) }

    /// Records a file created after the scan.
    mutating func addExtra(of owner: EntryID, size: UInt64) { extras.append((owner, size)) }

    /// Records an entry that could not be read. An entry removed since the scan is only a warning.
    mutating func addUnreadable(_ entry: EntryID, at path: ByteString, error: SystemError) {
      missing.insert(entry)
      if error.isGoneOrReplaced { vanished.insert(entry) }
      addUnreadablePart(path, error)
    }

    /// Records data of an entry that could not be read. Data removed since the scan is only a
    /// warning.
    mutating func addUnreadablePart(_ path: ByteString, _ error: SystemError) {
      if error.isMissing {
        warn(path, "it was removed during the backup")
      } else {
        unreadable.append(PathRemark(path: path, remark: error.reason))
      }
    }

    /// Records entries that were moved or replaced in every round, and stores whose files were.
    mutating func record(moved paths: [ByteString], stores: [ByteString]) {
      let moved = Set(paths)
      warnings.removeAll { moved.contains($0.path) }
      unreadable.removeAll { moved.contains($0.path) }
      unreadable += paths.map {
        PathRemark(
          path: $0,
          remark: "it was moved or replaced repeatedly during the backup: run the backup again"
        )
      }
      for store in stores where !moved.contains(where: { store.isWithin($0) }) {
        restlessDatabases.insert(store)
        warn(
          store,
          "its files were replaced repeatedly during the backup, and this copy may lack some that "
            + "its manifest names: close its app, and run the backup again")
      }
    }

    /// Records a file that changed each time it was read.
    mutating func recordChanging(_ path: ByteString, isMapped: Bool) {
      if isMapped { restlessDatabases.insert(path) }
      warn(
        path,
        isMapped
          ? "the database changed each time it was read, and this copy may be damaged: close its "
            + "app, and run the backup again"
          : "it changed each time it was read; the last version read is stored")
    }

    mutating func warn(_ path: ByteString, _ remark: String) {
      warnings.append(PathRemark(path: path, remark: remark))
    }

    mutating func record(_ remark: String) { remarks.append(remark) }
  }
}
