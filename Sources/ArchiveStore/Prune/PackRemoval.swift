internal import Codecs
public import SystemIO

/// A program that removes packs: its session, its right to remove objects, and what it has removed.
/// Used by a prune, a mirror and a rewrap (docs/repository-format.md, "Prune").
///
/// Not thread-safe.
struct PackRemoval {
  let session: WritingSession
  let right: PruneLease
  let reserve: SpaceReserve
  let heartbeat: PruneLease.Heartbeat
  private(set) var totals = RemovalTotals()

  /// Removes packs for the holder of a right.
  init(_ session: WritingSession, _ right: PruneLease, reserve: SpaceReserve) {
    (self.session, self.right, self.reserve) = (session, right, reserve)
    heartbeat = PruneLease.Heartbeat(right)
  }

  /// Calls `body` with a new session that has the right to remove objects. On a full volume the
  /// reserve is used, which is created again at the end.
  ///
  /// - Parameter action: the words after "cannot", before the location of the repository.
  /// - Throws: `busy` if another program has the right; failures of the storage; any error of
  ///   `body`.
  static func run<Result>(
    in repository: Repository, for action: String, workers: Int, cache: IndexCache?,
    _ body: (PackRemoval) throws -> Result
  ) throws -> Result {
    let reserve = SpaceReserve(repository.storage)
    let session = try reserve.whenFull { () throws(StoreError) in
      // More threads would wait for requests and make many small packs.
      try repository.beginWriting(workers: min(workers, Host.processors), cache: cache)
    }
    defer { session.abandon() }
    let right = try reserve.whenFull { () throws(StoreError) in
      try PruneLease(session.lease, for: action)
    }
    defer { right.release() }
    defer { reserve.restore(by: session.lease) }
    try reserve.whenFull { () throws(StoreError) in try session.lease.removeExpiredOthers() }
    let result = try body(PackRemoval(session, right, reserve: reserve))
    session.mergeIndexes(holding: right)
    return result
  }

  /// Returns `isStopping` as a function that keeps the right alive whenever it is called.
  func stopping(_ isStopping: @escaping @Sendable () -> Bool) -> @Sendable () -> Bool {
    { [heartbeat] in
      heartbeat.beat()
      return isStopping()
    }
  }

  /// Condemns packs, and removes all condemned packs that no program may rely on.
  mutating func remove(_ packs: Set<Digest>, _ needs: inout SnapshotNeeds) throws {
    guard !packs.isEmpty else { return }
    try session.condemn(packs, by: right, reserve: reserve)
    needs.condemn(packs)
    try sweep(&needs)
  }

  /// Removes all condemned packs that no program may rely on.
  mutating func sweep(_ needs: inout SnapshotNeeds) throws {
    let condemned = try CondemnedObjects(session.repository.storage).objects
    guard !condemned.isEmpty else { return }
    needs.add(try sweep(condemned, &needs))
  }

  /// Removes the packs of some condemned objects that no program may rely on.
  mutating func sweep(
    _ condemned: [Digest: CondemnedObject], _ needs: inout SnapshotNeeds
  ) throws -> PruneSweep.Result {
    let swept = try PruneSweep(session, right, reserve: reserve).run(condemned, &needs)
    totals.add(swept, of: condemned)
    return swept
  }
}

/// The packs that a program has removed, and those that it leaves to a later run.
public struct RemovalTotals: Sendable, Hashable {
  /// The number of the removed packs, and their bytes.
  public internal(set) var removedPacks = 0
  public internal(set) var removedBytes: UInt64 = 0
  /// The number of packs that a later run removes, because other programs are using the repository.
  public internal(set) var waitingPacks = 0
  /// The leases of these programs.
  public internal(set) var waitingFor: [ByteString] = []
  /// The leases of programs that have ended without releasing them, as far as this host can tell.
  /// They are waited for until they expire.
  public internal(set) var endedLeases: [LeaseStatus] = []

  /// Adds the result of the latest sweep. Packs that wait are those that wait now.
  mutating func add(_ swept: PruneSweep.Result, of condemned: [Digest: CondemnedObject]) {
    removedPacks += swept.removed.count
    removedBytes.addClamping(swept.removed.values.clampedSum)
    waitingPacks = Set(swept.waiting.keys.flatMap { condemned[$0]?.packs ?? [] }).count
    wait(for: Set(swept.waiting.values.joined()), among: swept.leases)
  }

  /// Records the leases that are waited for. Those that are not `among` the known ones belong to
  /// programs that may still run.
  mutating func wait(for names: Set<ByteString>, among leases: some Sequence<LeaseStatus>) {
    waitingFor = names.sorted()
    endedLeases = leases.filter { names.contains($0.name) && $0.presence == .ended }
      .sorted { $0.name < $1.name }
  }
}

/// A report with the packs that were removed.
public protocol RemovalReport: Sendable {
  /// The removed packs, and those that wait.
  var removal: RemovalTotals { get }
}

extension RemovalReport {
  public var removedPacks: Int { removal.removedPacks }
  public var removedBytes: UInt64 { removal.removedBytes }
  public var waitingPacks: Int { removal.waitingPacks }
  public var waitingFor: [ByteString] { removal.waitingFor }
  public var endedLeases: [LeaseStatus] { removal.endedLeases }
}
