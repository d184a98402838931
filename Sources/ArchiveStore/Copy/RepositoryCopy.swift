internal import Codecs
internal import SystemIO

/// Copies snapshots from one repository into another.
///
/// Only blobs that the target lacks are read. A frame that is needed completely moves unchanged,
/// without being decompressed; each blob is verified against its hash before it is stored. The
/// order is packs, index, snapshots: after an interruption the next copy relies on what is stored.
/// A snapshot that needs lost data is not copied. The source is not changed; if it can be written
/// to, a reader's lease keeps the packs that the copy needs.
public struct RepositoryCopy {
  /// A repository, and this host's caches for it.
  public struct Side {
    let repository: Repository
    let indexCache: IndexCache?
    let headCache: SnapshotHeadCache?

    /// Creates a side of a copy.
    public init(
      _ repository: Repository, indexCache: IndexCache? = nil, headCache: SnapshotHeadCache? = nil
    ) {
      (self.repository, self.indexCache, self.headCache) = (repository, indexCache, headCache)
    }
  }

  private let source: Side
  private let target: Side
  private let isDry: Bool
  private let isChecking: Bool
  private let workers: Int
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool
  /// Called before the copy waits for other programs that copy into the target and save their
  /// snapshots first, with their leases; called again if more of them appear.
  public var onWait: ([LeaseStatus]) -> Void = { _ in }
  /// The clock of the wait for other copies.
  var timing = CopyTurn.Timing()

  /// Prepares a copy with `workers` threads. A dry run changes nothing. With `isChecking`
  /// everything that the snapshots need is read from the target before they are saved there.
  /// `isStopping` is called often, on any thread; if it returns true, the copy ends after the
  /// current packs, which are kept.
  public init(
    from source: Side, to target: Side, isDry: Bool = false, isChecking: Bool = false,
    workers: Int = 1, counters: ProgressCounters = ProgressCounters(of: "pack"),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    (self.source, self.target) = (source, target)
    (self.isDry, self.isChecking) = (isDry, isChecking)
    (self.workers, self.counters, self.isStopping) = (max(1, workers), counters, isStopping)
  }

  /// Copies the snapshots for which `isSelected` returns true.
  ///
  /// - Throws: `StoreError`: `invalid` if source and target are the same repository,
  ///   `unknownFeature`, `leaseLost`, failures of a storage, `interrupted` before anything was
  ///   stored.
  public func run(where isSelected: (SnapshotHead) -> Bool = { _ in true }) throws -> Report {
    let (from, to) = (source.repository, target.repository)
    try from.requireKnownFeatures(for: .read)
    try to.requireKnownFeatures(for: .read)
    try requireDifferent()
    // A source that cannot be written to gets none: packs removed meanwhile are lost to the copy.
    let lease = isDry ? nil : try? ReaderLease(from)
    defer { lease?.release() }
    let session =
      isDry ? nil : try to.beginWriting(workers: packers, cache: target.indexCache)
    defer { session?.abandon() }
    do {
      var run = Run(self, session)
      let report = try run.report(where: isSelected)
      if report.hasDamage { try lease?.requireKept() }
      return report
    } catch let error as StoreError where error.code == .interrupted {
      throw StoreError.interrupted(
        "finish the copy to", to.location,
        hint: "run it again: data copied so far is not copied again"
      )
    }
  }

  /// The number of threads that write packs: more would wait and make many small packs.
  private var packers: Int { min(workers, Host.processors) }

  /// Checks that source and target are not the same directory.
  private func requireDifferent() throws(StoreError) {
    let to = target.repository.storage
    guard let identity = try to.directoryIdentity() else { return }
    guard try source.repository.storage.directoryIdentity() != identity else {
      throw StoreError(
        .invalid, "copy snapshots to", subject: to.location, reason: "it is the source itself",
        hint: "name another repository with '--to'")
    }
  }
}

extension RepositoryCopy {
  /// A copy while its leases are held.
  private struct Run {
    private let copy: RepositoryCopy
    /// The session in the target; nil in a dry run.
    private let session: WritingSession?
    private var report = Report()
    /// The snapshots of the source.
    private var heads: [SnapshotHead] = []

    init(_ copy: RepositoryCopy, _ session: WritingSession?) {
      (self.copy, self.session) = (copy, session)
    }

    private var isStopping: @Sendable () -> Bool { copy.isStopping }
    private var source: Repository { copy.source.repository }
    private var target: Repository { copy.target.repository }

    /// Returns the heads of the target. A copy that the target fails to send would be made again.
    private func targetHeads() throws(StoreError) -> [SnapshotHead] {
      let listing = try target.heads(cache: copy.target.headCache)
      try listing.requireSent(hint: "run it again later: data copied so far is not copied again")
      return listing.heads
    }

    mutating func report(where isSelected: (SnapshotHead) -> Bool) throws -> Report {
      let listing = try source.heads(cache: copy.source.headCache)
      report.unreadable = listing.damaged + (try source.lossesOfPinned())
      heads = listing.heads
      let chosen = listing.heads.filter(isSelected)
      report.snapshots = chosen.count
      let copies = SnapshotCopies(
        try targetHeads(), of: listing.heads, isEncrypted: source.isEncrypted)
      var (new, present): ([SnapshotHead], [(head: SnapshotHead, id: SnapshotID)]) = ([], [])
      for head in chosen {
        if let id = copies.copy(of: head) { present.append((head, id)) } else { new.append(head) }
      }
      report.present = present.count
      let isChecking = copy.isChecking && !copy.isDry
      // Must precede the adoption of damaged index objects' content, which can replace the objects.
      if isChecking, !present.isEmpty { report.targetDamage = try damagedIndexes(of: target) }
      let mended = try isMending ? present.map(\.head) : []
      if !(new.isEmpty && mended.isEmpty) { try transfer(&new, mending: mended) }
      if isChecking, !report.isInterrupted {
        try check(&new, present: present.map(\.id))
      }
      let others = report.isInterrupted ? [] : try save(new)
      try pin(present + others)
      return report
    }

    /// Whether content that existing copies have lost is stored again: a check of the target has
    /// recorded damaged packs, or this copy reads what the copies need anyway. Otherwise the trees
    /// of existing copies are not read.
    private var isMending: Bool {
      get throws(StoreError) {
        if copy.isChecking { return true }
        return try !DamageRecords(target.storage).packs.isEmpty
      }
    }

    /// Copies what the new snapshots need, and removes those that need lost data. Also copies what
    /// the existing copies of `present` lack, unless the source has lost it, too.
    private mutating func transfer(
      _ new: inout [SnapshotHead], mending present: [SnapshotHead]
    ) throws {
      try session?.adoptPacks()
      var needs = try SnapshotNeedsSearch(
        source, cache: copy.source.indexCache, threads: copy.workers, isStopping: isStopping
      ) { [source] in try source.snapshot($0) }
      report.damaged = needs.faults
      try drop(needs.mark(new, andWhatIsLeftOf: present), from: &new)
      if needs.needsUnindexedPacks { report.damaged.append(.incompleteIndex()) }
      (report.neededBlobs, report.neededBytes) = amount(needs.search)
      if let session {
        needs.filter { !session.contains($0.id) }
      } else {
        // Includes the packs that a copy would adopt.
        let known = try ReadableIndex(
          target, cache: copy.target.indexCache, isRescuing: true, isReliedOn: true)
        needs.filter { !known.isReliable($0.id) }
      }
      (report.missingBlobs, report.missingBytes) = amount(needs.search)
      guard report.missingBlobs > 0 else { return }
      guard let session else { return try plan(&new, needs) }
      let transfer = CopyTransfer(
        from: source, into: session, needs.search, counters: copy.counters)
      let result = try transfer.run(
        packs(of: needs.search), threads: copy.workers, isStopping: isStopping)
      (report.movedFrames, report.partFrames) = (result.movedFrames, result.partFrames)
      (report.newPacks, report.newBytes) =
        (session.statistics.packs, session.statistics.storedBytes)
      report.damaged += result.damaged
      report.isInterrupted = result.isInterrupted
      if !result.lost.isEmpty, !result.isInterrupted {
        try drop(
          needs.incomplete(new, besides: result.lost, because: result.damaged), from: &new)
      }
    }

    /// Removes the snapshots that a copy would not save, because content that they need is lost in
    /// packs whose damage is recorded or visible from their size. Of these packs it reads what the
    /// copy would read, and nothing of the others.
    private mutating func plan(
      _ new: inout [SnapshotHead], _ needs: SnapshotNeedsSearch
    ) throws {
      let result = try CopyCheck(source, needs.search, counters: copy.counters).run(
        in: [.damaged], threads: copy.workers, isStopping: isStopping)
      report.damaged += result.damaged
      report.isInterrupted = result.isInterrupted
      if !result.lost.isEmpty, !result.isInterrupted {
        try drop(
          needs.incomplete(new, besides: result.lost, because: result.damaged), from: &new)
      }
    }

    private mutating func drop(
      _ incomplete: [IncompleteSnapshot], from new: inout [SnapshotHead]
    ) {
      let ids = Set(incomplete.map(\.head.id))
      let dropped = Set(new.map(\.id)).intersection(ids)
      report.incomplete += incomplete.filter { dropped.contains($0.head.id) }
      new.removeAll { dropped.contains($0.id) }
    }

    private func packs(of search: UsedBlobSearch) -> [PrunePlan.Pack] {
      PackUsage.packs(of: search, in: [.reliable, .condemned, .damaged]).filter {
        $0.usedBlobs > 0
      }
    }

    private func amount(_ search: UsedBlobSearch) -> (blobs: Int, bytes: UInt64) {
      (search.used.count, packs(of: search).reduce(0) { $0 + $1.used })
    }

    /// Reads everything that the new snapshots, and the existing copies of the selected ones, need
    /// from the target. New snapshots that are damaged there are not saved.
    private mutating func check(
      _ new: inout [SnapshotHead], present: [SnapshotID]
    ) throws {
      let ids = Set(present)
      let heads = try targetHeads().filter { ids.contains($0.id) }
      var needs = try SnapshotNeedsSearch(
        target, cache: copy.target.indexCache, threads: copy.workers, isStopping: isStopping
      ) { [source, target] id in try ids.contains(id) ? target.snapshot(id) : source.snapshot(id) }
      // The trees of the new snapshots are in the target, the snapshots are not yet.
      var found = try needs.mark(new + heads)
      let checker = CopyCheck(target, needs.search, counters: copy.counters)
      let result = try checker.run(threads: copy.workers, isStopping: isStopping)
      (report.checkedBlobs, report.checkedBytes) = (result.blobs, result.bytes)
      let indexes = try damagedIndexes(of: target)
      report.targetDamage += indexes.filter { !report.targetDamage.contains($0) } + result.damaged
      report.isInterrupted = result.isInterrupted
      if !result.lost.isEmpty {
        let known = Set(found.map(\.head.id))
        found += try needs.incomplete(
          (new + heads).filter { !known.contains($0.id) }, besides: result.lost,
          because: result.damaged)
      }
      report.damagedInTarget = found
      let damaged = Set(found.map(\.head.id))
      new.removeAll { damaged.contains($0.id) }
    }

    /// Returns the errors of index objects that do not match their ids. Reads the objects
    /// themselves, not this host's copies.
    private func damagedIndexes(of repository: Repository) throws(StoreError) -> [StoreError] {
      var errors: [StoreError] = []
      for id in try RepositoryListing.indexes(repository.storage) {
        let path = repository.storage.layout.index(id)
        if try ObjectCopier.isIntact(id, at: path, in: repository.storage) { continue }
        // A merge may have replaced it.
        guard try repository.storage.status(path) != nil else { continue }
        errors.append(.wrongContent(of: path).hinting(StoreError.indexHint))
      }
      return errors
    }

    /// Saves the snapshots, whose content is durable, the oldest first, and pins the copies of
    /// pinned ones. Returns those that already exist: another program has copied them meanwhile, or
    /// they equal an earlier one.
    private mutating func save(
      _ new: [SnapshotHead]
    ) throws -> [(head: SnapshotHead, id: SnapshotID)] {
      var present: [(head: SnapshotHead, id: SnapshotID)] = []
      if new.isEmpty { return present }
      guard try takeTurn() else {
        report.isInterrupted = true
        return present
      }
      let known = session == nil ? [] : try targetHeads()
      let pins = session == nil ? [] : try source.pins()
      var copies = SnapshotCopies(known, of: heads, isEncrypted: source.isEncrypted)
      for head in new {
        if let id = copies.copy(of: head) {
          present.append((head, id))
          continue
        }
        if isStopping() {
          report.isInterrupted = true
          break
        }
        guard let copied = try save(head) else { continue }
        if let id = copied.id, pins.contains(head.id) { try pin(id) }
        copies.add(copied.id ?? head.id, of: head)
        report.copied.append(copied)
      }
      report.present += present.count
      return present
    }

    /// Waits for the turn to save snapshots in the target. Returns false if it was interrupted.
    private func takeTurn() throws(StoreError) -> Bool {
      guard let session else { return true }
      var turn = CopyTurn(session.lease, copy.timing)
      return try turn.take(isStopping: isStopping, onWait: copy.onWait)
    }

    /// Saves the copy of a snapshot; not in a dry run. Returns nil if the snapshot cannot be read.
    private mutating func save(_ head: SnapshotHead) throws -> Copied? {
      guard let session else { return Copied(head: head, id: nil) }
      let found: (stored: StoredSnapshot, content: [UInt8])
      do throws(StoreError) {
        found = try source.snapshotWithContent(head.id)
      } catch {
        guard error.kind == .damaged else { throw error }
        // A snapshot that no longer exists was removed in the meantime.
        if error.code != .missing { report.unreadable.append(error) }
        return nil
      }
      let id = try save(found.stored, content: found.content, by: session)
      return Copied(head: head, id: id)
    }

    /// Saves the copy of a snapshot. In a repository of the same id and encryption, such as a
    /// mirror, the stored bytes stay, so that it is the same snapshot.
    private func save(
      _ stored: StoredSnapshot, content: [UInt8], by session: WritingSession
    ) throws(StoreError) -> SnapshotID {
      guard source.id == target.id, source.isEncrypted, target.isEncrypted else {
        // A signature must not make an untrusted snapshot trusted.
        let copy = stored.copy(
          in: target.id, content: content, key: target.signingKey?(),
          isSigned: source.vouches(for: stored))
        return try session.save(encoded: copy)
      }
      let path = source.storage.layout.snapshot(stored.id)
      let limit = source.storage.storedLimit(of: FormatLimit.snapshot)
      let object = EncodedObject(try source.storage.loadStored(stored.id, at: path, limit: limit))
      try session.save(object)
      return object.id
    }

    /// Pins the existing copies of pinned snapshots: a copy may have ended between a snapshot and
    /// its pin. Pins are never removed.
    private func pin(_ present: [(head: SnapshotHead, id: SnapshotID)]) throws(StoreError) {
      guard !copy.isDry, !present.isEmpty else { return }
      let (from, to) = (try source.pins(), try target.pins())
      for (head, id) in present where from.contains(head.id) && !to.contains(id) {
        try pin(id)
      }
    }

    private func pin(_ id: SnapshotID) throws(StoreError) {
      do throws(StoreError) {
        try target.pin([id])
      } catch {
        // The snapshot was removed from the target in the meantime.
        guard error.code == .noSnapshot else { throw error }
      }
    }
  }
}
