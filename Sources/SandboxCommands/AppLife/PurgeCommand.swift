internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl purge`: deletes what apps make or fetch again, to gain space.
struct PurgeCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "purge",
      abstract: "Delete caches to gain space",
      usage:
        "sandboxctl purge [--free <size> | --until-free <percent>] [--level <level>] [<options>]",
      discussion: """
        Deletes what the policy lets go when space is short: caches and temporary files of apps that \
        do not run, in the policy's order, the longest unused first. Documents, settings and what no \
        rule knows are never candidates.

        Without a figure the policy's levels of pressure decide, volume by volume; where none is \
        crossed nothing is deleted, and what each level would give is shown, as with --query. \
        --free and --until-free take what the level medium lets go, unless --level names another. \
        What is to go is shown and asked on a terminal first; --yes goes without. Without a terminal \
        and --yes the exit status is 2 where something would go.

        --watch goes on until a signal ends it (SIGINT, SIGTERM: between two deletions, exit status 0) \
        and purges whenever a volume is under pressure, or has less free than --until-free says; each \
        purge is a line. Between the looks it only asks for the free space; SIGUSR1 brings the next \
        one on. 'sandboxctl schedule install --systemd --purge' has it run always.

        Exit status 5 says that a goal was not met: what is missing is told, and what the next level \
        would give. 3 says that something could not be deleted.

        With --json the answer has a line for each candidate with --dry-run (event: candidate), and \
        one for each device (event: query, plan or report).

        \(Examples.text([
          "sandboxctl purge --root device --query",
          "sandboxctl purge --root device --level critical --dry-run",
          "sandboxctl purge --root device --level critical --yes",
        ]))
        """)
  }

  @OptionGroup var goal: PurgeGoalOptions

  @Flag(help: "Show what each level would give, and delete nothing.")
  var query = false

  @Flag(name: .shortAndLong, help: "Show each candidate that would go, and delete nothing.")
  var dryRun = false

  @Flag(name: .shortAndLong, help: "Do not ask.")
  var yes = false

  @Flag(
    help: "Look again and again whether space is short, and purge where it is; needs --yes.")
  var watch = false

  @Option(
    help: ArgumentHelp(
      "With --watch: how long from one look to the next, 30s or more; a minute unless it is given.",
      valueName: "time"))
  var interval: TimeSpan?

  @Option(
    name: .customLong("app"),
    help: ArgumentHelp(
      "Purge only this app, without the groups that it shares: an identifier, its last component or "
        + "the name that is shown; may be repeated.", valueName: "app"))
  var apps: [ByteString] = []

  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try check()
    if watch {
      var watch = PurgeWatch(self, console)
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

  /// Refuses words that do not go together. A watch asks nobody, and has a goal that can be met.
  func check() throws {
    let goal = try goal.goal
    guard watch else {
      if interval != nil {
        throw UsageError("'--interval' without '--watch'", hint: "give '--watch', too")
      }
      return
    }
    if query || dryRun {
      throw UsageError(
        "a watch deletes: '--query' and '--dry-run' only look",
        hint: "look first, without '--watch'")
    }
    guard yes else {
      throw UsageError(
        "a watch asks nobody", hint: "give '--yes', or look first with '--dry-run'")
    }
    switch goal {
    case .byPressure, .untilFree: break
    case .free, .everything:
      throw UsageError(
        "a watch would purge at each look: it needs to know how much is to be free",
        hint: "give '--until-free', or leave it to the policy's levels")
    }
    if let interval, interval.seconds < PurgeWatch.leastInterval {
      throw UsageError(
        "looking every \(Int(interval.seconds)) s is too often", hint: "give 30s or more")
    }
  }

  private func purge(_ found: Device, _ console: Console) throws -> ExitStatus {
    let compiled = try policy.compile(for: found, output, console)
    let plan = try plan(found, compiled)
    let text = PurgeText(plan, console, isQuiet: output.quiet, listsAll: list.all)
    if query || plan.isIdle {
      if output.json { try console.result(plan.json(event: "query")) } else { try text.query() }
      return .done
    }
    if dryRun {
      if output.json { try writeJSON(plan, console) } else { try text.plan(listing: true) }
      return plan.isEnough ? .done : try unmet(text)
    }
    if !yes, !(try isAgreed(text, plan, console)) { return .done }
    return try carryOut(plan, text, console)
  }

  /// Looks at a device and plans, which changes nothing, and shows how far it is: by directories, as
  /// how many there are is not known before.
  func plan(_ found: Device, _ compiled: CompiledPolicy) throws -> PurgePlan {
    let counters = ProgressCounters(of: "folder")
    return try progress.run(counters, output) { isStopping in
      try plan(
        found, compiled, Lifecycle.PurgeOptions(isStopping: isStopping, counters: counters))
    }
  }

  private func plan(
    _ found: Device, _ compiled: CompiledPolicy, _ following: Lifecycle.PurgeOptions
  ) throws -> PurgePlan {
    let device = found.stating(groupsOf: compiled)
    let selected = try AppNames(apps).apps(of: device)
    let scan = DeviceScan.run(device, policy: compiled, options: .forPurge(following))
    if scan.isInterrupted { throw PurgeRequest.interrupted }
    var request = try PurgeRequest.now(
      goal.goal, level: goal.level, for: scan, following: following)
    if !selected.isEmpty {
      request.only = Set(selected.flatMap { device.containers(of: $0).map(\.logicalPrefix) })
    }
    return PurgePlan.make(scan, request)
  }

  /// The plan of what the policy's levels ask for, for one who only wants to know.
  static func look(_ found: Device, _ policy: CompiledPolicy) throws -> PurgePlan {
    let scan = DeviceScan.run(
      found.stating(groupsOf: policy), policy: policy, options: .forPurge())
    return PurgePlan.make(scan, try PurgeRequest.now(.byPressure, for: scan))
  }

  private func writeJSON(_ plan: PurgePlan, _ console: Console) throws {
    for volume in plan.volumes {
      for (number, place) in volume.chosen.enumerated() {
        try console.result(plan.json(candidate: Int(place), number: number + 1, of: volume))
      }
    }
    try console.result(plan.json(event: "plan"))
  }

  private func unmet(_ text: PurgeText) throws -> ExitStatus {
    if !output.json { try text.tellMissing() }
    return .goalNotMet
  }

  private func isAgreed(_ text: PurgeText, _ plan: PurgePlan, _ console: Console) throws -> Bool {
    let isNothing = plan.volumes.allSatisfy(\.chosen.isEmpty)
    guard isNothing || console.canAsk else {
      throw UsageError(
        "a purge has to be agreed to, and there is no terminal to ask on",
        hint: "give '--yes', or look first with '--dry-run'")
    }
    try text.plan(listing: false)
    return isNothing ? true : try console.ask("Delete this?")
  }

  private func carryOut(
    _ plan: PurgePlan, _ text: PurgeText, _ console: Console
  ) throws -> ExitStatus {
    let report = try carryOut(plan)
    if output.json {
      try console.result(report.json(plan))
    } else {
      try text.report(report)
    }
    if report.isInterrupted { return .interrupted }
    if !report.meetsGoal {
      if !output.json { try text.tellMissing(after: report) }
      return .goalNotMet
    }
    return report.failed.isEmpty ? .done : .doneInPart
  }
}

extension PurgeCommand {
  /// Deletes what a plan says, and shows how far it is.
  func carryOut(_ plan: PurgePlan) throws -> PurgeReport {
    let counters = ProgressCounters()
    return try progress.run(counters, output) { isStopping in
      PurgeOperation(plan, Lifecycle.PurgeOptions(isStopping: isStopping, counters: counters)).run()
    }
  }
}

extension PurgePlan {
  /// Whether no volume is under pressure, and none was asked to be purged all the same.
  var isIdle: Bool { volumes.allSatisfy { $0.term == nil } }

  /// Whether every goal is met by what goes.
  var isEnough: Bool { volumes.allSatisfy { $0.missing == 0 } }
}
