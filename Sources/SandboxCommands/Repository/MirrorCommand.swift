internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import RemoteStorage
internal import SystemIO

/// `sandboxctl mirror`: keeps an exact second repository.
struct MirrorCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "mirror",
      abstract: "Keep an exact second repository",
      usage: "sandboxctl mirror --to <repo> [--allow-large-removal] [--dry-run] [<options>]",
      discussion: """
        Copies what the repository has and the mirror lacks, and then removes what was removed from \
        the repository. Each object is verified while it is copied; nothing that is damaged replaces \
        or removes an intact copy. A mirror is a repository: it can be restored from, and used in \
        place of a lost original. A removal of more than half of the snapshots is refused.

        See sandboxctl-mirror(1) for the rules, the JSON output and the exit statuses.

        \(Examples.text([
          "sandboxctl mirror --to mirror --repo repo --dry-run",
          "sandboxctl mirror --to mirror --repo repo --quiet",
        ]))
        """)
  }

  @Option(
    help: ArgumentHelp(
      "The mirror, in the forms of '--repo'; created if it does not exist.", valueName: "repo"),
    completion: .directory)
  var to: ByteString

  @Flag(
    help: "Allow the removal of more than half of the mirror's snapshots, or of all of a source.")
  var allowLargeRemoval = false

  @Flag(help: "Allow a new mirror where one that this host made is gone.")
  var allowNew = false

  @OptionGroup var targetRemote: TargetRemoteOptions
  @OptionGroup var change: RepositoryChangeOptions

  static var precedence: [OptionPrecedence] {
    OptionPrecedence.target(["repo", "to"], dropping: ["allow-large-removal", "allow-new"])
  }

  func run(_ console: Console) throws -> ExitStatus {
    let choice = try change.repository.choice(for: console)
    let mirror = try RepositoryOptions.Choice(
      to, targetRemote.options(besides: change.repository.remote).settings)
    try choice.requireAnotherLocation(than: mirror)
    let source = try choice.open(console).repository
    // The mirror would get the older key file, and data that only the newest one opens would be
    // lost.
    try source.requireWritable()
    try choice.requireApart(from: mirror)
    // An error from here on may concern either of the two repositories.
    console.suggested = SuggestedCommands()
    let record = MirrorRecord(of: mirror)
    let isExpected = record.exists && !allowNew
    let existing = change.dryRun || isExpected ? try Self.existing(mirror) : nil
    if isExpected { try record.requirePresent(in: existing) }
    let target = change.dryRun ? existing : try existing ?? mirror.makeStorage()
    let report = try change.run(counting: "object") { counters, isStopping in
      try RepositoryMirror(
        of: source, in: target, perhapsAt: choice.innerPath(of: mirror),
        indexCache: source.hostIndexCache, headCache: source.hostHeadCache,
        lock: MirrorLock(file: record.lock, directory: mirror.location.localPath),
        isDry: change.dryRun,
        allowsLargeRemoval: allowLargeRemoval,
        workers: max(source.workers, target?.concurrency ?? 1),
        counters: counters, isStopping: isStopping
      ).run()
    }
    try change.output.show(
      report.jsonLines(isDry: change.dryRun), lines: report.lines(isDry: change.dryRun), console)
    let connection = targetRemote.words(
      for: mirror.location, besides: change.repository.remote, of: choice.location)
    warn(of: report, connection: RepositoryOptions.text(of: connection), console)
    if report.isInterrupted { return .interrupted }
    if !change.dryRun { record.save() }
    if report.hasDamage { return .damaged }
    let keysDiffer = !report.differentKeys.isEmpty || !report.waitingKeys.isEmpty
    let isWhole =
      report.damaged.isEmpty && report.incomplete.isEmpty && report.unread == 0
      && report.refusal == nil && !keysDiffer
      && report.possiblePlace == nil
    return isWhole ? .done : .doneInPart
  }

  /// Opens the mirror's storage. Returns nil if it does not exist.
  private static func existing(_ mirror: RepositoryOptions.Choice) throws -> (any Storage)? {
    do {
      return try mirror.storage()
    } catch let error as StoreError {
      guard error.code == .noRepository else { throw error }
      return nil
    }
  }

  /// Warns about what could not be read. Many objects have the same hint, which is printed once.
  private func warnOfDamage(_ report: RepositoryMirror.Report, _ console: Console) {
    var hints: Set<String> = []
    for error in report.damaged {
      console.warning(error.description)
      if let hint = error.hint, hints.insert(hint).inserted { console.hint(hint) }
    }
    guard report.unread > 0 else { return }
    console.warning(
      "\(change.dryRun ? "would copy" : "copied") \(Sizes.count(report.unread, "snapshot")) unread: "
        + "the key lacks an older identity, from before a 'key rotate'")
    console.hint(
      "to check them, run 'sandboxctl check' for the mirror with a passphrase or all lines of the "
        + "recovery key; 'sandboxctl key rewrap' makes them readable for all recipients")
  }

  /// - Parameter connection: the options that a suggested command needs to reach the mirror.
  private func warn(of report: RepositoryMirror.Report, connection: String, _ console: Console) {
    warnOfDamage(report, console)
    for snapshot in report.incomplete {
      console.warning("snapshot \(snapshot.shownLoss), and was not copied")
    }
    console.hintOlderKey(for: report.incomplete, besides: report.damaged)
    // Data that only an older key opens is not lost.
    if !report.incomplete.allSatisfy(\.needsOlderKey),
      !report.damaged.contains(where: \.isRefused)
    {
      console.hint(
        "'sandboxctl repair snapshots\(change.repository.suffix)' rewrites such snapshots without "
          + "the lost data")
    }
    for name in report.differentKeys {
      console.warning(
        "the key file '\(name)' differs from the repository's: the mirror keeps its own")
      console.hint("remove it from the mirror to have it copied again")
    }
    for name in report.waitingKeys {
      console.warning(
        "the key file '\(name)' still opens the mirror, where another program is removing objects: "
          + "a later run removes it")
    }
    if let place = report.possiblePlace {
      console.warning(
        "'\(to)' may be \(place.rawValue), reached in another way: a dry run cannot rule this out")
      console.hint("a run without '--dry-run' detects this before it copies anything")
    }
    guard let refusal = report.refusal else { return }
    console.warning(refusal.text)
    if refusal.repaired > 0 {
      console.hint(
        "'sandboxctl copy --repo MIRROR --to REPOSITORY' copies what the mirror still has back")
    }
    console.hint(
      "if they were removed on purpose, run 'sandboxctl mirror --to \(ShellWord.text(to))"
        + "\(connection)\(change.repository.suffix) --allow-large-removal' once; otherwise restore "
        + "from the mirror"
    )
  }
}

extension RepositoryMirror.Refusal {
  fileprivate var text: String {
    let emptied = sources > 0 ? ", of \(Sizes.count(sources, "source")) all" : ""
    let repaired =
      repaired > 0 ? ", and has \(Sizes.count(repaired)) only repaired, without what it lost" : ""
    return "the repository lacks \(Sizes.count(snapshots)) of the mirror's "
      + "\(Sizes.count(all, "snapshot"))\(emptied)\(repaired): nothing was removed from the mirror"
  }
}

extension RepositoryMirror.Report {
  /// Returns the report as text.
  fileprivate func lines(isDry: Bool) -> [String] {
    if copied.isEmpty, removed.isEmpty, removedKeys.isEmpty, waitingPacks == 0, !isInterrupted,
      !isNew
    {
      return refusal == nil && damaged.isEmpty && !hasDamage && possiblePlace == nil
        ? ["\(Sizes.count(snapshots, "snapshot")): the mirror is up to date"] : []
    }
    var lines = [
      "\(isDry ? "would copy" : "copied") \(copied.text): \(Sizes.text(copied.bytes))"
    ]
    if !removed.isEmpty {
      let removed = "\(removed.text) of \(Sizes.text(removed.bytes))"
      lines.append("\(isDry ? "would remove" : "removed") \(removed)")
    }
    for name in removedKeys {
      lines.append("\(isDry ? "would remove" : "removed") the key file '\(name)'")
    }
    if waitingPacks > 0 {
      lines.append(
        "\(Sizes.count(waitingPacks, "pack")) may be needed by programs that use the mirror: a "
          + "later run removes them")
    }
    if isInterrupted { lines.append("interrupted: the next run continues") }
    return lines
  }

  /// Returns the lines of `mirror --json`.
  fileprivate func jsonLines(isDry: Bool) -> [JSON] {
    incomplete.map { $0.json("incomplete") } + [["summary": summary(isDry: isDry)]]
  }

  private func summary(isDry: Bool) -> JSON {
    [
      "dry_run": .bool(isDry), "new": .bool(isNew), "snapshots": .integer(Int64(snapshots)),
      "copied": copied.json, "removed": removed.json,
      "refused": refusal.map { refusal in
        [
          "snapshots": .integer(Int64(refusal.snapshots)), "all": .integer(Int64(refusal.all)),
          "sources": .integer(Int64(refusal.sources)),
          "repaired": .integer(Int64(refusal.repaired)),
        ]
      } ?? .null,
      "waiting_packs": .integer(Int64(waitingPacks)),
      "incomplete": .integer(Int64(incomplete.count)), "unread": .integer(Int64(unread)),
      "damaged": .array(damaged.map { .string($0.description) }),
      "different_keys": .array(differentKeys.map { .string($0.description) }),
      "removed_keys": .array(removedKeys.map { .string($0.description) }),
      "waiting_keys": .array(waitingKeys.map { .string($0.description) }),
      "possible_place": possiblePlace.map { .string($0.word) } ?? .null,
      "interrupted": .bool(isInterrupted),
    ]
  }
}

extension RepositoryMirror.Place {
  /// The value in JSON.
  fileprivate var word: String {
    switch self {
    case .repository: "repository"
    case .inRepository: "in_repository"
    }
  }
}

extension RepositoryMirror.Amount {
  /// The numbers of objects, with the packs last.
  fileprivate var text: String {
    "\(Sizes.count(snapshots, "snapshot")), \(Sizes.count(indexes, "index object")), "
      + Sizes.count(packs, "pack")
  }

  fileprivate var json: JSON {
    [
      "snapshots": .integer(Int64(snapshots)), "indexes": .integer(Int64(indexes)),
      "packs": .integer(Int64(packs)), "bytes": .integer(Int64(clamping: bytes)),
    ]
  }
}
