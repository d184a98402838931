public import Codecs
internal import SystemIO

/// Rebuilds the index of a repository from the contents tables of its packs
/// (docs/repository-format.md, "Rebuilding the index").
///
/// Nothing is removed before its replacement is durable and was read back. Nothing is removed while
/// a pack that no index object names cannot be read, because a damaged object may be the last
/// record of its contents. Index objects of an unsupported version, or inaccessible to this user,
/// are never changed.
public struct IndexRepair {
  private let repository: Repository
  private let isDry: Bool
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool
  private let clock: @Sendable () -> Double

  /// Prepares a repair. A dry run determines the work and changes nothing. Before each pack
  /// `isStopping` is called; if it returns true, the repair throws `interrupted` and has changed
  /// nothing.
  public init(
    _ repository: Repository, isDry: Bool = false,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.init(
      repository, isDry: isDry, counters: counters, isStopping: isStopping,
      clock: Host.monotonicSeconds)
  }

  /// - Parameter clock: the seconds of a monotonic clock.
  init(
    _ repository: Repository, isDry: Bool = false, counters: ProgressCounters,
    isStopping: @escaping @Sendable () -> Bool, clock: @escaping @Sendable () -> Double
  ) {
    self.repository = repository
    self.isDry = isDry
    self.counters = counters
    self.isStopping = isStopping
    self.clock = clock
  }

  /// The result of a repair or of a dry run.
  public struct Report: Sendable {
    /// The packs that no usable index object named, and the number of their blobs.
    public internal(set) var packs = 0
    public internal(set) var blobs = 0
    /// The index objects written for these packs.
    public internal(set) var written: [Digest] = []
    /// The damaged index objects that were removed.
    public internal(set) var removed: [Digest] = []
    /// The reasons for keeping unusable index objects.
    public internal(set) var kept: [StoreError] = []
    /// The errors of packs that no index object names and whose contents table cannot be read.
    public internal(set) var unreadable: [StoreError] = []

    /// Whether there was nothing to do.
    public var isIdle: Bool { packs == 0 && removed.isEmpty && kept.isEmpty && unreadable.isEmpty }
  }

  /// Runs the repair.
  ///
  /// - Throws: `StoreError`: `busy` if another program is removing objects, `leaseLost`,
  ///   `interrupted`.
  public func run() throws(StoreError) -> Report {
    try repository.requireKnownFeatures(for: .read)
    try storage.requireReadable()
    if isDry {
      let found = try findings { () throws(StoreError) in try checkNotStopped() }
      return report(found)
    }
    try repository.requireKnownFeatures(for: .write, .prune)
    let lease = try Lease(storage, clock: clock)
    defer { lease.release() }
    try repository.requireCurrent("repair the index of")
    let right = try PruneLease(lease, for: "repair the index of")
    defer { right.release() }
    let found = try findings { () throws(StoreError) in
      try checkNotStopped()
      guard try right.keepAlive() else { throw PruneLease.lost(storage.location) }
    }
    var report = report(found)
    // Only this directory is created: the others may not have been empty.
    if !found.rescue.objects.isEmpty {
      try storage.makeMissing([RepositoryLayout.indexes.name], in: .root)
    }
    report.written = try found.rescue.objects.map { object throws(StoreError) in
      try right.requireHeld()
      return try write(object, lease)
    }
    for id in report.removed {
      try right.requireHeld()
      try lease.remove(index: id)
    }
    return report
  }

  private var storage: RepositoryStorage { repository.storage }

  private func checkNotStopped() throws(StoreError) {
    guard isStopping() else { return }
    throw StoreError(
      .interrupted, "finish the repair of the index of", subject: storage.location,
      reason: "it was interrupted before it changed anything", hint: "run it again")
  }

  /// The current index, and the packs that it does not name.
  private struct Findings {
    let index: LoadedIndex
    let rescue: PackRescue
  }

  /// Reads the index and the packs that it does not name. `checkCancellation` is called before each
  /// pack and before the result is used.
  private func findings(
    _ checkCancellation: () throws(StoreError) -> Void
  ) throws(StoreError) -> Findings {
    let index = try LoadedIndex.loadAll(from: storage)
    let rescue = try PackRescue(
      in: storage, but: index.packs, counters: counters, checkCancellation: checkCancellation)
    try checkCancellation()
    return Findings(index: index, rescue: rescue)
  }

  private func report(_ found: Findings) -> Report {
    var report = Report()
    report.packs = found.rescue.packs.count
    report.blobs = found.rescue.objects.reduce(0) { $0 + $1.blobs }
    report.unreadable = found.rescue.faults.map { pack, error in
      error.isRefused ? error : .damaged("\(storage.layout.pack(pack))", error.reason)
    }
    // An object rebuilt with the same bytes replaces the damaged one.
    let again = Set(found.rescue.objects.map(\.id))
    for (id, error) in found.index.faults {
      if error.kind != .damaged || error.isRefused {
        report.kept.append(error)
      } else if again.contains(id) {
        continue
      } else if report.unreadable.isEmpty {
        report.removed.append(id)
      } else {
        report.kept.append(error)
      }
    }
    return report
  }

  /// Makes an object durable and reads it back.
  private func write(_ object: IndexObject, _ lease: Lease) throws(StoreError) -> Digest {
    try IndexObject.open(lease.save(object).id, from: storage).id
  }
}
