public import ArchiveStore
internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Carries out a `BackupPlan`: stores what the plan keeps, then the snapshot.
///
/// What the state of an earlier run knows and what is as it was is not read; several threads read
/// the rest, and content that the repository has already is not stored again. When nothing can be
/// written any more, or the work is interrupted, the lease is given back and no snapshot appears;
/// what was stored in whole packs stays, for the next run.
public struct BackupOperation {
  let plan: BackupPlan
  let repository: Repository
  let request: BackupRequest
  /// The data classes that the snapshot notes: found out once, as all entries are looked at for it.
  let classRuns: [ClassRun]
  /// Containers that earlier rounds of the run found removed.
  var removed: [Container] = []

  /// Prepares an operation.
  public init(_ plan: BackupPlan, to repository: Repository, _ request: BackupRequest) {
    self.plan = plan
    self.repository = repository
    self.request = request
    classRuns = plan.classRuns
  }

  /// Stores everything and writes the snapshot.
  ///
  /// - Throws: `LifecycleError`: `busy` when another run of the same source is going on,
  ///   `interrupted`, `failed` when what is new does not fit, or a snapshot cannot say of what classes
  ///   it is; `StoreError`; `SystemError`.
  public func run() throws -> BackupReport {
    let start = Host.monotonicSeconds()
    try request.classBound.require(classRuns, of: plan.device.root)
    try plan.requireSource()
    let state = try openState()
    let session = try repository.beginWriting(
      workers: request.workers,
      cache: request.index ?? request.cache.map { repository.indexCache(in: $0) })
    do {
      let earlier = try earlier()
      let (last, run) = try readAll(session, state, earlier)
      var report = BackupReport()
      report.remarks = state.remarks
      report.damagedIndexes = session.damagedIndexes
      let tree = try last.storeAbove(run)
      last.fill(&report, run, start)
      try last.finish(tree, run, earlier, &report)
      report.seconds = Host.monotonicSeconds() - start
      return report
    } catch {
      session.abandon()
      throw error
    }
  }

  private var source: Digest { SourceIdentity.digest(of: plan.device) }

  private func openState() throws -> SourceState {
    try SourceState.open(
      StateKey(repository: repository.id, source: source), in: request.cache,
      program: request.program, under: request.lock)
  }

  /// Finds out what is to be read and, in the first round, whether there is room for it: later ones
  /// read little that the repository does not hold by now.
  func prepare(
    _ session: WritingSession, _ state: SourceState, _ earlier: EarlierSnapshot, isFirst: Bool
  ) throws -> BackupRun {
    let trees = plan.scans.enumerated().map { SelectedTree($0, $1) }
    var links = HardLinks(trees)
    var contents = StoredContents(session)
    if !request.verifiesBundles {
      contents.versions = BundleVersions(plan.device, earlier.stored)
    }
    let known = trees.map { ChangeDetector.make($0, among: trees, state, links, contents) }
    links.lead(trees, known)
    let space = SpaceCheck(trees, known, links) { tree, known, index in
      guard let key = known.directories[tree.scan.entries[index].parent]?.key else { return 0 }
      let file = key.file(tree.scan.name(index))
      return state.pieces(of: file, tree.scan.entries[index].status).bytes { digest in
        session.keepAlive()
        return session.contains(BlobID(kind: .data, digest: digest))
      }
    }
    request.counters.expect(files: space.totals.files, bytes: space.totals.bytes)
    if isFirst { try checkSpace(space, trees, state, earlier.stored) }
    return BackupRun(trees, known, links, session, state, request, began: plan.began)
  }

  private func checkSpace(
    _ check: SpaceCheck, _ trees: [SelectedTree], _ state: SourceState, _ earlier: StoredSnapshot?
  ) throws {
    guard request.checksSpace, let space = try repository.storage.space() else { return }
    var growth: UInt64?
    if state.containers.isEmpty, let last = earlier?.snapshot.totals.bytes {
      let contents = SpaceCheck.contents(of: trees)
      growth = contents > last ? contents - last : 0
    }
    try check.require(
      space, keepFree: request.keepFree, growth: growth,
      afterwards: request.neededAfterwards, place: repository.place)
  }

  /// Reads; when that is interrupted, what is done is made good for the next run.
  func work(_ run: BackupRun) throws {
    do {
      try run.work()
    } catch let error as LifecycleError where error.kind == .interrupted {
      try run.checkpoint()
      throw error
    }
  }

  /// Stores the directories above the containers; gives the snapshot's tree.
  ///
  /// - Throws: `LifecycleError` when of all that is kept nothing could be read: a snapshot of nothing
  ///   would be taken for the last one.
  private func storeAbove(_ run: BackupRun) throws -> TreeReference {
    try run.requireWhole()
    var tree = LogicalTree()
    var isNothing =
      run.trees.contains { !$0.isEmpty } || !(plan.unreadable + run.findings.unreadable).isEmpty
    for (number, known) in run.known.enumerated() {
      let root = run.assembly.root(number)?.entry ?? known.root?.entry.entry
      guard let root else { continue }
      tree.place(root, at: run.trees[number].scan.container.logicalPrefix)
      isNothing = false
    }
    if isNothing { throw nothingToStore(run) }
    return try tree.store(run.session)
  }

  private func nothingToStore(_ run: BackupRun) -> LifecycleError {
    let findings = run.findings
    let reason = (plan.unreadable + findings.unreadable + findings.warnings).first?.remark
    return LifecycleError(
      .failed, "cannot back up '\(plan.device.root)': \(reason ?? "nothing in it could be read")",
      hint: "no snapshot was made; earlier ones are as they were")
  }

  private func fill(_ report: inout BackupReport, _ run: BackupRun, _ start: Double) {
    let findings = run.findings
    report.unreadable = plan.unreadable
    report.warnings = plan.warnings
    report.add(findings)
    report.addRemoved(removed)
    VanishedContainers(plan, run, earlier: removed).tell(&report)
    report.count(run.trees, findings)
    report.opened = request.counters.progress.opened
    report.seconds = Host.monotonicSeconds() - start
  }

  /// The source's last snapshot of the same scope, and how many the source has had.
  private func earlier() throws(StoreError) -> EarlierSnapshot {
    let history = try repository.history(
      of: source, scope: request.scope, cache: request.cache.map { repository.headCache(in: $0) })
    return EarlierSnapshot(stored: history.last, sequence: history.sequence)
  }

  /// Writes the snapshot, and then the state that belongs to it.
  private func finish(
    _ tree: TreeReference, _ run: BackupRun, _ earlier: EarlierSnapshot,
    _ report: inout BackupReport
  ) throws {
    let stored: StoredSnapshot
    // New blobs of an unchanged tree replace lost ones: they need a snapshot of their own.
    if request.skipsUnchanged, let last = earlier.stored, last.snapshot.tree == tree,
      run.session.statistics.newBlobs == 0
    {
      report.isUnchanged = true
      run.session.abandon()
      stored = last
    } else {
      stored = try run.session.finish(makeSnapshot(tree, earlier, report))
      report.snapshot = stored
    }
    report.statistics = run.session.statistics
    if let remark = run.session.indexRemark {
      report.remarks.append("the index was not merged: \(remark.reason)")
    }
    do throws(LifecycleError) {
      try run.source.finish(
        records(run), snapshot: stored.id, packs: run.session.indexedPacks,
        keepingOthers: request.isPart)
    } catch { report.remarks.append(error.description) }
  }

  /// The containers as this run found them, for the next one.
  private func records(_ run: BackupRun) -> [RecordedContainer] {
    run.trees.compactMap { tree in
      let path = tree.scan.container.logicalPrefix
      guard let status = tree.scan.entries.first?.status, let name = path.lastComponent else {
        return nil
      }
      if let root = run.assembly.root(tree.number) {
        let clock = run.clock(of: tree.number)
        let isStable =
          root.isWhole && ChangeRules.isStable(status, readAt: clock.start, in: clock)
        return RecordedContainer(
          path: path, status: status, isStable: isStable,
          encoded: try? root.entry.named(name).encoded(), directory: root.record)
      }
      guard let known = run.known[tree.number].root?.entry else { return nil }
      return RecordedContainer(
        path: path, status: status, isStable: known.isStable,
        encoded: known.encoded.map { Array($0) }, directory: known.directory)
    }
  }
}
