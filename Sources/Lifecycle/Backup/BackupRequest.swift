public import ArchiveStore
public import SystemIO

/// What a backup is told besides its plan.
public struct BackupRequest: Sendable {
  public var reason: Reason
  /// What of the device the plan is of, as the snapshot says.
  public var scope = Scope.device
  /// Whether the plan is of a part of the device's containers, so that what is known of the others
  /// stays.
  public var isPart = false
  /// Whether bundles are read that are in other directories than before, though they look the same.
  public var verifiesBundles = false
  public var tags: [String]
  /// The program and its version, as the snapshot names it.
  public var program: String
  /// How many threads read and store.
  public var workers: Int
  /// The directory in which the host keeps what makes the next backup quick; nothing is kept without.
  public var cache: ByteString?
  /// The host's copies of the repository's index, where the caller has begun to check them; else the
  /// operation opens those in `cache`.
  public var index: IndexCache?
  /// Bytes that stay free on the repository's volume; a twentieth of it, at most 10 GiB, unless
  /// said.
  public var keepFree: UInt64?
  /// Whether what is new is checked against the free space of the repository's volume first. Without
  /// it a backup for which there is no room ends where the volume is full, and can be continued.
  public var checksSpace = true
  /// Bytes that whoever asked writes on the repository's volume afterwards, and that must find room there,
  /// too.
  public var neededAfterwards: UInt64 = 0
  /// Whether no snapshot is written when it would hold what the source's last one holds.
  public var skipsUnchanged: Bool
  /// At the latest after so many seconds of work what is done is made good for the next run.
  public var checkpointSeconds: Double
  /// How long, in seconds, databases that are busy at the end of the run are waited for, all of
  /// them together.
  public var databaseTimeout: Double
  /// The source's lock, where the caller took it before it looked at the source; else the operation
  /// takes it.
  public var lock: SourceLock?
  /// What the clock shows; the system's own, and for the start of the run that of the file system
  /// on which the state is kept, unless said.
  public var now: (@Sendable () -> Timestamp)?
  /// What the times of the source's files are worth; asked of each volume, unless said.
  public var times: VolumeTimes?
  /// Asked again and again: whether the work is to end early.
  public var isStopping: @Sendable () -> Bool
  /// Where the work tells how far it is.
  public var counters: ProgressCounters
  /// For how many data classes the snapshot has room.
  var classBound = ClassLimit()

  /// Makes a request.
  public init(
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
