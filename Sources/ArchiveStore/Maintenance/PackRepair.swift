package import Codecs
internal import SystemIO

/// Repairs damaged or missing packs: their intact blobs are stored again, and the index stops
/// naming the packs (docs/repository-format.md, "Repairing packs").
///
/// Packs count as damaged if a check recorded them or if their size differs from the index. Each is
/// read before it is changed, and an intact one stays. Nothing is deleted: a damaged pack is moved
/// to `damaged` after its intact blobs are durable elsewhere. Condemned packs are left to prune.
package struct PackRepair {
  let repository: Repository
  private let isDry: Bool
  let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Prepares a repair. A dry run reads the packs and changes nothing. `isStopping` is called
  /// before each frame.
  package init(
    _ repository: Repository, isDry: Bool = false,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.repository = repository
    self.isDry = isDry
    self.counters = counters
    self.isStopping = isStopping
  }

  /// The result for one pack.
  package struct Pack: Sendable {
    package enum State: String, Sendable {
      /// It is intact: it was replaced by another copy since it was recorded.
      case whole
      /// It can be read in part or not at all.
      case damaged
      /// The index names it, but it does not exist.
      case missing
    }

    package let id: Digest
    package internal(set) var state: State
    /// Blobs that no other pack holds: those that were stored again, with their bytes, and those
    /// that are lost.
    package internal(set) var savedBlobs = 0
    package internal(set) var savedBytes: UInt64 = 0
    package internal(set) var lostBlobs = 0
  }

  /// The result of a repair or of a dry run.
  package struct Report: Sendable {
    /// The packs, ordered by id.
    package internal(set) var packs: [Pack] = []
    /// The number of index objects that were rewritten without the packs.
    package internal(set) var indexes = 0
    /// Whether no check has recorded anything.
    package internal(set) var isUnchecked = false

    /// Whether there was nothing to do.
    package var isIdle: Bool { packs.isEmpty }
    /// The number of blobs that no pack holds.
    package var lostBlobs: Int { packs.reduce(0) { $0 + $1.lostBlobs } }
  }

  /// Runs the repair.
  ///
  /// - Throws: `StoreError`: `busy` if another program is removing objects, `leaseLost`,
  ///   `interrupted`. The next repair uses the blobs stored until then.
  package func run() throws(StoreError) -> Report {
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
        .busy, "repair the packs of", subject: place,
        reason: "another program is removing objects from it",
        hint: "try again after it has finished")
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

  /// Moves a damaged pack to `damaged`.
  private func setAside(_ pack: Digest) throws(StoreError) {
    let storage = repository.storage
    try storage.makeMissing([RepositoryLayout.damaged.name], in: .root)
    try storage.rename(RepositoryLayout.pack(pack), to: RepositoryLayout.setAside(pack))
  }

  private func require(_ right: PruneLease) throws(StoreError) {
    guard try right.isHeld() else {
      throw StoreError(
        .leaseLost, "finish the work in", subject: repository.place,
        reason: "the lease to remove objects expired: no heartbeat was written for an hour",
        hint: "run the command again")
    }
  }

  func checkNotStopped() throws(StoreError) {
    guard isStopping() else { return }
    throw StoreError(
      .interrupted, "finish the repair of packs in", subject: repository.place,
      reason: "it was interrupted", hint: "run it again to continue")
  }
}
