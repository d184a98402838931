internal import ArgumentParser
internal import Retention
internal import SystemIO

/// The rules that determine which snapshots are kept.
struct RetentionOptions: ParsableArguments {
  @Option(help: Self.help("The number of newest snapshots to keep, or unlimited."))
  var keepLast: KeepCount?

  @Option(help: Self.help("Keep the newest snapshot of each of the last n hours that have one."))
  var keepHourly: KeepCount?

  @Option(help: Self.help("Keep the newest snapshot of each of the last n days that have one."))
  var keepDaily: KeepCount?

  @Option(
    help: Self.help(
      "Keep the newest snapshot of each of the last n weeks (from Monday) that have one."))
  var keepWeekly: KeepCount?

  @Option(help: Self.help("Keep the newest snapshot of each of the last n months that have one."))
  var keepMonthly: KeepCount?

  @Option(help: Self.help("Keep the newest snapshot of each of the last n years that have one."))
  var keepYearly: KeepCount?

  @Option(
    help: ArgumentHelp(
      "Keep all snapshots in this span before the newest: years, months, days and hours, for "
        + "example 2y5m7d3h.", valueName: "span"))
  var keepWithin: KeepSpan?

  @Option(help: Self.help(within: "hour"))
  var keepWithinHourly: KeepSpan?

  @Option(help: Self.help(within: "day"))
  var keepWithinDaily: KeepSpan?

  @Option(help: Self.help(within: "week"))
  var keepWithinWeekly: KeepSpan?

  @Option(help: Self.help(within: "month"))
  var keepWithinMonthly: KeepSpan?

  @Option(help: Self.help(within: "year"))
  var keepWithinYearly: KeepSpan?

  @Option(
    name: .customLong("keep-tag"),
    help: ArgumentHelp(
      "Keep snapshots with all of these tags, separated by commas, or without tags if empty; may "
        + "be repeated.", valueName: "tags"))
  var keepTags: [SnapshotTags] = []

  @Flag(help: "Also keep the oldest snapshot of each group.")
  var keepOldest = false

  private static func help(_ text: String) -> ArgumentHelp {
    ArgumentHelp(stringLiteral: text).named("n")
  }

  private static func help(within slot: String) -> ArgumentHelp {
    ArgumentHelp(
      "Keep the newest snapshot of each \(slot) in this span before the newest.", valueName: "span")
  }
}

extension ArgumentHelp {
  /// Returns the help with a name for the value.
  fileprivate func named(_ name: String) -> ArgumentHelp {
    var help = self
    help.valueName = name
    return help
  }
}

extension RetentionOptions {
  private var counts: [(period: Period, count: KeepCount?)] {
    [
      (.hourly, keepHourly), (.daily, keepDaily), (.weekly, keepWeekly), (.monthly, keepMonthly),
      (.yearly, keepYearly),
    ]
  }

  private var spans: [(period: Period, span: KeepSpan?)] {
    [
      (.hourly, keepWithinHourly), (.daily, keepWithinDaily), (.weekly, keepWithinWeekly),
      (.monthly, keepWithinMonthly), (.yearly, keepWithinYearly),
    ]
  }

  /// The rules.
  var rules: RetentionRules {
    var rules = RetentionRules()
    if let keepLast { rules.last = keepLast.count }
    for (period, count) in counts { rules.counts[period] = count?.count }
    rules.within = keepWithin?.span
    for (period, span) in spans { rules.withinPeriods[period] = span?.span }
    rules.tags = keepTags.map(\.list)
    rules.keepsOldest = keepOldest
    return rules
  }

  /// The long names of all options.
  static let names = Set(
    ["keep-last", "keep-within", "keep-tag", "keep-oldest"]
      + Period.allCases.flatMap { ["keep-\($0.rawValue)", "keep-within-\($0.rawValue)"] })

  /// The options as words of a command line.
  var words: [String] {
    var words: [String] = []
    func add(_ name: String, _ value: (some CustomStringConvertible)?) {
      if let value { words += ["--keep-\(name)", value.description] }
    }
    add("last", keepLast?.count)
    for (period, count) in counts { add(period.rawValue, count?.count) }
    add("within", keepWithin?.span)
    for (period, span) in spans { add("within-\(period.rawValue)", span?.span) }
    for tags in keepTags { add("tag", tags.list) }
    return words + (keepOldest ? ["--keep-oldest"] : [])
  }
}

extension RunInterval: ExpressibleByArgument {}

/// A number of snapshots to keep on the command line, or `unlimited`.
struct KeepCount: ExpressibleByArgument {
  let count: RetentionRules.Count

  init?(argument: String) {
    guard let count = RetentionRules.Count(argument) else { return nil }
    self.count = count
  }
}

/// A span of calendar time on the command line: `2y5m7d3h`.
struct KeepSpan: ExpressibleByArgument {
  let span: RetentionSpan

  init?(argument: String) {
    guard let span = RetentionSpan(argument) else { return nil }
    self.span = span
  }
}

/// The tags of a new snapshot on the command line, separated by commas. No tag is empty or has a
/// comma, since the options that select snapshots could not name it.
struct NewTags: ExpressibleByArgument {
  let tags: [String]

  init?(argument: String) {
    guard let list = TagList(argument), !list.tags.isEmpty else { return nil }
    tags = list.tags
  }
}

/// Tags on the command line, separated by commas; empty for snapshots without tags.
struct SnapshotTags: ExpressibleByArgument {
  let list: TagList

  init?(argument: String) {
    guard let list = TagList(argument) else { return nil }
    self.list = list
  }
}
