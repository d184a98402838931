internal import ArchiveStore
internal import DeviceDiscovery
internal import DeviceTransaction
internal import Migration
internal import Restore
internal import SandboxModel
internal import SnapshotQueries
internal import SystemIO

/// The migration of apps from a snapshot to another form of them.
///
/// The snapshot's data is restored into a temporary home directory, from which the apps are
/// migrated as from any other. It is removed at the end: it needs space for the data of the apps.
struct SnapshotMigration {
  let command: MigrateCommand
  let stored: StoredSnapshot
  let reader: RepositoryReader
  /// The repository of the snapshot.
  let opened: OpenRepository

  /// Migrates the apps to a home directory.
  ///
  /// - Parameter form: the form of the apps in the snapshot.
  func run(
    from form: Packaging, to target: AppPairing.Side, _ console: Console
  ) throws -> ExitStatus {
    let home = try TemporaryHome(for: form)
    defer { remove(home, console) }
    let restored = try restore(to: home.side, console)
    return ExitStatus.together([
      restored, try FormMigration(command, from: home.side, to: target).run(console),
    ])
  }

  /// Restores the data of the apps, without a separate report.
  private func restore(to side: AppPairing.Side, _ console: Console) throws -> ExitStatus {
    let root = side.home.appending(side.packaging.deviceDirectory ?? "")
    let preparation = try DeviceRestorePreparation(
      of: stored, to: root, from: reader, protecting: try opened.protectedDirectories(),
      savingTo: opened.repository.safetyDestination, isPreview: false)
    // Outside sandboxes, an app's data can have several names.
    let apps =
      side.packaging.isSandbox ? (try? stored.snapshot.identifiers(of: command.apps)) ?? [] : []
    var run = RestoreCommand.DeviceRun(
      root: root, isPreview: false, isForced: true, policy: command.policy,
      listsAll: command.listAll, progress: command.progress, output: command.output)
    run.name = "migration"
    let (plan, recovery) = try run.plan(
      preparation, of: stored, notify: { _, _ in },
      adapt: { request in
        request.apps = apps
        request.savesFirst = false
      })
    try recovery.requireNoneBlocks(plan.subjects)
    console.remarks(
      plan.remarks(\.uncertainDatabases), as: .warning(""), all: command.listAll)
    let report = try run.carryOut(plan, from: reader, in: opened.repository)
    console.remarks(
      report.damaged, as: RestoreCommand.lossLabel(isDamaged: report.isDamaged),
      all: command.listAll)
    console.remarks(
      report.remarks(\.failed), as: .warning("not restored: "), all: command.listAll)
    return RestoreCommand.status(
      isDamaged: report.isDamaged, lost: report.damaged, failed: report.remarks(\.failed))
  }

  private func remove(_ home: TemporaryHome, _ console: Console) {
    do { try home.remove() } catch {
      console.warning("cannot remove '\(home.side.home)': \(error)")
    }
  }
}
