public import Codecs
public import SystemIO

/// Removes data that no snapshot needs, alongside running backups and restores and without a lock
/// that they wait for (docs/repository-format.md, "Prune").
///
/// Prune marks: it finds what the snapshots need, copies the used data of packs that are worth
/// rewriting, and names the packs to be removed in a condemned object. It sweeps: once no other
/// program can rely on these packs, it finds what the snapshots need again, and removes the packs
/// that are still not needed. If a program is using the repository, a later prune sweeps.
///
/// A crash at any moment leaves a repository in which each snapshot is complete; the next prune
/// continues.
public struct RepositoryPrune {
  private let repository: Repository
  private let request: PruneRequest
  private let indexCache: IndexCache?
  private let headCache: SnapshotHeadCache?
  private let workers: Int
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Prepares a prune with `workers` threads. `isStopping` is called often, on any thread; if it
  /// returns true, the prune ends after the current pack. What it has copied is kept.
  public init(
    _ repository: Repository, _ request: PruneRequest = PruneRequest(),
    indexCache: IndexCache? = nil, headCache: SnapshotHeadCache? = nil, workers: Int = 1,
    counters: ProgressCounters = ProgressCounters(of: "pack"),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    (self.repository, self.request) = (repository, request)
    (self.indexCache, self.headCache) = (indexCache, headCache)
    (self.workers, self.counters, self.isStopping) = (max(1, workers), counters, isStopping)
  }

  /// The result of a prune.
  public struct Report: RemovalReport {
    public internal(set) var plan = PrunePlan()
    public internal(set) var snapshots = 0
    /// The removed packs, including those that an earlier prune condemned; in a plan only the
    /// latter.
    public internal(set) var removal = RemovalTotals()
    /// The new packs and their bytes.
    public internal(set) var newPacks = 0
    public internal(set) var newBytes: UInt64 = 0
    /// The errors of damaged condemned objects, which a prune removes and a plan does not.
    public internal(set) var damagedCondemned: [StoreError] = []
    /// The errors of packs that were to be rewritten and are damaged. They stay.
    public internal(set) var damaged: [StoreError] = []
    /// The number of data blobs that snapshots need and no pack has.
    public internal(set) var lostBlobs = 0
    /// The number of packs that no index object names and that stay because of lost blobs.
    public internal(set) var unindexedPacks = 0
    /// Whether the prune was interrupted before it was complete.
    public internal(set) var isInterrupted = false
  }

  /// Returns the plan without changing anything, as if some snapshots had been removed. Leases that
  /// have expired by the time `now` have no effect, since a prune removes them.
  ///
  /// - Throws: as `run`.
  public func plan(
    without removed: Set<SnapshotID> = [], at now: Timestamp = Host.now()
  ) throws -> Report {
    try repository.requireKnownFeatures(for: .read)
    var needs = try needs(isStopping, without: removed)
    needs.ignoreExpiredLeases(at: now)
    try requireSnapshots(needs)
    try requirePinned()
    var report = Report()
    report.addCondemned(in: &needs)
    report.plan = try plan(for: needs)
    if !needs.leases.isEmpty {
      report.removal.waitingPacks += report.plan.packs.count { $0.action != .keep }
      report.removal.wait(for: Set(needs.leases.map(\.name)), among: needs.leases)
    }
    report.snapshots = needs.snapshots
    report.damagedCondemned = needs.damagedCondemned
    report.add(needs)
    return report
  }

  /// The data that only removed snapshots need.
  public struct Freed: Sendable, Hashable {
    public let blobs: Int
    /// Their bytes before compression.
    public let bytes: UInt64
    /// Their stored bytes, which become unused in packs. A prune frees them as it removes and
    /// rewrites these packs.
    public let stored: UInt64
  }

  /// Returns the data that only some snapshots need. Each distinct tree is read once.
  ///
  /// - Throws: as `run`.
  public func freed(byRemoving removed: Set<SnapshotID>) throws -> Freed {
    try repository.requireKnownFeatures(for: .read)
    var needs = try needs(isStopping, for: "find what a removal frees in", without: removed)
    let kept = needs.search.usage
    try needs.restoreRemoved()
    let all = needs.search.usage
    return Freed(
      blobs: all.blobs - kept.blobs, bytes: all.bytes - kept.bytes, stored: all.stored - kept.stored
    )
  }

  /// Runs the prune.
  ///
  /// - Throws: `StoreError`: `busy` if another program is removing objects, `damaged` or `missing`
  ///   if it cannot be determined what snapshots need, `noSnapshot` if there is data and no
  ///   snapshot, `leaseLost`, `interrupted`.
  public func run() throws -> Report {
    try repository.requireKnownFeatures(for: .read, .write, .prune)
    return try PackRemoval.run(
      in: repository, for: "prune", workers: workers, cache: indexCache
    ) { removal in
      var run = Run(self, removal)
      return try run.report()
    }
  }

  private func needs(
    _ isStopping: @escaping @Sendable () -> Bool, for action: String = "prune",
    without removed: Set<SnapshotID> = []
  ) throws -> SnapshotNeeds {
    counters.begin(counting: "directory")
    defer { counters.begin(counting: "pack") }
    return try SnapshotNeeds(
      repository, for: action, without: removed, cache: indexCache, headCache: headCache,
      threads: workers, counters: counters, isStopping: isStopping)
  }

  /// Checks that the packs do not belong to lost snapshots: a directory of snapshots that was
  /// recreated after a loss, or was not copied yet, looks like that of a repository whose snapshots
  /// were all removed.
  private func requireSnapshots(_ needs: SnapshotNeeds) throws(StoreError) {
    guard needs.snapshots == 0, !needs.packSizes.isEmpty, !request.mayRemoveAll else { return }
    throw StoreError(
      .noSnapshot, "prune", subject: repository.location,
      reason: "it has \(StoreError.packs(needs.packSizes.count)) and no snapshot",
      hint: "if snapshots are lost, copy them again from another copy of the repository; "
        + "'--remove-all' removes all data, for example that of an interrupted first backup")
  }

  /// Checks that no pinned snapshot is lost: its data may be all that remains of it, and it may be
  /// copied again.
  private func requirePinned() throws(StoreError) {
    guard let id = try repository.lostPinned().min() else { return }
    throw StoreError(
      .missing, "prune", subject: repository.location,
      reason: "the pinned snapshot \(id.hex) is lost, and it is unknown what it needs",
      hint: Self.lostPinnedHint)
  }

  /// The remedies if a pinned snapshot is lost.
  public static let lostPinnedHint =
    "copy it again from another repository with 'sandboxctl copy', or accept its loss with "
    + "'sandboxctl snapshots unpin' and its full id"

  /// Returns the plan.
  private func plan(
    for needs: SnapshotNeeds, besides own: ByteString? = nil
  ) throws(StoreError) -> PrunePlan {
    PrunePlan(needs.search, orphans: try needs.packsWithoutRun(besides: own), request)
  }
}

extension RepositoryPrune.Report {
  /// Records the losses.
  fileprivate mutating func add(_ needs: SnapshotNeeds) {
    lostBlobs = needs.lostBlobs
    unindexedPacks = needs.lostBlobs > 0 ? needs.unindexedPacks.count : 0
  }
}

extension RepositoryPrune {
  /// A prune that holds the right to remove objects.
  private struct Run {
    private let prune: RepositoryPrune
    private var removal: PackRemoval
    private var result = Report()

    init(_ prune: RepositoryPrune, _ removal: PackRemoval) {
      (self.prune, self.removal) = (prune, removal)
    }

    private var session: WritingSession { removal.session }
    private var storage: RepositoryStorage { prune.repository.storage }

    mutating func report() throws -> Report {
      var needs = try prune.needs(removal.stopping(prune.isStopping))
      try prune.requireSnapshots(needs)
      try prune.requirePinned()
      result.snapshots = needs.snapshots
      result.damagedCondemned = session.damagedCondemned
      try removal.sweep(&needs)
      result.plan = try prune.plan(for: needs, besides: session.lease.path.name)
      result.add(needs)
      let packs = result.plan.packs(.rewrite)
      session.exclude(removed.union(packs.map(\.id)))
      if room(for: packs, besides: Self.margin) == packs.count {
        try removal.remove(removed.union(try rewrite(packs, needs)), &needs)
      } else {
        try removal.remove(removed, &needs)
        try rewriteInParts(packs, &needs)
      }
      result.removal = removal.totals
      // Remaining probes take only a few bytes.
      try? ProbeRemoval.run(storage, by: session.lease)
      return result
    }

    private var removed: Set<Digest> { Set(result.plan.packs(.remove).map(\.id)) }

    /// Rewrites packs on a volume without room for all of them: first those with the least used
    /// data, as many as fit at a time. If none fits, no unused data moves, and the reserve is used.
    private mutating func rewriteInParts(
      _ packs: [PrunePlan.Pack], _ needs: inout SnapshotNeeds
    ) throws {
      var rest = packs.sorted { ($0.used, $0.id) < ($1.used, $1.id) }
      while !rest.isEmpty, !result.isInterrupted {
        var count = room(for: rest, besides: Self.minimumMargin)
        if count == 0, rest.contains(where: { $0.moved > 0 }) {
          result.plan.moveNoUnused(of: Set(rest.map(\.id)))
          for number in rest.indices { rest[number].moved = 0 }
          count = room(for: rest, besides: Self.minimumMargin)
        }
        if count == 0, try removal.reserve.free() {
          count = room(for: rest, besides: Self.minimumMargin)
        }
        guard count > 0 else {
          throw Self.noRoom(prune.repository.location, rest.reduce(0) { $0 + $1.used })
        }
        try removal.remove(try rewrite(Array(rest.prefix(count)), needs), &needs)
        rest.removeFirst(count)
      }
    }

    /// Returns how many of the packs can be rewritten in this order: the data that moves and an
    /// index of it fit on the volume.
    private func room(for packs: [PrunePlan.Pack], besides margin: UInt64) -> Int {
      guard let space = try? storage.space() else { return packs.count }
      var bytes: UInt64 = 0
      return packs.prefix { pack in
        bytes += pack.used + pack.moved + pack.used / 16
        return bytes == 0 || space.available > bytes + margin
      }.count
    }

    /// The space in bytes for index objects and snapshots of running programs, and the space that
    /// must remain for them on a volume that is nearly full.
    private static let margin: UInt64 = 16 << 20
    private static let minimumMargin: UInt64 = 1 << 20

    private static func noRoom(_ location: String, _ bytes: UInt64) -> StoreError {
      StoreError(
        .system, "rewrite packs of", subject: location,
        reason: "\(ByteCount.text(bytes)) have to be copied, and the volume has less space",
        hint: "packs without used data were removed; free some space, or tolerate more unused data "
          + "with '--max-unused'")
    }

    private mutating func rewrite(
      _ packs: [PrunePlan.Pack], _ needs: SnapshotNeeds
    ) throws -> Set<Digest> {
      guard !packs.isEmpty else { return [] }
      let before = session.statistics
      let rewriter = PackRewriter(
        session, rewriting: packs, movingUpTo: result.plan.movedShare, needs: needs.search,
        right: removal.right, counters: prune.counters, isStopping: prune.isStopping)
      let rewritten = try rewriter.run(threads: prune.workers)
      let after = session.statistics
      result.newPacks += after.packs - before.packs
      result.newBytes += after.storedBytes - before.storedBytes
      result.damaged += rewritten.damaged
      result.isInterrupted = rewritten.isInterrupted
      return rewritten.rewritten
    }
  }
}
