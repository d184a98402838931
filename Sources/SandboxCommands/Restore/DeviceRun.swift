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
  /// The restore of a snapshot into the containers of a device, with its report. `restore` and the
  /// imports that restore what they have imported share it.
  struct DeviceRun {
    /// The root of the device; nil for the device that was backed up.
    let root: ByteString?
    /// Whether nothing is to be changed.
    let isPreview: Bool
    /// Whether apps may run during the restore.
    let isForced: Bool
    let policy: PolicyChoice
    let list: ListOptions
    let progress: ProgressOptions
    let output: OutputOptions

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
        let (plan, recovery) = try self.plan(preparation, of: stored, adapt: adapt, console)
        let needs = plan.volumeNeeds(from: reader)
        console.warn(ofPerhapsTooMuch: needs)
        console.remarks(
          plan.withoutCommand + plan.remarks(\.uncertainDatabases), as: .warning(""),
          all: list.all)
        if isPreview {
          try output.json
            ? console.result(plan.json(needs))
            : DeviceText(plan, listsAll: list.all).show(console, needs)
          return RestoreCommand.status(
            damaged: plan.damaged, failed: plan.remarks(\.blocked), needs)
        }
        try recovery.requireNoneBlocks(plan.subjects)
        console.showPending(recovery)
        let counters = ProgressCounters()
        let report = try progress.run(counters, output) { isStopping in
          let saving = BackupRequest(
            program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
          return try DeviceRestoreOperation(
            plan, from: reader, saving: SafetySnapshotMaker(saving, in: repository),
            counters: counters, isStopping: isStopping
          ).run()
        }
        console.warn(ofRefused: report.saved, in: repository)
        return try show(report, of: plan, unset: preparation.complete(), console)
      }
    }

    private func plan(
      _ preparation: DeviceRestorePreparation, of stored: StoredSnapshot,
      adapt: (inout DeviceRestoreRequest) throws -> Void, _ console: Console
    ) throws -> (plan: DeviceRestorePlan, recovery: RecoveryReport) {
      try progress.plan("restore", output) { isStopping in
        try preparation.plan(
          isForced: isForced,
          compile: { device in
            try policy.compile(
              for: device.layout, version: device.osVersion?.utf8.flatMap { OSVersion($0) },
              orElse: stored.snapshot.policy.name)
          }, notify: { console.show($0, of: $1, all: list.all) },
          adapt: { request in
            try adapt(&request)
            request.isStopping = isStopping
          })
      }
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
        try DeviceText(plan, listsAll: list.all).show(report, console, quiet: output.quiet)
      }
      console.remarks(
        unset, as: .warning("not restored: "), all: list.all, text: RealPaths(plan).text)
      return RestoreCommand.status(damaged: report.damaged, failed: failed + unset)
    }
  }
}
