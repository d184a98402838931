public import Codecs
public import SystemIO

/// Checks that a repository conforms to its format and that everything its snapshots need exists
/// and is intact, and reports what is lost.
///
/// Changes nothing. A check that reads packs takes a reader's lease if it can, so that a prune
/// removes none of them meanwhile. A concurrent backup or prune is not reported as damage: if
/// something is missing and the repository has changed since, the check starts again. It keeps the
/// index, the ids of the trees, and one frame for each worker in memory.
public struct RepositoryCheck: Sendable {
  let repository: Repository
  let reading: Reading
  let rounds: CheckRoundFile?
  let headCache: SnapshotHeadCache?
  let workers: Int
  let counters: ProgressCounters
  let isStopping: @Sendable () -> Bool

  /// Prepares a check that reads packs with `workers` threads. `isStopping` is called often, on any
  /// thread; if it returns true, the check throws `interrupted`.
  ///
  /// - Parameters:
  ///   - rounds: the progress of earlier checks of a fraction; nil for random packs.
  ///   - headCache: the snapshots that this host knows, which are lost if none exists.
  public init(
    _ repository: Repository, reading: Reading = .trees, rounds: CheckRoundFile? = nil,
    headCache: SnapshotHeadCache? = nil, workers: Int,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.repository = repository
    self.reading = reading
    self.rounds = rounds
    self.headCache = headCache
    self.workers = max(1, workers)
    self.counters = counters
    self.isStopping = isStopping
  }

  /// Runs the check.
  ///
  /// - Throws: `StoreError` if the repository cannot be checked at all, or `interrupted`.
  public func run() throws -> RepositoryCheck.Result {
    let start = Host.monotonicSeconds()
    let lease = reading == .trees ? nil : ReaderLease.ifPossible(repository)
    let check = lease.map { holding($0) } ?? self
    var run = try Run(check, besides: lease?.name)
    for _ in 1..<Self.maximumAttempts where run.hasDamage {
      guard try RepositoryInventory(repository.storage, besides: lease?.name) != run.inventory
      else { break }
      run = try Run(check, besides: lease?.name)
    }
    return RepositoryCheck.Result(run: run, start: start)
  }

  /// Returns the same check with a lease that is held as long as it or its result exists: the
  /// affected paths are read later.
  private func holding(_ lease: ReaderLease) -> RepositoryCheck {
    RepositoryCheck(
      repository, reading: reading, rounds: rounds, headCache: headCache, workers: workers,
      counters: counters
    ) { [isStopping] in withExtendedLifetime(lease) { isStopping() } }
  }

  /// The maximum number of attempts to check a repository that keeps changing.
  private static let maximumAttempts = 3

  func checkNotStopped() throws(StoreError) {
    guard isStopping() else { return }
    throw .interrupted(
      "finish the check of", repository.location,
      hint: "run it again; '--read-data-subset 1/4' reads a quarter of the data, '2/4' the next")
  }
}

extension RepositoryCheck {
  /// The result of a check. The affected paths may be many, and are determined while they are
  /// reported.
  public struct Result {
    let run: Run
    let start: Double

    /// Passes the findings to `body`: damaged objects, snapshots that are not accepted, the
    /// affected paths, then remarks.
    ///
    /// - Throws: `StoreError`, including `interrupted`, and any error of `body`.
    public func forEachFinding(_ body: (Finding) throws -> Void) throws -> Report {
      var report = run.report
      try run.forEachFinding { finding in
        report.count(finding)
        try body(finding)
      }
      report.seconds = Host.monotonicSeconds() - start
      return report
    }
  }

  /// The amount of a repository's data that a check reads.
  public enum Reading: Sendable, Hashable {
    /// Trees only. Of packs only existence and size are checked.
    case trees
    /// Every pack completely.
    case everything
    /// Packs with this fraction of the stored bytes, above 0 and at most 1: the next ones of a
    /// round (`CheckRound`), or random ones.
    case fraction(Double)
    /// The packs of one of `count` groups, which together cover all packs; `group` is 1 to `count`.
    case group(Int, count: Int)
  }

  /// A finding of a check.
  public enum Finding: Sendable, Hashable {
    /// An object that is missing or damaged, with the remedy.
    case damage(object: String, reason: String, hint: String?)
    /// An object that this user may not read, or that the store failed to send, with the remedy. It
    /// may be intact.
    case unreadable(object: String, reason: String, hint: String?)
    /// A path that snapshots lose to damage, completely or in part: a file, or a directory and
    /// everything below it.
    case cost(path: ByteString, snapshots: [SnapshotID], reason: String)
    /// A path that snapshots may have lost: that is unknown while objects cannot be read.
    case uncertain(path: ByteString, snapshots: [SnapshotID], reason: String)
    /// A snapshot that is not accepted, since no trusted signer signed it.
    case untrusted(snapshot: SnapshotID, reason: String)
    /// A remark that affects no snapshot.
    case remark(object: String, reason: String)
  }

  /// The scope of a check and the number of its findings.
  public struct Report: Sendable, Hashable {
    public var snapshots = 0
    /// The number of snapshots with a valid signature, whether its signer is trusted or not.
    public var signed = 0
    public var indexes = 0
    public var packs = 0
    /// The stored bytes of all packs.
    public var storedBytes: UInt64 = 0
    /// The number of distinct trees and of their entries.
    public var trees = 0
    public var entries = 0
    /// The packs whose data was read, their bytes, and the blobs that were hashed.
    public var packsRead = 0
    public var bytesRead: UInt64 = 0
    public var blobsRead = 0
    /// The number of damaged objects, of affected paths, of snapshots that are not accepted and of
    /// remarks.
    public var damaged = 0
    public var costs = 0
    /// The number of objects that this user may not read or that the store failed to send, and the
    /// remedy for the first one.
    public var unreadable = 0
    public var unreadableHint: String?
    /// Whether denied access is not the only reason: the store failed to send one of them, or one
    /// needs an older key.
    public var hasOtherReasons = false
    /// The number of paths of which it is unknown whether they can be restored.
    public var uncertain = 0
    public var untrusted = 0
    public var remarks = 0
    /// Whether the index is damaged. It can be rebuilt.
    public var isIndexDamaged = false
    /// Whether packs are damaged or missing. A repair saves their intact blobs.
    public var arePacksDamaged = false
    /// The remedies for other damage, each once.
    public var otherHints: [String] = []
    /// The duration in seconds.
    public var seconds = 0.0

    /// Creates an empty report.
    public init() {}

    mutating func count(_ finding: Finding) {
      switch finding {
      case .damage(let object, _, let hint):
        damaged += 1
        if object.hasPrefix(RepositoryLayout.indexes.description) { isIndexDamaged = true }
        if object.hasPrefix("\(RepositoryLayout.packs)/") { arePacksDamaged = true }
        addOther(hint)
      case .unreadable(_, _, let hint):
        unreadable += 1
        unreadableHint = unreadableHint ?? hint
      case .cost: costs += 1
      case .uncertain: uncertain += 1
      case .untrusted: untrusted += 1
      case .remark: remarks += 1
      }
    }

    /// Adds a remedy, unless it is the one for damaged indexes or packs.
    private mutating func addOther(_ hint: String?) {
      guard let hint, hint != StoreError.indexHint, hint != DamageRemedy.pack else { return }
      if !otherHints.contains(hint) { otherHints.append(hint) }
    }
  }
}

extension RepositoryCheck.Result {
  /// The hosts and their accepted snapshots: a snapshot that no trusted signer signed may name any
  /// host.
  public var hosts: [HostSnapshots] {
    let accepted = run.snapshots.lazy.filter { run.check.repository.refusal(of: $0) == nil }
    return HostSnapshots.grouped(accepted.map { ($0.snapshot.host, $0.snapshot.time) })
  }

  /// Records that the packs of a partial check were read, so that the next one reads others.
  public func recordRound() {
    if let round = run.round { run.check.rounds?.save(round) }
  }

  /// Records the damaged packs in the repository, so that no writer relies on them, and removes
  /// packs that are intact or gone from the records. Records that are up to date stay unchanged.
  ///
  /// - Throws: `StoreError` if the repository cannot be written to; `writeRefusal`, because an
  ///   older key file does not open intact packs.
  public func recordDamage() throws(StoreError) {
    let repository = run.check.repository
    let storage = repository.storage
    guard let packs = change(of: try DamageRecords(storage)) else { return }
    try repository.requireWritable()
    try repository.requireKnownFeatures(for: .write)
    if !packs.isEmpty {
      try storage.makeMissing([RepositoryLayout.damaged.name], in: .root)
    }
    let lease = try Lease(storage)
    defer { lease.release() }
    let records = try DamageRecords(storage)
    guard let packs = change(of: records) else { return }
    try records.replace(by: packs, lease)
  }

  /// Returns the packs to record, or nil if the records are up to date.
  private func change(of records: DamageRecords) -> [DamageRecords.Record.Pack]? {
    var packs = records.packs.filter { pack, _ in
      run.inventory.packs[pack] != nil && !run.soundPacks.contains(pack)
    }
    packs.merge(run.damagedPacks) { _, found in found }
    let isSame = packs == records.packs && records.faults.allSatisfy { $0.error.code != .damaged }
    return isSame ? nil : Array(packs.values)
  }
}
