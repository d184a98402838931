package import ArchiveStore
internal import DeviceTransaction
package import SystemIO

// A restore creates a directory or a file from a snapshot's path, or merges it into an existing
// one.
//
// First it makes a plan: it walks the snapshot's tree and the target side by side, and decides for
// each entry whether to create it, to replace the existing one, or to keep that. Then it creates
// all new entries in a staging directory on the target's file system: several threads write the
// contents in the order of the packs, decode each frame once, and check each blob against its hash
// before its bytes are written. It syncs the volume, moves the staged entries into place by renames
// (a new directory by a single one), and syncs the volume again. Deletions, the times of merged
// directories, and flags come last.
//
// So the target is unchanged until the first rename, and the staging directory is removed if the
// restore fails. Damaged entries are excluded and reported; data that differs from its hash is
// never written. Not guaranteed: that a restore into an existing directory is atomic (each of its
// entries is), and the result of concurrent changes by other programs.
//
// A restore into a device runs under a journal and keeps replaced entries in the trash
// (docs/journal.md).

/// Carries out a `RestorePlan`.
package struct RestoreOperation: ~Copyable {
  /// One container of a restore under a journal, which is updated before the container is staged
  /// and before it is put in place.
  final class JournaledPart {
    private let journal: OperationJournal
    private let number: Int
    private let container: ByteString
    private let root: ByteString
    /// The note of a directory whose permissions are opened for its move.
    var opened: OpenedNote { journal.opened }
    /// Whether the container is in neither its previous nor its stored state, and needs a recovery.
    var isUnstable: Bool {
      get { journal.isUnstable }
      set { journal.isUnstable = newValue }
    }
    /// Whether entries of it were moved to the trash.
    private(set) var hasTrash = false
    /// Refuses a running app, whose files are about to be replaced.
    let requireStopped: () throws(OperationError) -> Void

    init(
      _ journal: OperationJournal, number: Int, container: ByteString, root: ByteString,
      requireStopped: @escaping () throws(OperationError) -> Void
    ) {
      (self.journal, self.number, self.container, self.root) = (journal, number, container, root)
      self.requireStopped = requireStopped
    }

    /// Records that the container is about to be staged in a directory.
    func prepare(in directory: ByteString) throws(SystemError) {
      try journal.prepare(number, stagingIn: [directory])
    }

    /// The staging directories that other operations of the device need.
    var needed: NeededStaging { NeededStaging(on: root, besides: journal.record.id) }

    /// Returns the trash directory for replaced entries; nil if nothing is replaced.
    func trash(
      for plan: RestorePlan, in directory: borrowing Directory, probing probe: borrowing Directory
    ) throws(SystemError) -> TrashDirectory? {
      guard plan.displaces else { return nil }
      hasTrash = true
      return try TrashDirectory(
        of: journal.record, for: container, in: directory, probing: probe, root: root)
    }

    /// Records that no further step follows, before the staged entries are removed. If the volume
    /// has no space for the record, the journal is removed instead, which needs none.
    func settleSteps() throws(SystemError) {
      do throws(SystemError) { try journal.settleSteps() } catch { try journal.end() }
    }

    /// Records the steps that are about to be applied; all entries that they move are on disk.
    func move(
      _ plan: RestorePlan, from run: RestoreRun, keepingIn trash: TrashDirectory?
    ) throws(SystemError) {
      let steps = PlacementSteps(plan, without: run.findings, hasTrash: trash != nil).all
      if !steps.isEmpty { try journal.move(steps, below: run.roots(keptIn: trash?.path)) }
    }
  }

  private let plan: RestorePlan
  private let reader: RepositoryReader
  private let threads: Int
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool
  /// The journal of a restore into a device; nil for a plain directory.
  private let part: JournaledPart?
  /// The kernel version: some kernels do not report all errors of a volume sync.
  package var kernel = Host.kernelVersion
  /// Whether only this operation uses the reader, so that its lease may end with the reads.
  package var endsReading = false

  /// Creates an operation. It calls `isStopping` often, on any thread; once that returns true, it
  /// removes the staged entries and throws a `OperationError` of the kind `interrupted`. It updates
  /// the counters with its progress.
  package init(
    _ plan: RestorePlan, from reader: RepositoryReader, threads: Int = Host.processors,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.init(
      plan, from: reader, threads: threads, counters: counters, part: nil, isStopping: isStopping)
  }

  init(
    _ plan: RestorePlan, from reader: RepositoryReader, threads: Int = Host.processors,
    counters: ProgressCounters, part: JournaledPart?, isStopping: @escaping @Sendable () -> Bool
  ) {
    self.part = part
    self.plan = plan
    self.reader = reader
    self.threads = threads
    self.counters = counters
    self.isStopping = isStopping
  }

  /// Restores, and returns a report.
  ///
  /// - Throws: `OperationError`: `failed` if the volume has no room, before anything is written, or
  ///   if an error ends the whole restore; `busy` if another restore changes the same plain
  ///   directory; `interrupted`; `StoreError`.
  package consuming func run() throws -> RestoreReport {
    let start = Host.monotonicSeconds()
    try plan.requireAloneWhenPlanned()
    try requireRoom()
    var report = RestoreReport(plan)
    do {
      let root = try Directory.make(resolved: plan.target.directory)
      try plan.requirePlanned(root)
      try part?.prepare(in: plan.target.directory)
      let modes = try MergedModes(in: root)
      modes.openRoot(isMerged: plan.target.name == nil)
      do {
        try restore(in: root, modes, &report)
      } catch {
        // Otherwise the recovery still puts entries into the directories.
        if part?.isUnstable != true { modes.revert(plan.tree) }
        throw error
      }
    } catch let error as SystemError {
      throw OperationError(error)
    }
    report.seconds = Host.monotonicSeconds() - start
    return report
  }

  private func restore(
    in root: borrowing Directory, _ modes: MergedModes, _ report: inout RestoreReport
  ) throws {
    let staging = try StagingDirectory.make(
      in: root, keeping: needed, for: part == nil ? plan.work : .locked)
    do {
      if part == nil { try plan.requireAlone(in: root, besides: staging.name) }
      let run = try RestoreRun(
        plan, in: root, staging: staging, threads: threads, counters: counters, kernel: kernel)
      try stage(run)
      try place(run, in: root, from: staging, modes, report: &report)
      run.findings.add(to: &report, for: plan)
      report.unkept = run.findings.unkeptMetadata(in: root)
    } catch {
      if part?.isUnstable != true { try? remove(staging) }
      throw error
    }
  }

  /// Refuses a restore that does not fit. A restore with several parts has checked all of them
  /// together.
  private func requireRoom() throws(OperationError) {
    if part != nil { return }
    let needs = VolumeNeeds(of: [plan], from: reader)
    guard needs.all.contains(where: { $0.verdict != .fits }) else { return }
    if let directory = try? Directory.open(resolved: plan.target.directory),
      StagingDirectory.isAny(in: directory)
    {
      // The leftovers of a killed run may take the missing room.
      try? StagingDirectory.removeAbandoned(in: directory, keeping: needed)
      return try VolumeNeeds(of: [plan], from: reader).require()
    }
    try needs.require()
  }

  /// The staging directories that other operations need: of the device, or of one whose root the
  /// plain directory is, such as a home directory.
  private var needed: NeededStaging {
    part?.needed ?? NeededStaging(on: plan.target.directory, besides: "")
  }

  private func stage(_ run: RestoreRun) throws {
    run.expectFiles()
    var writer = try StagingWriter(run, reader, threads: threads, isStopping: isStopping)
    try writer.write()
  }

  private func place(
    _ run: RestoreRun, in root: borrowing Directory, from staging: borrowing StagingDirectory,
    _ modes: MergedModes, report: inout RestoreReport
  ) throws {
    if endsReading, !Placement.reads(plan, besides: run.values) { reader.endReading() }
    let late = try plan.addingLateSidecars(for: run)
    // An app that has written since the plan may be running now.
    if late != nil { try part?.requireStopped() }
    run.findings.failBrokenDatabases(of: late ?? plan)
    let plan = try (late ?? plan).numberingKeptEntries(for: run)
    let trash = try part?.trash(for: plan, in: root, probing: staging.tree)
    var placement = try Placement(plan, from: run, keepingIn: trash, note: part?.opened)
    placement.modes = modes
    // Before the journal has the steps: a recovery applies them, but changes no modes.
    modes.begin(plan, at: &placement.target)
    try root.syncVolume()
    try part?.move(plan, from: run, keepingIn: trash)
    do {
      try put(&placement, in: root, from: staging, report: &report)
    } catch {
      throw OperationError.naming(placement.setAside, in: error)
    }
  }

  /// Puts the staged entries in place, and does what follows.
  private func put(
    _ placement: inout Placement, in root: borrowing Directory,
    from staging: borrowing StagingDirectory, report: inout RestoreReport
  ) throws {
    do {
      try placement.placeAll(isStopping: isStopping)
    } catch {
      part?.isUnstable = placement.isUnstable
      throw error
    }
    try root.syncVolume()
    report.deleted = try placement.delete(isStopping: isStopping)
    report.displaced = placement.plan.displaced(besides: placement.staying)
    report.setAside = placement.setAside
    report.spared += placement.plan.deletionsOfOrphans(besides: placement.staying).spared
    // All entries are in place: a staging directory that cannot be removed is reported after the
    // rest is done.
    var leftover: SystemError?
    do throws(SystemError) { try remove(staging) } catch { leftover = error }
    placement.finishDirectories(reader)
    placement.modes?.finish(placement.plan.tree, at: &placement.target)
    placement.setFlags()
    if let leftover { throw leftover }
    if !plan.deletions.isEmpty || plan.target.name == nil { try root.syncVolume() }
  }

  /// Removes the staging directory, after the journal no longer refers to it.
  private func remove(_ staging: borrowing StagingDirectory) throws(SystemError) {
    try part?.settleSteps()
    try staging.remove()
  }
}
