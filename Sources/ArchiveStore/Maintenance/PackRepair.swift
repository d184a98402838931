public import Codecs
internal import SystemIO

/// Ends the state in which packs are damaged or gone: what is whole in them is stored again, and the
/// index names them no more (docs/repository-format.md, "Repairing packs").
///
/// Damaged are the packs that a check recorded, and those of another size than the index has for them.
/// Each is read before it is touched, and one that is whole stays. Nothing is deleted: a damaged pack
/// moves into `damaged` once what is whole in it is durable elsewhere. Condemned packs are prune's.
public struct PackRepair {
  let repository: Repository
  private let isDry: Bool
  let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Prepares a repair; a dry one reads the packs and changes nothing. It tells the counters how far it
  /// is, and asks `isStopping` before each frame.
  public init(
    _ repository: Repository, isDry: Bool = false,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.repository = repository
    self.isDry = isDry
    self.counters = counters
    self.isStopping = isStopping
  }

  /// What became of one pack, or would.
  public struct Pack: Sendable {
    public enum State: String, Sendable {
      /// It is whole: another copy came in its place since it was recorded.
      case whole
      /// Parts of it can be read, or none.
      case damaged
      /// The index names it, and it is not there.
      case missing
    }

    public let id: Digest
    public internal(set) var state: State
    /// Blobs that no other pack has: those that were stored again with their bytes, and those that
    /// cannot be had from it.
    public internal(set) var savedBlobs = 0
    public internal(set) var savedBytes: UInt64 = 0
    public internal(set) var lostBlobs = 0
  }

  /// What a repair did, or would do.
  public struct Report: Sendable {
    /// The packs in the order of their ids.
    public internal(set) var packs: [Pack] = []
    /// How many index objects were written again without them.
    public internal(set) var indexes = 0
    /// Whether no check has recorded anything.
    public internal(set) var isUnchecked = false

    /// Whether there was nothing to do.
    public var isIdle: Bool { packs.isEmpty }
    /// Blobs that can be had from no pack.
    public var lostBlobs: Int { packs.reduce(0) { $0 + $1.lostBlobs } }
  }

  /// Repairs.
  ///
  /// - Throws: `StoreError`: `busy` when another program removes objects just now, `leaseLost`,
  ///   `interrupted`; what was stored again by then is used by the next repair.
  public func run() throws(StoreError) -> Report {
    let (settings, place) = (repository.settings, repository.place)
    try settings.requireKnown(settings.features.read, for: "read", place: place)
    if isDry {
      var plan = try PackRepairPlan(repository)
      try salvage(&plan, into: nil)
      var report = Report(packs: plan.packs, isUnchecked: plan.isUnchecked)
      report.indexes = plan.indexes(naming: plan.gone).count
      return report
    }
    try settings.requireKnown(settings.features.write, for: "write", place: place)
    try settings.requireKnown(settings.features.prune, for: "prune", place: place)
    let session = try repository.beginWriting()
    defer { session.abandon() }
    guard let right = try PruneLease(session.lease) else {
      throw StoreError(
        .busy, "repair the packs of", place, "another program removes objects from it",
        hint: "try again when it has ended")
    }
    defer { right.release() }
    return try repair(session, right)
  }

  private func repair(
    _ session: WritingSession, _ right: PruneLease
  ) throws(StoreError) -> Report {
    var plan = try PackRepairPlan(repository)
    var report = Report(isUnchecked: plan.isUnchecked)
    guard !plan.packs.isEmpty else { return report }
    let writer = try session.makeWriter()
    try salvage(&plan, into: writer)
    try writer.flush()
    try session.checkpoint()
    for pack in plan.packs where pack.state == .damaged {
      try require(right)
      try setAside(pack.id)
    }
    for object in plan.indexes(naming: plan.gone) {
      try require(right)
      try session.rewrite(object, without: plan.gone, right)
      report.indexes += 1
    }
    try DamageRecords(repository.storage).replace(by: plan.others, session.lease)
    report.packs = plan.packs
    return report
  }

  /// Moves a pack out of the way.
  private func setAside(_ pack: Digest) throws(StoreError) {
    let storage = repository.storage
    try storage.makeMissing([RepositoryLayout.damaged.name], in: .root)
    try storage.rename(RepositoryLayout.pack(pack), to: RepositoryLayout.setAside(pack))
  }

  private func require(_ right: PruneLease) throws(StoreError) {
    guard try right.isHeld() else {
      throw StoreError(
        .leaseLost, "finish the work in", repository.place,
        "its right to remove objects was taken away because it seemed dead for an hour",
        hint: "run the command again")
    }
  }

  func requireGoingOn() throws(StoreError) {
    guard isStopping() else { return }
    throw StoreError(
      .interrupted, "finish the repair of packs in", repository.place, "it was interrupted",
      hint: "run it again: what was stored is used")
  }
}
