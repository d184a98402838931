public import Codecs
internal import SystemIO

/// Makes the index of a repository whole again from the packs, which say themselves what they hold
/// (docs/repository-format.md, "Making the index anew").
///
/// Nothing is removed before what replaces it is durable and was read again, and nothing at all while
/// a pack that no index object names cannot be read: then a damaged object may be the last to tell
/// what is in it. Index objects of a later version, or closed to this user, are never touched.
public struct IndexRepair {
  private let repository: Repository
  private let isDry: Bool
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool
  private let clock: @Sendable () -> Double

  /// Prepares a repair; a dry one finds out what there is to do, and changes nothing. It tells the
  /// counters how far it is. Before each pack it asks `isStopping`, and ends as `interrupted` with
  /// nothing changed when that holds.
  public init(
    _ repository: Repository, isDry: Bool = false,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.init(
      repository, isDry: isDry, counters: counters, isStopping: isStopping,
      clock: Host.monotonicSeconds)
  }

  /// - Parameter clock: seconds since any moment, which never go back.
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

  /// What a repair did, or would do.
  public struct Report: Sendable {
    /// Packs that no usable index object named, and the blobs in them.
    public internal(set) var packs = 0
    public internal(set) var blobs = 0
    /// The index objects that name them now.
    public internal(set) var written: [Digest] = []
    /// Damaged index objects that are gone.
    public internal(set) var removed: [Digest] = []
    /// Why index objects stay that cannot be used.
    public internal(set) var kept: [StoreError] = []
    /// Packs that no index object names and that do not say either what they hold.
    public internal(set) var unreadable: [StoreError] = []

    /// Whether there was nothing to do.
    public var isIdle: Bool { packs == 0 && removed.isEmpty && kept.isEmpty && unreadable.isEmpty }
  }

  /// Repairs.
  ///
  /// - Throws: `StoreError`: `busy` when another program removes objects just now, `leaseLost`,
  ///   `interrupted`.
  public func run() throws(StoreError) -> Report {
    let features = repository.settings.features
    try repository.settings.requireKnown(features.read, for: "read", place: repository.place)
    if isDry {
      let found = try findings { () throws(StoreError) in try requireGoingOn() }
      return report(found)
    }
    try repository.settings.requireKnown(features.write, for: "write", place: repository.place)
    try repository.settings.requireKnown(features.prune, for: "prune", place: repository.place)
    let lease = try Lease(storage, clock: clock)
    defer { lease.release() }
    guard let right = try PruneLease(lease) else {
      throw StoreError(
        .busy, "repair the index of", storage.place, "another program removes objects from it",
        hint: "try again when it has ended")
    }
    defer { right.release() }
    let found = try findings { () throws(StoreError) in
      try requireGoingOn()
      guard try right.keepAlive() else { throw lost }
    }
    var report = report(found)
    // Of other directories it is not known whether they were empty.
    if !found.rescue.objects.isEmpty {
      try storage.makeMissing([RepositoryLayout.indexes.name], in: .root)
    }
    report.written = try found.rescue.objects.map { object throws(StoreError) in
      guard try right.isHeld() else { throw lost }
      return try write(object, lease)
    }
    for id in report.removed {
      guard try right.isHeld() else { throw lost }
      try lease.remove(index: id)
    }
    return report
  }

  private var storage: any Storage { repository.storage }

  private var lost: StoreError {
    StoreError(
      .leaseLost, "finish the work in", storage.place,
      "its right to remove objects was taken away because it seemed dead for an hour",
      hint: "run the command again")
  }

  private func requireGoingOn() throws(StoreError) {
    guard isStopping() else { return }
    throw StoreError(
      .interrupted, "finish the repair of the index of", storage.place,
      "it was interrupted, with nothing changed", hint: "run it again")
  }

  /// The index as it is, and what it lacks.
  private struct Findings {
    let index: LoadedIndex
    let rescue: PackRescue
  }

  /// Reads the index, and the packs that it does not name; before each of them, and before what is
  /// found is used, `goOn` is called.
  private func findings(
    _ goOn: () throws(StoreError) -> Void
  ) throws(StoreError) -> Findings {
    let index = try IndexLoading.loadAll(from: storage)
    let rescue = try PackRescue(in: storage, but: index.packs, counters: counters, goOn: goOn)
    try goOn()
    return Findings(index: index, rescue: rescue)
  }

  private func report(_ found: Findings) -> Report {
    var report = Report()
    report.packs = found.rescue.packs.count
    report.blobs = found.rescue.objects.reduce(0) { $0 + $1.blobs }
    report.unreadable = found.rescue.faults.map {
      .damaged("\(RepositoryLayout.pack($0.pack))", $0.error.reason)
    }
    // An object that is made again with the same bytes takes the damaged one's place.
    let again = Set(found.rescue.objects.map(\.id))
    for (id, error) in found.index.faults {
      if error.kind != .damaged {
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

  /// Makes an object durable and reads it again.
  private func write(_ object: IndexObject, _ lease: Lease) throws(StoreError) -> Digest {
    guard case .memory(let bytes) = object.bytes else { return object.id }
    try lease.save(Array(bytes), as: RepositoryLayout.index(object.id))
    return try IndexLoading.open(object.id, from: storage).id
  }
}
