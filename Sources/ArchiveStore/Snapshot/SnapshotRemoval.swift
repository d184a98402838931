public import Codecs
internal import SystemIO

/// Removes snapshots from a repository (docs/repository-format.md, "Removing snapshots").
///
/// Each snapshot disappears in one step, so after a crash or an error it is either complete or
/// gone. Packs and the index are not changed: a later prune removes the data that no snapshot
/// needs.
public struct SnapshotRemoval: Sendable {
  private let repository: Repository
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool
  private let clock: @Sendable () -> Double

  /// Prepares a removal. Before each snapshot `isStopping` is called; if it returns true, the
  /// removal throws `interrupted`, and the remaining snapshots stay.
  public init(
    _ repository: Repository, counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.init(
      repository, counters: counters, isStopping: isStopping, clock: Host.monotonicSeconds)
  }

  /// - Parameter clock: the seconds of a monotonic clock.
  init(
    _ repository: Repository, counters: ProgressCounters,
    isStopping: @escaping @Sendable () -> Bool, clock: @escaping @Sendable () -> Double
  ) {
    self.repository = repository
    self.counters = counters
    self.isStopping = isStopping
    self.clock = clock
  }

  /// The result of a removal.
  public struct Report: Sendable, Hashable {
    /// The snapshots that were kept because they are pinned.
    public internal(set) var pinned: [SnapshotID] = []
    /// The snapshots that another program had already removed.
    public internal(set) var gone: [SnapshotID] = []

    /// Creates the report of a removal of no snapshot.
    public init() {}
  }

  private var storage: RepositoryStorage { repository.storage }

  /// Removes snapshots in the given order, unless they are pinned.
  ///
  /// - Parameters:
  ///   - forced: those that are also removed if the store fails to send them.
  ///   - removed: called for each snapshot after it was removed, even if an error follows.
  /// - Throws: `StoreError`: `leaseLost`, `interrupted`, `writeRefusal`, or the error of the first
  ///   snapshot that cannot be removed. In a repository on another host a few after it may be
  ///   removed.
  public func run(
    _ ids: [SnapshotID], forced: Set<SnapshotID> = [], removed: (SnapshotID) -> Void
  ) throws(StoreError) -> Report {
    try repository.requireKnownFeatures(for: .write, .prune)
    try repository.requireWritable()
    let reserve = SpaceReserve(storage)
    let lease = try reserve.whenFull { () throws(StoreError) in try Lease(storage, clock: clock) }
    defer { lease.release() }
    defer { reserve.restore(by: lease) }
    var report = Report()
    let remove = { @Sendable (id: SnapshotID) throws(StoreError) -> Outcome in
      try self.checkNotStopped()
      try lease.keepAlive()
      return try reserve.whenFull { () throws(StoreError) in
        try self.remove(id, lease, isForced: forced.contains(id))
      }
    }
    for part in ids.parts(of: storage.itemsAtOnce) {
      let outcomes = storage.results(of: part, remove)
      for (id, outcome) in zip(part, outcomes) {
        guard case .success(let outcome) = outcome else { continue }
        switch outcome {
        case .removed: removed(id)
        case .pinned: report.pinned.append(id)
        case .gone: report.gone.append(id)
        }
        counters.didHandle(files: 1)
      }
      for outcome in outcomes { _ = try outcome.get() }
    }
    return report
  }

  private func checkNotStopped() throws(StoreError) {
    guard isStopping() else { return }
    throw .interrupted(
      "remove all of the snapshots from", storage.location,
      hint: "run it again to remove the others")
  }

  private enum Outcome: Sendable {
    case removed
    case pinned
    case gone
  }

  /// Moves a snapshot into the lease and deletes it there. The pin is looked up between the two: a
  /// program that pins a snapshot looks for the snapshot after it has written the pin, so at least
  /// one of the two programs sees the other.
  private func remove(
    _ id: SnapshotID, _ lease: Lease, isForced: Bool
  ) throws(StoreError) -> Outcome {
    let pin = RepositoryLayout.pin(id)
    if try storage.status(pin) != nil { return .pinned }
    guard let aside = try claim(id, lease, isForced: isForced) else { return .gone }
    do {
      if try storage.status(pin) == nil {
        aside.discard()
        return .removed
      }
    } catch {
      // If it cannot be put back either, it stays in the lease, which is kept.
      try? restore(aside, lease)
      throw error
    }
    try restore(aside, lease)
    return .pinned
  }

  /// Takes a snapshot away. A store without rename has to send it for that: one that it never sends
  /// could not be put back, which is then an error.
  private func claim(
    _ id: SnapshotID, _ lease: Lease, isForced: Bool
  ) throws(StoreError) -> ClaimedObject? {
    let path = storage.layout.snapshot(id)
    do {
      return try lease.claim(path, as: ByteString("removed-\(id.hex)"))
    } catch {
      guard isForced, error.isStoreFailure else { throw error }
      guard try storage.status(path) != nil else { return nil }
      try lease.remove(path)
      return ClaimedObject(discard: {}, putBack: { () throws(StoreError) in throw error })
    }
  }

  /// Moves a snapshot out of the lease again. A prune that has listed the snapshots meanwhile has
  /// not seen it. If one is running, the lease therefore stays until it expires, and no prune
  /// removes packs until then. It also stays with the snapshot in it if the snapshot cannot be
  /// moved.
  private func restore(_ aside: ClaimedObject, _ lease: Lease) throws(StoreError) {
    lease.retain()
    try aside.putBack()
    if try storage.status(PruneLease.path) == nil { lease.cancelRetention() }
  }
}
