public import Codecs
internal import SystemIO

/// Writes snapshots again without what is lost (docs/repository-format.md, "Repairing snapshots").
///
/// Content is lost if no intact pack holds it, according to the index, the trees, and the packs
/// that a check recorded as damaged, which are read: `RepositoryCheck` decides. The old snapshots
/// stay, unless they are to be removed.
public struct SnapshotRepair {
  private let repository: Repository
  private let ids: Set<SnapshotID>?
  private let isDry: Bool
  private let isForgetting: Bool
  private let workers: Int
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Prepares a repair of some snapshots, or of all. A dry run changes nothing. With `isForgetting`
  /// a repaired snapshot is removed after the new one is durable. `isStopping` is called often, on
  /// any thread.
  public init(
    _ repository: Repository, of ids: Set<SnapshotID>? = nil, isDry: Bool = false,
    isForgetting: Bool = false, workers: Int = 1, counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    (self.repository, self.ids) = (repository, ids)
    (self.isDry, self.isForgetting) = (isDry, isForgetting)
    (self.workers, self.counters, self.isStopping) = (workers, counters, isStopping)
  }

  /// A snapshot that has lost something.
  public struct Repaired: Sendable {
    public let old: StoredSnapshot
    /// The snapshot without the lost data; nil in a dry run, and if nothing remains.
    public internal(set) var new: StoredSnapshot?
    /// Whether nothing of it remains. No snapshot replaces it: an empty one would count as a
    /// backup, for which `forget` removes others.
    public let isLost: Bool
    /// The losses by path, and their number. Above 4 MiB they are summarized.
    public let lost: [PathNote]
    public let losses: Int
    /// Whether the old snapshot is pinned. Then the new one is, too.
    public let isPinned: Bool
    /// Whether the old snapshot was removed.
    public internal(set) var isRemoved = false
    /// Whether another program has removed it since it was listed.
    var isGone = false
  }

  /// The result of a repair or of a dry run.
  public struct Report: Sendable {
    /// The number of snapshots that were examined, of those that have lost something, and of those
    /// of which nothing remains.
    public internal(set) var snapshots = 0
    public internal(set) var repaired = 0
    public internal(set) var lost = 0
    /// The number of old snapshots that were removed.
    public internal(set) var removed = 0
    /// The number of snapshots of which nothing remains and that were not removed, and the number
    /// of pinned ones among them.
    public internal(set) var lostThatStay = 0
    public internal(set) var lostThatArePinned = 0
    /// The errors of the damaged condemned objects, which were removed.
    public internal(set) var damagedCondemned: [StoreError] = []
    /// The errors of snapshots that cannot be read. They are not repaired.
    public internal(set) var unreadable: [StoreError] = []
    /// Whether no check has recorded anything.
    public internal(set) var isUnchecked = false

    /// Whether no snapshot has lost anything.
    public var isIdle: Bool { repaired == 0 && lost == 0 && unreadable.isEmpty }

    fileprivate mutating func count(_ one: Repaired) {
      if one.isLost { lost += 1 } else { repaired += 1 }
      if one.isRemoved { removed += 1 }
      guard one.isLost, !one.isRemoved, !one.isGone else { return }
      lostThatStay += 1
      if one.isPinned { lostThatArePinned += 1 }
    }
  }

  /// Runs the repair.
  ///
  /// - Parameter body: called for each snapshot that has lost something, after the new one is
  ///   durable; the oldest first.
  /// - Throws: `StoreError`: `busy` if another program is removing objects, `leaseLost`,
  ///   `interrupted`; and any error of `body`.
  public func run(_ body: (Repaired) throws -> Void) throws -> Report {
    try repository.requireKnownFeatures(for: .read)
    if isDry {
      let found = try check(isStopping)
      return try Run(self, found, into: nil, isStopping: isStopping).report(body)
    }
    try repository.requireKnownFeatures(for: .write, .prune)
    let session = try repository.beginWriting()
    defer { session.abandon() }
    let right = try PruneLease(session.lease, for: "repair the snapshots of")
    defer { right.release() }
    let heartbeat = PruneLease.Heartbeat(right)
    let isStopping: @Sendable () -> Bool = { [isStopping] in
      heartbeat.beat()
      return isStopping()
    }
    let found = try check(isStopping)
    let target = Target(session: session, right: right)
    var report = try Run(self, found, into: target, isStopping: isStopping).report(body)
    report.damagedCondemned = session.damagedCondemned
    return report
  }

  /// Finds the losses. While the right to remove objects is held, only snapshots can disappear.
  private func check(_ isStopping: @escaping @Sendable () -> Bool) throws -> RepositoryCheck.Run {
    let check = RepositoryCheck(
      repository, workers: workers, counters: counters, isStopping: isStopping)
    let found: RepositoryCheck.Run
    do {
      found = try check.run().run
    } catch let error as StoreError where error.code == .interrupted {
      throw Self.interrupted(repository.location)
    }
    if let (pack, reason, remedy) = found.unread {
      let hint = "nothing was changed: its content may be intact"
      throw StoreError(
        .system, "read", subject: "\(repository.storage.layout.pack(pack))", reason: reason,
        hint: remedy.map { "\(hint); \($0)" } ?? hint)
    }
    return found
  }

  private static func interrupted(_ location: String) -> StoreError {
    .interrupted("finish the repair of snapshots in", location, hint: "run it again to continue")
  }
}

extension SnapshotRepair {
  /// The session that writes, and the right to remove objects.
  private struct Target {
    let session: WritingSession
    let right: PruneLease
  }

  /// A repair of the snapshots in the result of a check.
  private struct Run {
    private let repair: SnapshotRepair
    private let found: RepositoryCheck.Run
    /// The session; nil in a dry run.
    private let target: Target?
    private let isStopping: @Sendable () -> Bool

    init(
      _ repair: SnapshotRepair, _ found: RepositoryCheck.Run, into target: Target?,
      isStopping: @escaping @Sendable () -> Bool
    ) {
      (self.repair, self.found, self.target) = (repair, found, target)
      self.isStopping = isStopping
    }

    private var repository: Repository { repair.repository }

    func report(_ body: (Repaired) throws -> Void) throws -> Report {
      let chosen = found.snapshots.filter { repair.ids?.contains($0.id) ?? true }
      var report = Report(snapshots: chosen.count, isUnchecked: found.recorded.names.isEmpty)
      if repair.ids == nil { report.unreadable = found.unreadableSnapshots }
      if found.isWhole { return report }
      let pins = try repository.pins()
      let (trees, damaged) = try repairTrees(of: chosen)
      for (stored, tree) in damaged {
        let survey = try TreeSurvey(stored.snapshot, trees)
        var repaired = Repaired(
          old: stored, isLost: tree == nil, lost: survey.notes.notes,
          losses: survey.notes.count, isPinned: pins.contains(stored.id))
        if let target {
          let rest = tree.map { stored.snapshot($0, survey, in: repository) }
          try replace(&repaired, by: rest, target)
        }
        report.count(repaired)
        try body(repaired)
      }
      return report
    }

    /// Stores the trees of snapshots that have lost something, durably, and returns the snapshots
    /// with their new trees: in a dry run with their old ones, and with nil if nothing remains.
    private func repairTrees(
      of snapshots: [StoredSnapshot]
    ) throws -> (TreeRepair, [(StoredSnapshot, TreeReference?)]) {
      let session = target?.session
      // Trees in packs in which damage was found must not count as stored.
      session?.known.exclude(Set(found.damagedPacks.keys).union(found.index.lostPacks))
      let reader = try found.index.reader(of: repository)
      var trees = TreeRepair(reader, found.index, into: session) { () throws(StoreError) in
        if isStopping() { throw SnapshotRepair.interrupted(repository.location) }
      }
      var damaged: [(StoredSnapshot, TreeReference?)] = []
      for stored in snapshots {
        switch try trees.repair(stored.snapshot.tree) {
        case .whole: continue
        case .partial(let tree): damaged.append((stored, tree))
        case .lost: damaged.append((stored, nil))
        }
      }
      if !damaged.isEmpty { try session?.checkpoint() }
      return (trees, damaged)
    }

    /// Returns the snapshot that an earlier run made of the same losses, or nil. Saving it again
    /// would yield the same object, except that encryption gives the same content a new name each
    /// time.
    private func earlier(
      _ snapshot: Snapshot, isSigned: Bool
    ) throws(StoreError) -> StoredSnapshot? {
      guard repository.isEncrypted else { return nil }
      let signer = isSigned ? repository.signingKey?()?.signer : nil
      let signature = signer.map { SnapshotSignature.valid($0) } ?? .absent
      for stored in found.snapshots
      where stored.snapshot == snapshot && stored.signature == signature {
        let path = repository.storage.layout.snapshot(stored.id)
        if try repository.storage.status(path) != nil { return stored }
      }
      return nil
    }

    /// Saves the new snapshot, if anything remains, pins it if the old one is pinned, and then
    /// removes the old one if requested; but not a pinned one without a replacement.
    private func replace(
      _ repaired: inout Repaired, by snapshot: Snapshot?, _ target: Target
    ) throws {
      try target.right.requireHeld()
      let old = repaired.old.id
      // The old one may have been removed since it was listed.
      guard try repository.storage.status(repository.storage.layout.snapshot(old)) != nil else {
        repaired.isGone = true
        return
      }
      if let snapshot {
        // A signature must not make an untrusted snapshot trusted.
        let isTrusted = repository.vouches(for: repaired.old)
        let new =
          try earlier(snapshot, isSigned: isTrusted)
          ?? target.session.save(snapshot, isSigned: isTrusted)
        repaired.new = new
        if repaired.isPinned { try repository.pin([new.id]) }
      }
      guard repair.isForgetting else { return }
      if repaired.isPinned, repaired.new != nil { try repository.unpin([old]) }
      let removal = SnapshotRemoval(repository)
      var isRemoved = false
      _ = try removal.run([old]) { _ in isRemoved = true }
      repaired.isRemoved = isRemoved
    }
  }
}

extension StoredSnapshot {
  /// Returns the snapshot with another tree and the losses and totals of a survey. Everything else
  /// stays, including the sequence and the time, so that it takes the place of this one.
  fileprivate func snapshot(
    _ tree: TreeReference, _ survey: TreeSurvey, in repository: Repository
  ) -> Snapshot {
    var new = snapshot
    new.tree = tree
    new.original = Snapshot.Original(repository: repository.id, id: id)
    new.totals = survey.totals
    let notes = snapshot.unreadable + survey.notes.notes
    new.unreadable = notes.enumerated().sorted {
      ($0.element.path, $0.offset) < ($1.element.path, $1.offset)
    }.map(\.element)
    return new
  }
}
