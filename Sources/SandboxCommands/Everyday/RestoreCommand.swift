internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// `sandboxctl restore SNAP[:PATH] | REAL-PATH (--to DIR | --to-device ROOT | --in-place)`.
struct RestoreCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "restore",
      abstract: "Restore a snapshot, or a part of it",
      usage: """
        sandboxctl restore <snap[:path]> --to <dir> [<options>]
        sandboxctl restore <snap[:path]> --to-device <root> [<options>]
        sandboxctl restore (<snap[:path]> | <real-path>) --in-place [<options>]
        """,
      discussion: """
        \(SnapshotPath.help) A path that begins with a slash or a dot stands for itself on the \
        device, in the latest snapshot that has it; those in which the way to it is damaged are named \
        and passed over.

        With --to what PATH names becomes DIR: a directory's content lies directly in DIR. Into a DIR \
        that is new or an empty directory everything is verified before it appears there, all at once \
        (name by name in the directory that you work in, or one where a volume is mounted). \
        Into one that holds something it is merged, file by file, each whole: --overwrite says which \
        of the files that are there give way. if-changed: those that differ in kind, size, time, \
        mode, owner, attributes, flags or in what a link points to; if-newer: those older than in the \
        snapshot, a database with its log by the newest of them; always: all; never: none. What DIR \
        has and the snapshot lacks stays, but with --delete it goes; even then stay other volumes, \
        the repository, what the snapshot says it could not read, and, but for --delete-excluded, \
        what it says it left out. Of single files it tells only how many it left out: where there are \
        some all files stay that it lacks. A directory in the place of a file stays, too, unless it is \
        empty or --delete is given. No link in DIR is followed. A database comes with its log, or \
        what is there of both stays; what lies beside it and is another one's is renamed to \
        NAME.before-restore-TIME, or with --delete goes.

        With --to-device and --in-place apps come back into a device's containers, which are found \
        by identifier, whatever their UUIDs are there; in place, into the device that the snapshot \
        came from. A plain directory that is gone is made again where it was, in a directory that is \
        there. A container that is not there is made and appears as a whole; one that is there \
        is merged into, if-changed unless --overwrite says otherwise, and saved in a snapshot first. \
        What the policy keeps out of backups is never removed, unless --delete-excluded is given. \
        What gives way or is removed moves to the device's trash, which 'trash' shows and empties; \
        what was interrupted there is made good first, as 'recover' does it. \
        Caches come back as empty directories. A file that is restored by itself leaves the present one \
        beside it, as NAME.before-restore-TIME. Links to containers lead to where these are now. \
        The data of an app that is not installed waits in the device's safe harbor, where 'apps' \
        lists it. While an app runs its containers are not touched.

        Nothing is begun where the volume has no room for what is to be written: exit status 1, and \
        the same with --dry-run. Where it may have room, because its file system may compress, that \
        is said and it is tried: what finds no room then leaves each file as it was or as stored.

        Exit status 13 names damaged files, which are left out; 3 what could not be made; 130 says \
        that it was interrupted.

        \(Examples.text([
          "sandboxctl restore latest --to back --repo repo",
          "sandboxctl restore latest --app notebook --in-place --repo repo --dry-run",
          "sandboxctl restore latest:notebook/Documents --in-place --repo repo",
          "sandboxctl restore latest --to-device device --repo repo",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The snapshot and a path in it, or a path of the device.", valueName: "snap[:path]"))
  var what: ByteString

  @Option(
    help: ArgumentHelp("What PATH is to become.", valueName: "dir"), completion: .directory)
  var to: ByteString?

  @OptionGroup var part: RestorePartOptions
  @OptionGroup var merging: RestoreMergeOptions
  @OptionGroup var place: DeviceRestoreOptions
  @OptionGroup var policy: PolicyChoice

  @Flag(name: .shortAndLong, help: "Say what would be done and do nothing.")
  var dryRun = false

  @OptionGroup var list: ListOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try requireOnePlace()
    let what = try RestoreWhat(self.what)
    if merging.delete, !part.classes.isEmpty {
      throw UsageError(
        "'--delete' cannot be used with '--class': what the snapshot lacks has no class in it")
    }
    if to == nil { return try restoreIntoDevice(what, console) }
    return try restoreIntoDirectory(what, console)
  }

  private func requireOnePlace() throws {
    let places = [to != nil, place.toDevice != nil, place.inPlace].count { $0 }
    if places == 1 { return try place.requireFit(isDirectory: to != nil) }
    throw UsageError(
      places == 0 ? "it is not said where to restore" : "only one place can be restored to",
      hint:
        "'--to DIR' for a plain directory, '--to-device ROOT' for another device, '--in-place' for "
        + "the one that the snapshot came from")
  }

  // MARK: - Into a directory

  private func restoreIntoDirectory(_ what: RestoreWhat, _ console: Console) throws -> ExitStatus {
    let mode = try merging.mode()
    if merging.delete, mode == nil {
      throw UsageError(
        "'--delete' needs to know what becomes of what is there",
        hint: "add '--overwrite if-changed', or another mode")
    }
    let (repository, storage) = try repository.open()
    let reader = try repository.beginCarefulReading()
    defer { console.warn(of: reader.remarks) }
    let (stored, path) = try what.find(in: repository, reader, apps: part.apps, console)
    var request = RestoreRequest(
      path: try part.path(path, in: stored.snapshot), target: to ?? "",
      overwrite: mode, deletes: merging.delete, protected: [try storage.identity()])
    request.classes = try part.classNames()
    request.deletesExcluded = place.deleteExcluded
    let plan = try RestorePlan.make(stored, request, from: reader)
    let needs = plan.volumeNeeds(from: reader)
    console.warn(ofPerhapsTooMuch: needs)
    if dryRun {
      try output.json
        ? console.result(plan.json(needs)) : plan.tell(console, needs, listsAll: list.all)
      return Self.status(damaged: plan.damaged, failed: plan.blocked, needs)
    }
    let counters = ProgressCounters()
    let report = try progress.run(counters, output) { isStopping in
      try RestoreOperation(plan, from: reader, counters: counters, isStopping: isStopping).run()
    }
    if output.json {
      try console.result(report.json(plan))
    } else {
      try report.tell(plan, console, quiet: output.quiet)
    }
    return Self.status(damaged: report.damaged, failed: report.failed)
  }

  /// What a report says, or a plan: one for which there is no room would not be carried out at all.
  static func status(
    damaged: [PathRemark], failed: [PathRemark], _ needs: [VolumeNeed] = []
  ) -> ExitStatus {
    if needs.contains(where: { $0.verdict == .lacksRoom }) { return .failed }
    if !damaged.isEmpty { return .damaged }
    return failed.isEmpty ? .done : .doneInPart
  }
}
