internal import ArchiveStore
internal import ArgumentParser
internal import DeviceScan
internal import PolicyEngine
internal import Purge
internal import SandboxModel
internal import SystemIO

/// `sandboxctl purge`: deletes data that apps can recreate, to free space.
struct PurgeCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "purge",
      abstract: "Delete caches to free space",
      usage:
        "sandboxctl purge [--free <size> | --until-free <percent>] [--level <level>] [<options>]",
      discussion: """
        Deletes data that the policy releases when space is short: caches and temporary files of \
        apps that are not running, in the policy's order, least recently used first. Documents, \
        settings and files that no rule matches are never candidates.

        Without --free, --until-free and --level the policy's pressure levels decide for each \
        volume; if none is reached, nothing is deleted and the space that each level would free is \
        shown. Asks on a terminal before deleting unless --yes is given.

        See sandboxctl-purge(1) for --watch, the JSON output and the exit statuses.

        \(Examples.text([
          "sandboxctl purge --root device --query",
          "sandboxctl purge --root device --level critical --dry-run",
          "sandboxctl purge --root device --level critical --yes",
        ]))
        """)
  }

  @OptionGroup var goal: GoalOptions

  @Flag(help: "Show the space that each level would free, without deleting.")
  var query = false

  @Flag(name: .shortAndLong, help: "List the candidates to delete, without deleting.")
  var dryRun = false

  @Flag(name: .shortAndLong, help: "Delete without asking.")
  var yes = false

  @Flag(
    help: "Keep running, and purge whenever space is short; requires --yes.")
  var watch = false

  @Option(
    help: ArgumentHelp(
      "With --watch: the time between two checks, at least 30s (default: 1m).",
      valueName: "time"))
  var interval: TimeSpan?

  @Option(
    name: .customLong("app"),
    help: .app("Purge only this app, without the groups it shares", addition: "may be repeated"))
  var apps: [ByteString] = []

  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  /// `--watch` replaces neither `dry-run` and `query`, without which it deletes, nor `level` and
  /// `free`, which may restrict it. Consent to deletion without confirmation until one goal is met
  /// is not consent to another goal, and a goal for one device or app is not one for another. A low
  /// level stays beside a goal, which it restricts; alone it is a goal.
  static var precedence: [OptionPrecedence] {
    let goals: Set<String> = ["free", "level", "until-free"]
    let destructive = goals.union(["interval", "watch", "yes"])
    let targets =
      OptionPrecedence.target(OptionPrecedence.device, dropping: destructive)
      + OptionPrecedence.target(["app"], dropping: destructive)
    return OptionPrecedence.oneOf(["free"], ["until-free"])
      + OptionPrecedence.target(goals, dropping: ["yes"])
      + targets.map { $0.protecting(["level=low"], beside: ["free", "until-free"]) }
      + OptionPrecedence.choosing(["query", "dry-run"], replaces: ["watch", "interval"])
      + OptionPrecedence.choosing(["query"], replaces: goals)
  }

  static var needs: [OptionNeed] { OptionNeed.of("interval", other: "watch") }

  func run(_ console: Console) throws -> ExitStatus {
    try check()
    if watch {
      var watch = Watch(self, console)
      return try watch.run()
    }
    let found = try AppNames(apps).holders(among: device.choices().map { try $0.find() })
    var results: [ExitStatus] = []
    for (number, device) in found.enumerated() {
      if number > 0, !output.json, !output.quiet { try console.result("") }
      results.append(try purge(device, console))
    }
    return ExitStatus.together(results)
  }

  /// Checks that the options can be combined. A watch cannot ask, and needs a goal at which it
  /// stops deleting.
  func check() throws {
    let goal = try goal.goal
    if query, let name = self.goal.names.first {
      throw UsageError(
        .optionsConflict, "'--query' and '\(name)' cannot be used together",
        hint: "'--query' shows all levels; '--dry-run' shows what reaches a goal")
    }
    guard watch else { return }
    if query || dryRun {
      throw UsageError(
        .optionsConflict, "'--watch' cannot be used with '--query' or '--dry-run'",
        hint: "use them without '--watch' first")
    }
    guard yes else {
      throw UsageError(
        .optionRequired, "'--watch' requires '--yes'",
        hint: "add '--yes', or list the candidates with '--dry-run'")
    }
    switch goal {
    case .byPressure, .untilFree: break
    case .free, .everything:
      throw UsageError(
        .optionsConflict, "'--watch' cannot be used with '--free', or with '--level' alone",
        hint: "use '--until-free', or neither to follow the policy's levels")
    }
    if let interval, interval.seconds < Watch.minimumInterval {
      throw UsageError(
        .invalidValue, "the interval of \(Int(interval.seconds)) s is too short",
        hint: "give 30s or more")
    }
  }

  private func purge(_ found: Device, _ console: Console) throws -> ExitStatus {
    let compiled = try policy.compile(for: found, output, console)
    let plan = try plan(found, compiled)
    let text = Text(plan, console, isQuiet: output.quiet, listsAll: list.all)
    if query || plan.isIdle {
      if output.json { try console.result(plan.json(event: "query")) } else { try text.query() }
      return .done
    }
    if dryRun {
      if output.json { try writeJSON(plan, console) } else { try text.plan(listing: true) }
      return plan.isEnough ? .done : try unmet(text)
    }
    if !yes, !(try isAgreed(to: plan, with: text, console)) { return .done }
    return try carryOut(plan, with: text, console)
  }

  /// Scans a device and returns the plan. Shows the progress in directories, whose number is not
  /// known in advance.
  func plan(_ found: Device, _ compiled: CompiledPolicy) throws -> PurgePlan {
    let counters = ProgressCounters(of: "directory")
    return try progress.run(counters, output) { isStopping in
      try PurgePlan.make(
        found, policy: compiled, apps: AppNames(apps), goal.goal, level: goal.level,
        following: PurgeOptions(isStopping: isStopping, counters: counters))
    }
  }

  private func writeJSON(_ plan: PurgePlan, _ console: Console) throws {
    for volume in plan.volumes {
      let mountPoint = Host.mountPoint(of: volume.path)
      for (number, index) in volume.chosen.enumerated() {
        try console.result(plan.json(candidate: Int(index), number: number + 1, on: mountPoint))
      }
    }
    try console.result(plan.json(event: "plan"))
  }

  private func unmet(_ text: Text) throws -> ExitStatus {
    if !output.json { try text.showMissing() }
    return .goalNotMet
  }

  private func isAgreed(
    to plan: PurgePlan, with text: Text, _ console: Console
  ) throws -> Bool {
    let isNothing = plan.volumes.allSatisfy(\.chosen.isEmpty)
    guard isNothing || console.canAsk else {
      throw UsageError(
        .terminalRequired, "cannot ask before deleting: there is no terminal",
        hint: "add '--yes', or list the candidates with '--dry-run'")
    }
    if !output.json {
      try text.plan(listing: false)
    } else if !isNothing {
      try console.result(plan.json(event: "plan"))
    }
    return isNothing ? true : try console.confirm("Delete this?")
  }

  private func carryOut(
    _ plan: PurgePlan, with text: Text, _ console: Console
  ) throws -> ExitStatus {
    let report = try carryOut(plan)
    if output.json {
      try console.result(report.json(plan))
    } else {
      try text.report(report)
    }
    if report.isInterrupted { throw report.interruption }
    if !report.meetsGoal {
      if !output.json { try text.showMissing(after: report) }
      return .goalNotMet
    }
    return report.failed.isEmpty ? .done : .doneInPart
  }

  /// Carries out a plan and shows the progress.
  func carryOut(_ plan: PurgePlan) throws -> PurgeReport {
    let counters = ProgressCounters()
    return try progress.run(counters, output) { isStopping in
      PurgeOperation(plan, PurgeOptions(isStopping: isStopping, counters: counters)).run()
    }
  }
}

extension PurgeCommand {
  /// The goal of a purge.
  struct GoalOptions: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The space to free on each volume, for example 500M or 2GiB.", valueName: "size"))
    var free: ByteSize?

    @Option(
      help: ArgumentHelp(
        "Purge until this percentage of the volume is free, 1 to 99.", valueName: "percent"))
    var untilFree: Int?

    @Option(
      help: ArgumentHelp(
        "The pressure level to purge at: low, medium or critical (default: medium with "
          + "--free or --until-free, otherwise the current pressure of the volume).",
        valueName: "level"),
      completion: .list(Pressure.Level.allCases.map(\.rawValue)), transform: Self.level)
    var level: Pressure.Level?

    private static func level(_ word: String) throws -> Pressure.Level {
      guard let level = Pressure.Level(rawValue: word) else {
        throw ValidationError("there is no level '\(word)': choose low, medium or critical")
      }
      return level
    }

    /// The options that are given.
    var names: [String] {
      [(free != nil, "--free"), (untilFree != nil, "--until-free"), (level != nil, "--level")]
        .filter(\.0).map(\.1)
    }

    /// The goal that the options give.
    var goal: PurgeRequest.Goal {
      get throws {
        if free != nil, untilFree != nil {
          throw UsageError(
            .optionsConflict, "'--free' and '--until-free' cannot be used together",
            hint: "give one of them")
        }
        if let free {
          guard free.bytes > 0 else {
            throw UsageError(
              .invalidValue, "'--free' must be more than 0", hint: "give a size, for example 500M")
          }
          return .free(UInt64(free.bytes))
        }
        if let untilFree {
          guard (1...99).contains(untilFree) else {
            throw UsageError(
              .invalidValue, "'\(untilFree)' is not a valid percentage",
              hint: "give a number from 1 to 99")
          }
          return .untilFree(percent: untilFree)
        }
        return level == nil ? .byPressure : .everything
      }
    }
  }
}
