internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import Migration
internal import SystemIO

/// The migration of one app: its plan, and its report once it was carried out.
struct MigrationOutcome {
  let migration: AppMigration
  /// The report; nil for a preview, or if there was nothing to copy.
  var report: MigrationReport?
  /// The processes that make a preview's migration refuse.
  var running: [RunningApps.Sign] = []
  /// Whether the target has the app.
  var isInstalled = true

  init(_ migration: AppMigration) { self.migration = migration }

  private var route: MigrationRoute { migration.route }
  private var plan: MigrationPlan { migration.plan }
  /// The number of files and links to copy, or that were copied.
  var copiedFiles: Int { plan.files - (report?.failed.count ?? 0) }
  /// The bytes of these files.
  var copiedBytes: UInt64 {
    guard let failed = report?.failed, !failed.isEmpty else { return plan.bytes }
    return plan.moves.reduce(0) { sum, move in
      failed.contains(move.destination) ? sum : sum &+ move.entry.size
    }
  }

  /// The exit status: data that could not be copied, or conflicts, make it a partial migration.
  var status: ExitStatus {
    let isComplete =
      migration.problems.isEmpty && plan.conflicts.isEmpty && report?.isComplete ?? true
    return isComplete ? .done : .doneInPart
  }

  /// Prints the plan and the report.
  func show(
    _ output: OutputOptions, isForced: Bool, listsAll: Bool, _ console: Console
  ) throws {
    if output.json { return try console.result(json) }
    showProblems(listsAll, console)
    if output.quiet { return }
    try showHead(console)
    try showPlan(listsAll, console)
    showNotes(isForced: isForced, listsAll, console)
  }

  // MARK: - Text

  private func showHead(_ console: Console) throws {
    let (from, to) = (route.from, route.to)
    try console.result(
      "\(from.app) (\(from.packaging.rawValue), \(from.home)) -> "
        + "\(to.app) (\(to.packaging.rawValue), \(to.home))")
    if let saved = report?.saved {
      try console.result("saved the previous state: snapshot \(saved.id.hex.prefix(8))")
    }
    let verb = report == nil ? "would copy" : "copied"
    if plan.moves.isEmpty {
      try console.result("nothing to copy")
    } else {
      try console.result(
        "\(verb) \(Sizes.text(copiedBytes, in: copiedFiles))")
    }
    if let failed = report?.failed, !failed.isEmpty {
      try console.result("not copied: \(Sizes.count(failed.count, "file"))")
    }
    if !plan.present.isEmpty {
      try console.result("already there: \(Sizes.count(plan.present.count, "file"))")
    }
  }

  private func showPlan(_ listsAll: Bool, _ console: Console) throws {
    let moves = plan.topmostMoves
    try console.list(ListExcerpt(moves, all: listsAll), after: "  copy  ") {
      "\($0.entry.path) -> \($0.destination)"
    }
    try show(plan.withoutPlace, after: "  no place  ", all: listsAll, console)
    try show(plan.skipped, after: "  skip  ", all: listsAll, console)
    for file in migration.rewritings where !file.changes.isEmpty {
      try console.list(ListExcerpt(file.changes, all: listsAll), after: "  rewrite  ") {
        "\(file.path), \(ByteString($0.key)): \(ByteString($0.old)) -> \(ByteString($0.new))"
      }
    }
    try console.list(ListExcerpt(migration.relinks, all: listsAll), after: "  link  ") {
      "\($0.path): \($0.before) -> \($0.after)"
    }
  }

  private func show(
    _ groups: [MigrationPlan.Group], after word: String, all listsAll: Bool, _ console: Console
  ) throws {
    let excerpt = ListExcerpt(groups, all: listsAll, size: \.bytes)
    try console.list(excerpt, after: word) { Self.text($0) }
  }

  /// A line about data that is not migrated.
  static func text(_ group: MigrationPlan.Group) -> String {
    let reason = group.reason.map { ": \(ByteString($0))" } ?? ""
    return "\(group.path)  \(Sizes.text(group.bytes, in: group.files))\(reason)"
  }

  private func showProblems(_ listsAll: Bool, _ console: Console) {
    console.remarks(migration.problems, as: .warning("not copied: "), all: listsAll)
    console.list(plan.conflicts, as: .warning("not copied: "), all: listsAll) {
      "\($0.move.entry.path) -> \($0.move.destination): \($0.reason)"
    }
    for file in migration.rewritings {
      if let refusal = file.refusal {
        console.warning("the paths in '\(file.path)' stay as they are: \(ByteString(refusal))")
      }
    }
    console.remarks(report?.remarks ?? [], as: .warning("not copied exactly: "), all: listsAll)
  }

  private func showNotes(isForced: Bool, _ listsAll: Bool, _ console: Console) {
    for use in running {
      let end = isForced ? "'--force' migrates anyway" : "refused without '--force'"
      console.warning("\(use.text): \(end)")
    }
    console.list(migration.outside, as: .note("outside the app's places: "), all: listsAll) {
      $0.description
    }
    for file in migration.rewritings where !file.left.isEmpty {
      console.list(file.left, as: .warning("still names the old place: "), all: listsAll) {
        "\(file.path), \(ByteString($0.key)): \(ByteString($0.value))"
      }
    }
    if let command = migration.overrideCommand {
      console.note("the app has no access to some of these; '\(command)' grants it")
    }
    if !isInstalled {
      console.note("'\(route.to.app)' is not installed in the target")
    }
    for note in plan.notes { console.note(ByteString(note).description) }
  }

  // MARK: - JSON

  private var json: JSON {
    let end = report.map(Self.members) ?? [JSON.Member("running", Self.list(running, \.json))]
    return .object(head + entries + files + end)
  }

  /// The members about the sides, and the numbers.
  private var head: [JSON.Member] {
    [
      JSON.Member("from", Self.json(route.from)), JSON.Member("to", Self.json(route.to)),
      JSON.Member("installed", .bool(isInstalled)),
      JSON.Member("files", .integer(Int64(copiedFiles))),
      JSON.Member("bytes", .integer(Int64(clamping: copiedBytes))),
      JSON.Member("present", .integer(Int64(plan.present.count))),
    ]
  }

  /// The members about entries.
  private var entries: [JSON.Member] {
    [
      JSON.Member("places", Self.list(plan.topmostMoves, Self.json)),
      JSON.Member("conflicts", Self.list(plan.conflicts, Self.json)),
      JSON.Member("without_place", Self.list(plan.withoutPlace, Self.json)),
      JSON.Member("skipped", Self.list(plan.skipped, Self.json)),
      JSON.Member("unreadable", Self.list(migration.problems, \.json)),
    ]
  }

  /// The members about the content of files, and remarks.
  private var files: [JSON.Member] {
    [
      JSON.Member("rewrites", Self.list(migration.rewritings, Self.json)),
      JSON.Member("relinked", Self.list(migration.relinks, Self.json)),
      JSON.Member("outside", Self.list(migration.outside) { .object(JSON.path($0)) }),
      JSON.Member("override_command", migration.overrideCommand.map { .string($0) } ?? .null),
      JSON.Member("notes", Self.list(plan.notes) { .string($0) }),
    ]
  }

  private static func list<Element>(_ elements: [Element], _ json: (Element) -> JSON) -> JSON {
    .array(elements.map(json))
  }

  private static func members(_ report: MigrationReport) -> [JSON.Member] {
    [
      JSON.Member("saved", report.saved.map { .string($0.id.hex) } ?? .null),
      JSON.Member("failed", list(report.remarks, \.json)),
      JSON.Member("seconds", .double(report.seconds)),
    ]
  }

  private static func json(_ end: MigrationEnd) -> JSON {
    .object(
      [JSON.Member("form", .string(end.packaging.rawValue))] + JSON.path(end.app, named: "app")
        + JSON.path(end.home, named: "home"))
  }

  private static func json(_ move: MigrationPlan.Move) -> JSON {
    .object(JSON.path(move.entry.path) + JSON.path(move.destination, named: "destination"))
  }

  private static func json(_ conflict: MigrationPlan.Conflict) -> JSON {
    .object(
      JSON.path(conflict.move.entry.path)
        + JSON.path(conflict.move.destination, named: "destination")
        + [JSON.Member("note", .string(conflict.reason))])
  }

  /// Data that is not migrated.
  static func json(_ group: MigrationPlan.Group) -> JSON {
    .object(
      JSON.path(group.path) + [
        JSON.Member("note", group.reason.map { .string($0) } ?? .null),
        JSON.Member("files", .integer(Int64(group.files))),
        JSON.Member("bytes", .integer(Int64(clamping: group.bytes))),
      ])
  }

  private static func json(_ file: AppMigration.FileRewriting) -> JSON {
    .object(
      JSON.path(file.path) + [
        JSON.Member("rule", .string(file.rule.rawValue)),
        JSON.Member("refusal", file.refusal.map { .string($0) } ?? .null),
        JSON.Member("changes", list(file.changes, Self.json)),
        JSON.Member("outside", list(file.outside, Self.json)),
        JSON.Member("left", list(file.left, Self.json)),
      ])
  }

  private static func json(_ change: Rewriting.Change) -> JSON {
    ["key": .string(change.key), "old": .string(change.old), "new": .string(change.new)]
  }

  private static func json(_ value: Rewriting.Value) -> JSON {
    ["key": .string(value.key), "value": .string(value.value)]
  }

  private static func json(_ link: AppMigration.Relink) -> JSON {
    .object(
      JSON.path(link.path) + JSON.path(link.before, named: "before")
        + JSON.path(link.after, named: "after"))
  }
}

/// The totals of the migration of several apps.
struct MigrationTotals {
  private var apps = 0
  private var failed = 0
  private var files = 0
  private var bytes: UInt64 = 0
  private var bytesWithoutPlace: UInt64 = 0
  private var conflicts = 0
  private var without: [PathRemark] = []
  private var unnamed: [MigrationPlan.Group] = []
  private var unreadable: [PathRemark] = []
  /// The apps that the target lacks, by form.
  private var missing: [Packaging: [ByteString]] = [:]
  private var statuses: [ExitStatus] = []

  /// Adds the outcome of an app.
  mutating func add(_ outcome: MigrationOutcome) {
    let plan = outcome.migration.plan
    apps += 1
    files += outcome.copiedFiles
    bytes.addClamping(outcome.copiedBytes)
    bytesWithoutPlace.addClamping(plan.bytesWithoutPlace)
    conflicts += plan.conflicts.count
    let target = outcome.migration.route.to
    if !outcome.isInstalled { missing[target.packaging, default: []].append(target.app) }
    statuses.append(outcome.status)
  }

  /// Adds the data of a source that is not migrated.
  mutating func add(_ found: PairedApps) {
    without += found.without
    unnamed += found.unnamed
    for group in found.unnamed { bytesWithoutPlace.addClamping(group.bytes) }
    unreadable += found.unreadable
    if !found.unreadable.isEmpty { statuses.append(.doneInPart) }
  }

  /// Counts an app that could not be migrated.
  mutating func fail() {
    failed += 1
    statuses.append(.doneInPart)
  }

  /// The worst status of all apps; failed if every one failed.
  var status: ExitStatus { apps == 0 && failed > 0 ? .failed : ExitStatus.together(statuses) }

  /// The commands that install the apps that the target lacks.
  private var installCommands: [String] {
    let programs: [(Packaging, String)] = [(.flatpak, "flatpak install"), (.snap, "snap install")]
    return programs.compactMap { packaging, program in
      let apps = (missing[packaging] ?? []).filter(ShellWord.isPlainArgument)
      if apps.isEmpty { return nil }
      return program + " " + Set(apps).sorted().map { ShellWord.text($0) }.joined(separator: " ")
    }
  }

  /// Prints the totals, after the data that belongs to no app.
  func show(
    isPreview: Bool, _ output: OutputOptions, listsAll: Bool, _ console: Console
  ) throws {
    if output.json { return try console.result(json) }
    if output.quiet { return }
    if !unnamed.isEmpty {
      try console.result("no place in the target:")
      try console.list(ListExcerpt(unnamed, all: listsAll, size: \.bytes), after: "  no place  ") {
        MigrationOutcome.text($0)
      }
    }
    // A single app that is missing is the subject of a note.
    if apps + failed < 2 { return }
    if !installCommands.isEmpty {
      try console.result("to install the apps:")
      for command in installCommands { try console.result("  " + command) }
    }
    let verb = isPreview ? "would migrate" : "migrated"
    let left = failed > 0 ? "; \(Sizes.count(failed, "app")) failed" : ""
    try console.result(
      "\(verb) \(Sizes.count(apps, "app")): \(Sizes.text(bytes)) in "
        + "\(Sizes.count(files, "file"))\(left)")
  }

  private var json: JSON {
    [
      "summary": [
        "apps": .integer(Int64(apps)), "failed": .integer(Int64(failed)),
        "files": .integer(Int64(files)), "bytes": .integer(Int64(clamping: bytes)),
        "bytes_without_place": .integer(Int64(clamping: bytesWithoutPlace)),
        "conflicts": .integer(Int64(conflicts)),
        "without_route": .array(without.map(\.json)),
        "unnamed": .array(unnamed.map { MigrationOutcome.json($0) }),
        "unreadable": .array(unreadable.map(\.json)),
        "install_commands": .array(installCommands.map { .string($0) }),
      ]
    ]
  }
}
