package import ArchiveStore
package import SystemIO

/// The options of a backup besides its plan.
package struct BackupRequest: Sendable {
  package var reason: Reason
  /// The part of the device that the plan covers, as recorded in the snapshot.
  var scope = Scope.device
  /// Whether the plan covers only some of the device's containers, so that the records of the
  /// others are kept.
  var isPart = false
  /// Whether the device is locked: files that cannot be read while it is are not opened, and their
  /// versions in the last snapshot are kept (docs/data-protection.md).
  package var isLocked = false
  /// Whether bundles in new directories are read even if they appear unchanged.
  package var verifiesBundles = false
  package var tags: [String]
  /// The program and its version, as recorded in the snapshot.
  package var program: String
  /// The number of threads that read and store.
  package var workers: Int
  /// The host's cache directory, which makes the next backup fast; nil to cache nothing.
  package var cache: ByteString?
  /// The host's copies of the repository's index, if the caller has begun to check them; nil to
  /// open those in `cache`.
  var index: IndexCache?
  /// The number of bytes to keep free on the repository's volume (default: a twentieth of the
  /// volume, at most 10 GiB).
  package var keepFree: UInt64?
  /// Whether the size of the new data is checked against the free space of the repository's volume
  /// first. Without the check, a backup that does not fit ends when the volume is full, and can be
  /// continued.
  package var checksSpace = true
  /// The number of bytes that the caller will write to the repository's volume afterwards, which
  /// must also fit.
  var neededAfterwards: UInt64 = 0
  /// Whether no snapshot is written if it would equal the source's last one.
  package var skipsUnchanged: Bool
  /// The maximum number of seconds between checkpoints.
  var checkpointSeconds: Double
  /// The number of seconds to wait for busy databases at the end of the run, for all of them
  /// together.
  package var databaseTimeout: Double
  /// The source's lock, if the caller took it before it scanned the source; nil to let the
  /// operation take it.
  var lock: SourceLock?
  /// Returns the current time (default: the system clock, and for the start of the run the clock of
  /// the file system that holds the state).
  package var now: (@Sendable () -> Timestamp)?
  /// The reliability of the times of the source's files (default: determined for each volume).
  package var times: VolumeTimes?
  /// The boot ID of the running kernel, or nil if it is unknown.
  var boot = Host.bootID
  /// Whether the work should end early. Called repeatedly.
  package var isStopping: @Sendable () -> Bool
  /// The counters that report the progress.
  package var counters: ProgressCounters
  /// The maximum number of data classes that the snapshot can record.
  var classLimit = ClassLimit()

  /// Creates a request.
  package init(
    reason: Reason = .manual, tags: [String] = [], program: String,
    workers: Int = Host.processors, cache: ByteString? = nil, keepFree: UInt64? = nil,
    skipsUnchanged: Bool = false, checkpointSeconds: Double = 300,
    databaseTimeout: Double = 10,
    now: (@Sendable () -> Timestamp)? = nil,
    isStopping: @escaping @Sendable () -> Bool = { false },
    counters: ProgressCounters = ProgressCounters()
  ) {
    self.reason = reason
    self.tags = tags
    self.program = program
    self.workers = max(1, workers)
    self.cache = cache
    self.keepFree = keepFree
    self.skipsUnchanged = skipsUnchanged
    self.checkpointSeconds = checkpointSeconds
    self.databaseTimeout = databaseTimeout
    lock = nil
    self.now = now
    self.isStopping = isStopping
    self.counters = counters
  }
}
