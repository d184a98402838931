public import ArchiveStore
public import SystemIO

// Restore makes of a snapshot's path a directory or a file, or merges it into one that is there.
//
// A plan is made first: the snapshot's tree and the target are gone through side by side, and for
// each entry it is decided whether it is made, replaces what is there, or leaves it. Then all that is
// to be made is made in a staging directory on the target's file system: contents by several threads in
// the order of the packs, each frame decoded once, each blob held against its hash before its bytes
// are written. The volume is synced; then what was staged gets its place by renames, a new directory as
// a whole by one; the volume is synced again; then come deletions, the times of directories that were
// there, and flags.
//
// So until the first rename the target is as it was before, and the staging directory is removed when
// something ends the restore. What is damaged is left out and named; nothing that differs from its
// hash is ever written. Not guaranteed: that a restore into a directory that is there is one step (each
// of its entries is), or anything about what other programs change in the target meanwhile.
//
// Into a device it is done under a journal, and what gives way is kept in the trash (docs/journal.md).

/// Carries out a `RestorePlan`.
public struct RestoreOperation: ~Copyable {
  private let plan: RestorePlan
  private let reader: RepositoryReader
  private let threads: Int
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool
  /// What a restore into a device notes before it changes anything there.
  private let part: JournaledPart?
  /// The kernel, which may report too little of what a sync of the volume fails for.
  var kernel = Host.kernelVersion

  /// Prepares an operation. It asks `isStopping` often, on any thread; when that holds, it removes
  /// what it staged and throws a `LifecycleError` of the kind `interrupted`. It tells the counters
  /// how far it is.
  public init(
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

  /// Restores, and tells what was done.
  ///
  /// - Throws: `LifecycleError`: `failed` where the volume has no room, before anything is written, or
  ///   nothing more could succeed; `interrupted`; `StoreError`.
  public consuming func run() throws -> RestoreReport {
    let start = Host.monotonicSeconds()
    try requireRoom()
    var report = RestoreReport(plan)
    do {
      let root = try Directory.make(resolved: plan.place.directory)
      try plan.requirePlanned(root)
      try part?.prepare(in: plan.place.directory)
      let staging = try StagingDirectory.make(in: root)
      do {
        let run = try RestoreRun(
          plan, in: root, staging, threads: threads, counters, kernel: kernel)
        try stage(run)
        try place(run, root, staging, &report)
        run.findings.tell(plan, &report)
      } catch {
        if part?.isUnstable != true { try? remove(staging) }
        throw error
      }
    } catch let error as SystemError {
      throw LifecycleError(error)
    }
    report.seconds = Host.monotonicSeconds() - start
    return report
  }

  /// Refuses what does not fit. A restore of several parts has asked for all of them together.
  private func requireRoom() throws(LifecycleError) {
    if part != nil { return }
    let needs = VolumeNeeds(plan, from: reader)
    guard needs.all.contains(where: { $0.verdict != .fits }) else { return }
    if let directory = try? Directory.open(resolved: plan.place.directory),
      StagingDirectory.isAny(in: directory)
    {
      // What a killed run left there may be all that is in the way.
      try? StagingDirectory.removeAbandoned(in: directory)
      return try VolumeNeeds(plan, from: reader).require()
    }
    try needs.require()
  }

  private func stage(_ run: RestoreRun) throws {
    run.expectFiles()
    var writer = try StagingWriter(run, reader, threads: threads, isStopping: isStopping)
    try writer.write()
  }

  private func place(
    _ run: RestoreRun, _ root: borrowing Directory, _ staging: borrowing StagingDirectory,
    _ report: inout RestoreReport
  ) throws {
    plan.settleBrokenDatabases(run.findings)
    let trash = try part?.trash(for: plan, in: root, probing: staging.tree)
    var placement = try Placement(plan, run, keepingIn: trash, part?.opened)
    try root.syncVolume()
    try part?.move(plan, run, trash)
    do {
      try placement.place(isStopping: isStopping)
    } catch {
      part?.isUnstable = placement.isUnstable
      throw error
    }
    try root.syncVolume()
    report.deleted = try placement.delete(isStopping: isStopping)
    report.displaced = plan.displaced(besides: placement.staying)
    report.spared += plan.deletionsOfStrays(besides: placement.staying).spared
    // All has its place: a staging directory that stays is told when the rest is done.
    var leftover: SystemError?
    do throws(SystemError) { try remove(staging) } catch { leftover = error }
    placement.finishDirectories(reader)
    placement.setFlags()
    if let leftover { throw leftover }
    if !plan.deletions.isEmpty || plan.place.name == nil { try root.syncVolume() }
  }

  /// Removes what was staged. Before that nobody may take it for what is still to come.
  private func remove(_ staging: borrowing StagingDirectory) throws(SystemError) {
    try part?.settleSteps()
    try staging.remove()
  }
}
