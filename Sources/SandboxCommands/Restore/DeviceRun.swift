internal import ArchiveStore
internal import Backup
internal import DeviceDiscovery
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SystemIO

extension RestoreCommand {
  /// The restore of a snapshot into the containers of a device, with its report. `restore`, the
  /// imports that restore what they have imported, and the migrations between devices share it.
  struct DeviceRun {
    /// The root of the device; nil for the device that was backed up.
    let root: ByteString?
    /// Whether nothing is to be changed.
    let isPreview: Bool
    /// Whether apps may run during the restore.
    let isForced: Bool
    let policy: PolicyChoice
    let listsAll: Bool
    let progress: ProgressOptions
    let output: OutputOptions
    /// The name of the operation in messages.
    var name = "restore"
    /// Whether the snapshot's policy is used if none is named: the policy must suit the device's
    /// layout.
    var usesStoredPolicy = true
    /// The option that includes groups that other apps share.
    var groupOption = "--with-groups"

    /// Restores, or shows the plan, and prints the report.
    ///
    /// - Parameters:
    ///   - directories: the directories that are never removed, such as that of the repository.
    ///   - adapt: selects what is restored and how.
    func restore(
      _ stored: StoredSnapshot, from reader: RepositoryReader, in repository: Repository,
      protecting directories: Set<FileIdentity>, adapt: (inout DeviceRestoreRequest) throws -> Void,
      _ console: Console
    ) throws -> ExitStatus {
      let preparation = try DeviceRestorePreparation(
        of: stored, to: root, from: reader, protecting: directories,
        savingTo: repository.safetyDestination, isPreview: isPreview)
      return try preparation.withRoot {
        let (plan, recovery) = try self.plan(
          preparation, of: stored, notify: { console.show($0, of: $1, all: listsAll) }, adapt: adapt
        )
        let needs = plan.volumeNeeds(from: reader)
        console.warn(ofPerhapsTooMuch: needs)
        console.remarks(
          plan.withoutCommand + plan.remarks(\.uncertainDatabases), as: .warning(""),
          all: listsAll)
        if isPreview {
          try output.json
            ? console.result(plan.json(needs))
            : text(of: plan).show(console, needs)
          return RestoreCommand.status(
            isDamaged: plan.isDamaged, lost: plan.damaged, failed: plan.remarks(\.blocked), needs)
        }
        try recovery.requireNoneBlocks(plan.subjects)
        console.showPending(recovery)
        let report = try carryOut(plan, from: reader, in: repository)
        console.warn(ofRefused: report.saved, in: repository)
        return try show(report, of: plan, unset: preparation.complete(), console)
      }
    }

    /// Recovers interrupted operations on the device, and plans the restore.
    ///
    /// - Parameters:
    ///   - notify: receives the report of the recovery.
    ///   - adapt: selects what is restored and how.
    /// - Returns: the plan, and the report of the recovery, which may refuse it.
    func plan(
      _ preparation: DeviceRestorePreparation, of stored: StoredSnapshot,
      notify: (RecoveryReport, Device) -> Void, adapt: (inout DeviceRestoreRequest) throws -> Void
    ) throws -> (plan: DeviceRestorePlan, recovery: RecoveryReport) {
      try progress.plan(name, output) { isStopping in
        try preparation.plan(
          isForced: isForced,
          compile: { device in
            try policy.compile(
              for: device.layout, version: device.policyVersion,
              orElse: usesStoredPolicy ? stored.snapshot.policy.name : nil)
          }, notify: notify,
          adapt: { request in
            try adapt(&request)
            request.isStopping = isStopping
          })
      }
    }

    /// Carries out a plan, after a snapshot of the device if the plan has one.
    func carryOut(
      _ plan: DeviceRestorePlan, from reader: RepositoryReader, in repository: Repository
    ) throws -> DeviceRestoreOperation.Report {
      let counters = ProgressCounters()
      return try progress.run(counters, output) { isStopping in
        let saving = BackupRequest(
          program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
        return try DeviceRestoreOperation(
          plan, from: reader, saving: SafetySnapshotMaker(saving, in: repository),
          counters: counters, isStopping: isStopping
        ).run()
      }
    }

    private func text(of plan: DeviceRestorePlan) -> DeviceText {
      DeviceText(plan, listsAll: listsAll, groupOption: groupOption)
    }

    /// Prints the report, and the remarks on the directory that was created.
    private func show(
      _ report: DeviceRestoreOperation.Report, of plan: DeviceRestorePlan, unset: [PathRemark],
      _ console: Console
    ) throws -> ExitStatus {
      let failed = report.remarks(\.failed)
      let unset = unset.filter { !failed.contains($0) }
      if output.json {
        try console.result(report.json(plan))
      } else {
        try text(of: plan).show(report, console, quiet: output.quiet)
      }
      console.remarks(
        unset, as: .warning("not restored: "), all: listsAll, text: RealPaths(plan).text)
      return RestoreCommand.status(
        isDamaged: report.isDamaged, lost: report.damaged, failed: failed + unset)
    }
  }
}
