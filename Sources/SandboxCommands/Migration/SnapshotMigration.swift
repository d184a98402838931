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
/// The snapshot's data is restored into a temporary home directory, from which the apps are migrated
/// as from any other. It is in the directory of the variable TMPDIR (default: `/var/tmp`), only this
/// user can read it, and it is removed at the end: it needs space for the data of the apps.
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
    defer { home.remove(console) }
    let restored = try restore(to: home.side, console)
    return ExitStatus.together([
      restored, try FormMigration(command, from: home.side, to: target).run(console),
    ])
  }

  /// Restores the data of the apps, without a report of its own.
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
      report.remarks(\.failed), as: .warning("not restored: "), all: command.listAll)
    return RestoreCommand.status(damaged: report.damaged, failed: report.remarks(\.failed))
  }
}

/// A home directory for the time of a command.
private struct TemporaryHome {
  let side: AppPairing.Side
  private let parent: ByteString
  private let name: ByteString

  /// Creates a directory that only this user can read.
  init(for form: Packaging) throws {
    do throws(SystemError) {
      parent = try Host.realPath(Host.environment("TMPDIR") ?? "/var/tmp")
      name = ByteString("sandboxctl-migrate-\(Host.randomHex(bytes: 8))")
      try Directory.open(path: parent).createDirectory(name, permissions: 0o700)
      // The directory that makes it a device.
      _ = try Directory.make(
        path: parent.appending(name).appending(form.deviceDirectory ?? ".config"),
        permissions: 0o700)
    } catch { throw OperationError(error) }
    side = AppPairing.Side(form, home: parent.appending(name))
  }

  /// Removes the directory with everything in it.
  func remove(_ console: Console) {
    do { try Directory.open(path: parent).removeTree(name) } catch {
      console.warning("cannot remove '\(side.home)': \(error)")
    }
  }
}
