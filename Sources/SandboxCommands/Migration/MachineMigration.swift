internal import Migration
internal import SystemIO

/// The migration of all apps of a home directory to another one, each in its form: the Flatpaks,
/// the snaps, and the programs outside sandboxes. This is the move to a new machine.
struct MachineMigration {
  private let command: MigrateCommand
  private let source: ByteString
  private let target: ByteString

  init(_ command: MigrateCommand, from source: ByteString, to target: ByteString) throws {
    if source == target {
      throw UsageError(
        .invalidValue, "'\(command.from)' is the source and the target",
        hint: "name another home directory with '--to', or forms as in '--from host:DIR'")
    }
    self.command = command
    (self.source, self.target) = (source, target)
  }

  /// Migrates each form that the source has. A form that fails does not stop the others.
  func run(_ console: Console) throws -> ExitStatus {
    var total = MigrationTotals()
    for packaging in [Packaging.flatpak, .snap, .host] where has(packaging) {
      let form = try FormMigration(
        command, from: AppPairing.Side(packaging, home: source),
        to: AppPairing.Side(packaging, home: target))
      do {
        try form.run(adding: &total, console)
      } catch {
        let failure = Failure(error)
        if failure.status == .interrupted { throw error }
        console.warning(failure.message)
        if let hint = failure.hint { console.hint(hint) }
        total.fail()
      }
    }
    try total.show(
      isPreview: command.change.dryRun, command.output, listsAll: command.listAll, console)
    return total.status
  }

  /// Whether the source has a directory for apps of a form, or may have one.
  private func has(_ packaging: Packaging) -> Bool {
    guard let directory = packaging.deviceDirectory else { return true }
    do throws(SystemError) {
      _ = try Directory.open(path: source.appending(directory))
      return true
    } catch { return !error.isMissing }
  }
}
