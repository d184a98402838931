package import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
package import DeviceTransaction
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Executes a `BackupPlan`: stores the included entries, then the snapshot.
///
/// Entries that are unchanged since the state was recorded are not read. Several threads read the
/// rest, and content that the repository already has is not stored again. If writing fails or the
/// work is interrupted, the lease is released and no snapshot is created. Complete packs remain in
/// the repository for the next run.
package struct BackupOperation {
  let plan: BackupPlan
  let repository: Repository
  let request: BackupRequest
  /// The data classes recorded in the snapshot. Computed once, as that visits every entry.
  let classRuns: [ClassRun]
  /// Receives a warning about the work ahead, before any data is read.
  package var didFindRisk: ((String) -> Void)?
  /// Containers that earlier rounds of the run found removed.
  var removed: [Container] = []

  /// Creates an operation.
  package init(_ plan: BackupPlan, to repository: Repository, _ request: BackupRequest) {
    self.plan = plan
    self.repository = repository
    self.request = request
    classRuns = plan.classRuns
  }

  /// Stores the entries and writes the snapshot.
  ///
  /// - Throws: `OperationError`: `busy` if another run of the same source is in progress,
  ///   `interrupted`, or `failed` if the new data does not fit or has more data classes than a
  ///   snapshot can record; `StoreError`; `SystemError`.
  package func run() throws -> BackupReport {
    let start = Host.monotonicSeconds()
    try request.classLimit.require(classRuns, of: plan.device.root)
    try plan.requireSource()
    let state = try openState()
    let session = try repository.beginWriting(
      workers: request.workers,
      cache: request.index ?? request.cache.map { repository.indexCache(in: $0) })
    do {
      let lost = session.lostSnapshots(cache: request.cache.map { repository.headCache(in: $0) })
      let earlier = try earlier(session)
      let (last, run) = try readAll(into: session, state: state, earlier: earlier)
      var report = BackupReport()
      report.devices = earlier.devices
      report.remarks = state.remarks
      report.damagedObjects =
        (lost.map { [$0] } ?? []) + session.damagedCondemned + session.damagedIndexes
      let tree = try last.storeAbove(run)
      last.fill(&report, from: run, since: start)
      if let remark = last.lossOfEverything(since: earlier) { report.addEmptied(remark) }
      try last.finish(with: tree, of: run, after: earlier, report: &report)
      report.seconds = Host.monotonicSeconds() - start
      return report
    } catch {
      session.abandon()
      throw error
    }
  }

  var source: Digest { SourceIdentity.digest(of: plan.device) }

  private func openState() throws -> SourceState {
    try SourceState.open(
      StateKey(repository: repository.id, source: source), in: request.cache,
      program: request.program, under: request.lock, boot: Boot(request.boot))
  }

  /// Determines the entries to read and, in the first round, whether they fit in the repository.
  /// Later rounds read little that the repository does not already hold.
  func prepare(
    for session: WritingSession, state: SourceState, earlier: EarlierSnapshot, isFirst: Bool
  ) throws -> BackupRun {
    let trees = plan.scans.enumerated().map { SelectedTree($0, $1) }
    var links = HardLinks(trees)
    session.observeLists { state.lists.add($0) }
    var contents = ChangeDetector.Contents(session, state)
    if !request.verifiesBundles {
      contents.versions = SameBundle.Versions(plan.device, earlier.stored)
    }
    var known = trees.map {
      ChangeDetector.make($0, among: trees, state: state, links: links, contents: contents)
    }
    var remarks: [String] = []
    if request.isLocked {
      remarks = removeLocked(
        from: &known, of: trees, links: links, contents: contents,
        earlier: try earlierSnapshots(session, state: state, earlier: earlier))
    }
    links.lead(trees, known)
    let space = SpaceCheck(trees, known: known, links: links) { tree, known, index in
      guard let key = known.directories[tree.scan.entries[index].parent]?.key else { return 0 }
      let file = key.file(tree.scan.name(index))
      return state.pieces(of: file, tree.scan.entries[index].status).bytes { digest in
        session.contains(BlobID(kind: .data, digest: digest))
      }
    }
    request.counters.expect(files: space.totals.files, bytes: space.totals.bytes)
    if isFirst { try checkSpace(space, for: trees, state: state, earlier: earlier.stored) }
    let run = BackupRun(
      trees, known: known, links: links, session: session, source: state, request: request,
      began: plan.began)
    for remark in remarks { run.record { $0.record(remark) } }
    return run
  }

  private func checkSpace(
    _ check: SpaceCheck, for trees: [SelectedTree], state: SourceState, earlier: StoredSnapshot?
  ) throws {
    // A run that reads nothing is never refused, so it need not ask for the space.
    guard request.checksSpace, check.totals.files > 0 || request.neededAfterwards > 0,
      let space = try repository.storage.space()
    else { return }
    var growth: UInt64?
    if state.containers.isEmpty, let last = earlier?.snapshot.totals.bytes {
      let contents = SpaceCheck.contents(of: trees)
      growth = contents > last ? contents - last : 0
    }
    let warning = try check.require(
      space, keepFree: request.keepFree, growth: growth,
      afterwards: request.neededAfterwards, location: repository.location)
    if let warning { didFindRisk?(warning) }
  }

  /// Reads and stores the entries. If that is interrupted, saves the progress for the next run.
  func work(_ run: BackupRun) throws {
    do {
      try run.work()
    } catch let error as OperationError where error.kind == .interrupted {
      try run.checkpoint()
      throw error
    }
  }

  /// Stores the directories above the containers and returns the snapshot's tree.
  ///
  /// - Throws: `OperationError` if none of the included entries could be read: an empty snapshot
  ///   would become the latest one.
  private func storeAbove(_ run: BackupRun) throws -> TreeReference {
    try run.requireWhole()
    var tree = LogicalTree()
    var isNothing =
      run.trees.contains { !$0.isEmpty } || !(plan.unreadable + run.findings.unreadable).isEmpty
    for (number, known) in run.known.enumerated() {
      let root = run.saver.root(number)?.entry ?? known.root?.entry.entry
      guard let root else { continue }
      tree.add(root, at: run.trees[number].scan.container.logicalPrefix)
      isNothing = false
    }
    if isNothing { throw nothingToStore(run) }
    return try tree.store(run.session)
  }

  private func nothingToStore(_ run: BackupRun) -> OperationError {
    let findings = run.findings
    let reason = (plan.unreadable + findings.unreadable + findings.warnings).first?.remark
    return OperationError(
      .failed, code: .nothingReadable,
      "back up", subject: plan.device.root,
      reason: reason ?? "nothing in it could be read",
      hint: "no snapshot was created; earlier snapshots are unchanged")
  }

  private func fill(_ report: inout BackupReport, from run: BackupRun, since start: Double) {
    let findings = run.findings
    report.unreadable = plan.unreadable
    report.warnings = plan.warnings
    report.add(findings)
    report.addRemoved(removed)
    reportMovedContainers(of: run, in: &report)
    report.count(run.trees, findings)
    report.opened = request.counters.progress.opened
    report.seconds = Host.monotonicSeconds() - start
  }

  /// Returns the source's last snapshot of the same scope and its greatest sequence number.
  private func earlier(_ session: WritingSession) throws(StoreError) -> EarlierSnapshot {
    let history = try session.history(
      of: source, scope: request.scope, cache: request.cache.map { repository.headCache(in: $0) })
    return EarlierSnapshot(
      stored: history.last, sequence: history.sequence, devices: history.devices)
  }

  /// Writes the snapshot, then the state that belongs to it.
  private func finish(
    with tree: TreeReference, of run: BackupRun, after earlier: EarlierSnapshot,
    report: inout BackupReport
  ) throws {
    let stored: StoredSnapshot
    // New blobs of an unchanged tree replace lost ones and need a snapshot of their own.
    if request.skipsUnchanged, let last = earlier.stored, last.snapshot.tree == tree,
      run.session.statistics.newBlobs == 0
    {
      report.isUnchanged = true
      run.session.abandon()
      stored = last
    } else {
      stored = try run.session.finish(makeSnapshot(of: tree, after: earlier, report: report))
      report.snapshot = stored
      // Without a key the head is found only there, for example by 'schedule status'.
      if let cache = request.cache {
        run.session.record(stored, in: repository.headCache(in: cache))
      }
    }
    report.statistics = run.session.statistics
    if let remark = run.session.indexRemark {
      report.remarks.append("the index was not merged: \(remark.reason)")
    }
    do throws(OperationError) {
      try run.source.finish(
        records(run), snapshot: stored.id, packs: run.session.indexedPacks,
        keepingOthers: request.isPart)
    } catch { report.remarks.append(error.description) }
  }

  /// Returns the records of the containers for the next run.
  private func records(_ run: BackupRun) -> [SourceState.RecordedContainer] {
    run.trees.compactMap { tree in
      let path = tree.scan.container.logicalPrefix
      guard let status = tree.scan.entries.first?.status, let name = path.lastComponent else {
        return nil
      }
      if let root = run.saver.root(tree.number) {
        let clock = run.clock(of: tree.number)
        let isStable =
          root.isWhole && ChangeRules.isStable(status, readAt: clock.start, in: clock)
        return SourceState.RecordedContainer(
          path: path, status: status, isStable: isStable,
          encoded: try? root.entry.named(name).encoded(), directory: root.record)
      }
      guard let known = run.known[tree.number].root?.entry else { return nil }
      return SourceState.RecordedContainer(
        path: path, status: status, isStable: known.isStable,
        encoded: known.encoded.map { Array($0) }, directory: known.directory)
    }
  }
}

extension SafetySnapshotMaker {
  /// Creates a maker of snapshots by a backup.
  ///
  /// - Parameter request: the options of the backup.
  package init(_ request: BackupRequest, in repository: Repository) {
    self.init(in: repository) { wanted in
      var request = request
      request.reason = wanted.reason
      request.scope = wanted.scope
      request.isPart = true
      request.skipsUnchanged = false
      request.neededAfterwards = wanted.neededAfterwards
      let plan = BackupPlan.make(wanted.scan)
      let report = try BackupOperation(plan, to: repository, request).run()
      return (report.snapshot, report.firstGap)
    }
  }
}

/// Checks whether the data to store fits in the repository (docs/design.md, "Backup and restore").
///
/// For a changed file, only the growth is certain to be new: its other bytes may all be stored
/// already, like most pages of a large database.
struct SpaceCheck {
  /// The entries to read.
  private(set) var totals = EntryTotals()
  /// The number of bytes to read, without holes.
  private var read: UInt64 = 0
  /// The new bytes by app, group or directory, and by data class.
  private var owners: [ByteString: UInt64] = [:]
  private var classes: [DataClass: UInt64] = [:]

  /// Adds up the entries to read. A hard-linked database is read under each name and stored once.
  ///
  /// - Parameter resumed: the number of bytes of a large file that an interrupted run has already
  ///   stored.
  init(
    _ trees: [SelectedTree], known: [UnchangedEntries], links: HardLinks,
    resumed: (SelectedTree, UnchangedEntries, Int) -> UInt64
  ) {
    var seen = Set<FileIdentity>()
    for (tree, known) in zip(trees, known) where !tree.isEmpty && !known.isWhole(0) {
      // Added for an owner at once: a table lookup for each of a million files would be measurable.
      var bytes: UInt64 = 0
      for (index, entry) in tree.scan.entries.enumerated()
      where entry.status.kind == .file && entry.selection != .excluded && !known.isKnown(index)
        && known.renamedLinks[Int32(index)] == nil && known.copies[Int32(index)] == nil
        && known.uncertain[Int32(index)] == nil && known.waiting[Int32(index)] == nil
        && !links.isFollower(tree.id(index))
      {
        totals.add(entry.status)
        if !seen.isFirst(entry.status) { continue }
        var stored = entry.status.storedBytes
        if entry.status.size >= BackupWorker.LargeFile.minimumSize {
          stored -= min(stored, resumed(tree, known, index))
        }
        read += stored
        let new = known.newBytes(of: index, size: stored)
        bytes += new
        classes[entry.verdicts.keep.dataClass, default: 0] += new
      }
      owners[tree.scan.container.logicalPrefix.subject, default: 0] += bytes
    }
  }

  /// Returns the bytes of all included files, as the totals of their snapshot count them: including
  /// holes, and a hard-linked file once.
  static func contents(of trees: [SelectedTree]) -> UInt64 {
    var (bytes, seen) = (UInt64(0), Set<FileIdentity>())
    for tree in trees {
      for entry in tree.scan.entries
      where entry.status.kind == .file && entry.selection != .excluded && seen.isFirst(entry.status)
      {
        bytes.addClamping(entry.status.size)
      }
    }
    return bytes
  }

  /// The number of bytes to store if no new file equals a stored one and nothing compresses.
  private var new: UInt64 { owners.values.reduce(0, +) }

  /// Throws if the new data does not fit. Returns a warning if it fits, but the changed files do
  /// not if all of their content is new; otherwise nil.
  ///
  /// - Parameters:
  ///   - growth: the number of bytes by which the included files exceed those in the last snapshot,
  ///     if nothing else shows how much is already stored.
  ///   - afterwards: the number of bytes to be written to the same volume after the backup.
  func require(
    _ space: VolumeSpace, keepFree: UInt64?, growth: UInt64?, afterwards: UInt64, location: String
  ) throws(OperationError) -> String? {
    let reserve = keepFree ?? min(space.total / 20, 10 << 30)
    let needed = min(new, growth ?? new)
    let required = reserve + afterwards
    let usable = space.available > required ? space.available - required : 0
    guard needed > usable else {
      guard growth == nil, read > usable else { return nil }
      return "'\(location)' may become full: \(Self.text(needed)) are new, and up to "
        + "\(Self.text(read - needed)) of changed files may have to be stored again; "
        + "\(Self.text(space.available)) are free, of which \(Self.text(reserve)) must stay free"
    }
    let next = afterwards > 0 ? ", and \(Self.text(afterwards)) are needed after the backup" : ""
    throw OperationError(
      .failed, code: .noSpace,
      "back up to", subject: location,
      reason: "not enough space: up to \(Self.text(needed)) must be stored, "
        + "\(Self.text(space.available)) are free, of which \(Self.text(reserve)) must stay "
        + "free\(next). Largest: \(largest)",
      hint: "free space on that volume, exclude files with '--exclude', choose how much stays free "
        + "with '--keep-free', or skip this check with '--no-space-check'")
  }

  /// The largest apps, groups or directories, and the largest data classes.
  private var largest: String {
    let owners = owners.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(3)
      .map { "\($0.key) \(Self.text($0.value))" }
    let classes = classes.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
      .prefix(3).map { "\($0.key.rawValue) \(Self.text($0.value))" }
    return owners.joined(separator: ", ") + "; " + classes.joined(separator: ", ")
  }

  private static func text(_ bytes: UInt64) -> String { ByteCount.text(bytes) }
}
