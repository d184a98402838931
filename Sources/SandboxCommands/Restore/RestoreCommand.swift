internal import ArchiveStore
internal import ArgumentParser
internal import Backup
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SystemIO

/// `sandboxctl restore SNAP[:PATH] | REAL-PATH (--to DIR | --to-device ROOT | --in-place)`.
struct RestoreCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "restore",
      abstract: "Restore a snapshot or part of it",
      usage: """
        sandboxctl restore <snap[:path]> --to <dir> [<options>]
        sandboxctl restore <snap[:path]> --to-device <root> [<options>]
        sandboxctl restore (<snap[:path]> | <real-path>) --in-place [<options>]
        """,
      discussion: """
        Restores into a directory (--to), into the containers of a device (--to-device), or into \
        the device that was backed up (--in-place). SNAP is an id, 'latest', 'latest~2' or a time; \
        PATH is a logical path, <app>/<path in its data>, or an absolute path of the device. \
        REAL-PATH begins with a slash or a dot and is restored from the latest snapshot that has \
        it.

        A directory that is not empty is merged with --overwrite; nothing is deleted without \
        --delete. Before a restore into a device its containers are saved in a snapshot, and \
        replaced files move to its trash. See sandboxctl-restore(1).

        \(Examples.text([
          "sandboxctl restore latest --to restored --repo repo",
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
    help: ArgumentHelp(
      "The directory to restore to, or the file if PATH is a file.", valueName: "dir"),
    completion: .directory)
  var to: ByteString?

  @OptionGroup var part: PartOptions
  @OptionGroup var merging: MergeOptions
  @OptionGroup var target: TargetOptions
  @OptionGroup var policy: PolicyChoice

  @OptionGroup var trust: TrustOptions

  @Flag(name: .shortAndLong, help: "Show what would be done, without doing it.")
  var dryRun = false

  @OptionGroup var list: ListOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  /// A configuration that lets a restore destroy something in one target does not apply to another.
  /// Settings that protect files stay. `--delete` does not replace `class`, which protects files of
  /// other classes.
  static var precedence: [OptionPrecedence] {
    let destructive: Set<String> = [
      "overwrite", "delete", "delete-excluded", "with-groups", "force", "no-snapshot",
    ]
    let targets =
      OptionPrecedence.oneOf(["to"], ["to-device"], ["in-place"], dropping: destructive)
      + OptionPrecedence.target(["app"], dropping: destructive)
      + [
        OptionPrecedence(
          chosen: [OptionPrecedence.path], replaced: ["app"], dependent: destructive)
      ]
    return targets.map { choice in
      // Without a mode a directory must be empty, and on a device changed entries are replaced.
      choice.protecting(
        choice.chosen == ["to"] ? ["overwrite=never"] : ["overwrite=never", "overwrite=if-newer"])
    }
      + OptionPrecedence.choosing(["to"], replaces: ["with-groups", "force", "no-snapshot"])
      + OptionPrecedence.choosing(["class"], replaces: ["delete"])
  }

  static var needs: [OptionNeed] {
    OptionNeed.of("delete-excluded", other: "delete")
      + [OptionNeed(option: "delete", other: "overwrite", beside: "to", example: "if-changed")]
  }

  static func choices(of arguments: [String]) -> Set<String> {
    let hasPath = arguments.contains { argument in
      argument.contains("/") || argument.split(separator: ":", maxSplits: 1).count > 1
    }
    return hasPath ? [OptionPrecedence.path] : []
  }

  func run(_ console: Console) throws -> ExitStatus {
    try requireOneTarget()
    let what = try Source(self.what)
    if merging.delete, !part.classes.isEmpty {
      throw UsageError(
        .optionsConflict,
        "'--delete' cannot be used with '--class': files that the snapshot lacks have no class")
    }
    _ = try merging.mode()
    let apps = usedApps(console)
    let opened = try repository.openForRestore(console)
    let reader = try opened.repository.beginEarlyReading()
    defer { console.warn(of: reader.remarks) }
    let (stored, path) = try what.find(in: opened.repository, reader, apps: apps, console)
    try trust.require(stored, of: opened.repository)
    if let to {
      let path = try PartOptions.path(path, of: apps, in: stored.snapshot)
      return try restore(path, of: stored, to: to, from: reader, in: opened, console)
    }
    return try restoreIntoDevice(path, of: stored, from: reader, in: opened, console)
  }

  private func requireOneTarget() throws {
    let targets = [to != nil, target.toDevice != nil, target.inPlace].count { $0 }
    if targets == 1 { return try target.requireFit(isDirectory: to != nil) }
    throw UsageError(
      targets == 0 ? .targetRequired : .optionsConflict,
      targets == 0 ? "no restore target given" : "several restore targets given",
      hint:
        "use '--to DIR' for a plain directory, '--to-device ROOT' for another device, or "
        + "'--in-place' for the device that was backed up")
  }

  // MARK: - Into a directory

  /// Returns the apps to restore. If a configuration names several for restores into devices, they
  /// are not used for a plain directory, unless it also sets what to overwrite or delete for them:
  /// the whole snapshot would overwrite more.
  private func usedApps(_ console: Console) -> [String] {
    guard to != nil, part.apps.count > 1, !console.givenOptions.contains("app"),
      !replacesByConfiguration(beside: console.givenOptions)
    else { return part.apps }
    if !output.quiet {
      console.note(
        "the apps that the configuration names are not used: '--to' restores one app, one path "
          + "or the whole snapshot")
    }
    return []
  }

  /// Whether the configuration lets files of a directory be replaced or deleted.
  private func replacesByConfiguration(beside given: Set<String>) -> Bool {
    guard let overwrite = merging.overwrite else { return false }
    return overwrite != OverwriteMode.never.rawValue && !given.contains("overwrite")
      || merging.delete && !given.contains("delete")
      || target.deleteExcluded && !given.contains("delete-excluded")
  }

  private func restore(
    _ path: ByteString, of stored: StoredSnapshot, to directory: ByteString,
    from reader: RepositoryReader, in opened: OpenRepository, _ console: Console
  ) throws -> ExitStatus {
    var request = RestoreRequest(
      path: path, target: directory, overwrite: try merging.mode(),
      deletes: merging.delete && merging.overwrite != nil,
      protected: try opened.protectedDirectories())
    request.classes = try part.classNames()
    request.deletesExcluded = target.deleteExcluded
    let plan = try progress.plan("restore", output) { isStopping in
      request.isStopping = isStopping
      return try RestorePlan.make(stored, request, from: reader)
    }
    try reader.requireKept(stored.id)
    let needs = plan.volumeNeeds(from: reader)
    console.warn(ofPerhapsTooMuch: needs)
    console.remarks(plan.uncertainDatabases, as: .warning(""), all: list.all)
    if dryRun {
      try output.json
        ? console.result(plan.json(needs)) : plan.show(console, needs, listsAll: list.all)
      return Self.status(
        isDamaged: plan.isDamaged, lost: plan.damaged, failed: plan.blocked, needs)
    }
    let counters = ProgressCounters()
    let report = try progress.run(counters, output) { isStopping in
      var operation = RestoreOperation(
        plan, from: reader, counters: counters, isStopping: isStopping)
      operation.endsReading = true
      return try operation.run()
    }
    if output.json {
      try console.result(report.json(plan))
    } else {
      try report.show(plan, console, quiet: output.quiet, listsAll: list.all)
    }
    return Self.status(isDamaged: report.isDamaged, lost: report.damaged, failed: report.failed)
  }

  /// Returns the exit status for a report or a plan. A plan for which there is no room would be
  /// refused. Data that only an older key opens is not lost (`isDamaged`).
  static func status(
    isDamaged: Bool, lost: [PathRemark], failed: [PathRemark], _ needs: [VolumeNeed] = []
  ) -> ExitStatus {
    if needs.contains(where: { $0.verdict == .lacksRoom }) { return .failed }
    if isDamaged { return .damaged }
    return lost.isEmpty && failed.isEmpty ? .done : .doneInPart
  }

  /// Returns the label of data that cannot be read from the repository.
  static func lossLabel(isDamaged: Bool) -> Console.Message {
    .warning(isDamaged ? "damaged: " : "unreadable: ")
  }
}

extension RestoreCommand {
  /// Restores into the containers of a device.
  private func restoreIntoDevice(
    _ path: ByteString, of stored: StoredSnapshot, from reader: RepositoryReader,
    in opened: OpenRepository, _ console: Console
  ) throws -> ExitStatus {
    try reader.requireKept(stored.id)
    let run = DeviceRun(
      root: target.toDevice, isPreview: dryRun, isForced: target.force, policy: policy,
      listsAll: list.all, progress: progress, output: output)
    return try run.restore(
      stored, from: reader, in: opened.repository, protecting: try opened.protectedDirectories(),
      adapt: { try adapt(&$0, to: path, of: stored.snapshot) }, console)
  }

  /// Applies the options to a request for a path of a snapshot.
  private func adapt(
    _ request: inout DeviceRestoreRequest, to path: ByteString, of snapshot: Snapshot
  ) throws {
    request.path = path
    request.apps = try snapshot.identifiers(of: part.apps)
    if !request.apps.isEmpty, !path.isEmpty {
      throw UsageError(
        .optionsConflict, "'--app' and a path cannot be used together",
        hint: "write a path in an app as 'SNAP:app/Documents'")
    }
    request.withGroups = target.withGroups
    request.classes = try part.classNames()
    request.overwrite = try merging.mode() ?? .ifChanged
    request.deletes = merging.delete
    request.deletesExcluded = target.deleteExcluded
    request.savesFirst = !target.noSnapshot
  }
}

extension RestorePlan {
  /// Prints the plan: the paths to replace and delete, and totals.
  func show(_ console: Console, _ needs: [VolumeNeed], listsAll: Bool) throws {
    try console.list("replace  ", replacedPaths, all: listsAll)
    try console.list("delete   ", deletedPaths, all: listsAll)
    try console.list("rename   ", displaced.map(\.path), all: listsAll)
    console.remarks(damaged, as: RestoreCommand.lossLabel(isDamaged: isDamaged), all: listsAll)
    console.remarks(blocked, as: .warning("not restored: "), all: listsAll)
    console.warn(ofIncomplete: incompleteData, all: listsAll)
    console.remarks(mounts, as: .note("skipped: "), all: listsAll)
    console.remarks(spared, as: .note("not deleted: "), all: listsAll)
    console.note(excludedData: excludedData)
    console.warn(ofTooMuch: needs)
    try console.result("would restore \(creates.text)")
    try replaces.show("would replace", console)
    try leaves.show("would leave unchanged", console)
    try deletes.show("would delete", console)
  }
}

extension RestoreReport {
  /// Prints the result and the problems.
  func show(_ plan: RestorePlan, _ console: Console, quiet: Bool, listsAll: Bool) throws {
    console.remarks(damaged, as: RestoreCommand.lossLabel(isDamaged: isDamaged), all: listsAll)
    console.remarks(failed, as: .warning("not restored: "), all: listsAll)
    console.warn(ofIncomplete: plan.incompleteData, all: listsAll)
    showLosses(plan, console)
    console.warn(of: [unkept].compactMap(\.self))
    if quiet { return }
    console.remarks(plan.mounts, as: .note("skipped: "), all: listsAll)
    console.remarks(spared, as: .note("not deleted: "), all: listsAll)
    console.remarks(displaced, as: .note("renamed: "), all: listsAll)
    let id = plan.snapshot.id.hex.prefix(8)
    try console.result(
      "restored \(restored.text) from snapshot \(id) to \(plan.request.target) "
        + "in \(Times.duration(seconds))")
    try left.show("unchanged", console)
    try deleted.show("deleted", console)
    try console.show(setAside: setAside, all: listsAll)
    console.note(excludedData: plan.excludedData)
    if ownersNotSet > 0 {
      console.note(
        "you now own \(Sizes.count(ownersNotSet, "entry")) that belonged to another user or group: "
          + "only root can restore the owner")
    }
  }

  private func showLosses(_ plan: RestorePlan, _ console: Console) {
    if !damaged.isEmpty {
      // The names and number of the entries in a damaged part of the tree are unknown.
      let (entries, parts) = (damaged.count - plan.damaged.count, plan.damaged.count)
      var lost = entries > 0 ? [Sizes.count(entries, "entry")] : []
      if parts > 0 {
        lost.append("the content of \(Sizes.count(parts, "part")) of the snapshot's tree")
      }
      let cause = isDamaged ? "the repository is damaged" : "the key lacks an older identity"
      console.warning(
        "\(lost.joined(separator: " and ")) could not be restored, because \(cause); "
          + "\(parts > 0 ? "everything else was" : "all others were") restored")
    }
    if !failed.isEmpty {
      console.warning("\(Sizes.count(failed.count, "problem")): not restored exactly as stored")
    }
  }
}

extension RestorePlan {
  /// The members that the plan and the report share.
  fileprivate var head: [JSON.Member] {
    [JSON.Member("snapshot", .string(snapshot.id.hex))] + JSON.path(request.path)
      + JSON.path(request.target, named: "target")
      + [
        JSON.Member("overwrite", request.overwrite.map { .string($0.rawValue) } ?? .null),
        JSON.Member("delete", .bool(request.deletes)),
        JSON.Member("not_in_snapshot", .array(excludedData.map(\.json))),
        JSON.Member("incomplete", .array(incompleteData.map(\.json))),
        JSON.Member("skipped", .array(mounts.map(\.json))),
      ]
  }

  /// Returns the plan as `restore --dry-run --json` prints it, with the space that it needs on each
  /// volume.
  func json(_ needs: [VolumeNeed]) -> JSONStream {
    var stream = JSONStream(
      head + [
        JSON.Member("restores", creates.json), JSON.Member("replaces", replaces.json),
        JSON.Member("leaves", leaves.json), JSON.Member("deletes", deletes.json),
      ])
    stream.add("replaced", .elements(replacedPaths.lazy.map { .object(JSON.path($0)) }))
    stream.add("deleted", .elements(deletedPaths.lazy.map { .object(JSON.path($0)) }))
    stream.add([
      JSON.Member("displaced", .array(displaced.map(\.json))),
      JSON.Member("damaged", .array(damaged.map(\.json))),
      JSON.Member("needs_older_key", .bool(!damaged.isEmpty && !isDamaged)),
      JSON.Member("failed", .array(blocked.map(\.json))),
      JSON.Member("not_deleted", .array(spared.map(\.json))),
      JSON.Member("space", .array(needs.map(\.json))),
    ])
    return stream
  }
}

extension RestoreReport {
  /// Returns the report as `restore --json` prints it.
  func json(_ plan: RestorePlan) -> JSON {
    .object(
      plan.head + [
        JSON.Member("restored", restored.json), JSON.Member("left", left.json),
        JSON.Member("deleted", deleted.json),
        JSON.Member("damaged", .array(damaged.map(\.json))),
        JSON.Member("needs_older_key", .bool(!damaged.isEmpty && !isDamaged)),
        JSON.Member("failed", .array(failed.map(\.json))),
        JSON.Member("not_deleted", .array(spared.map(\.json))),
        JSON.Member("displaced", .array(displaced.map(\.json))),
        JSON.Member("set_aside", .array(setAside.map(\.json))),
        JSON.Member("owners_not_set", .integer(Int64(ownersNotSet))),
      ] + [unkept].compactMap(\.self).json + [JSON.Member("seconds", .double(seconds))])
  }
}
