internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The text output of `purge`.
struct PurgeText {
  private let plan: PurgePlan
  private let console: Console
  private let isQuiet: Bool
  private let listsAll: Bool

  init(_ plan: PurgePlan, _ console: Console, isQuiet: Bool, listsAll: Bool) {
    self.plan = plan
    self.console = console
    self.isQuiet = isQuiet
    self.listsAll = listsAll
  }

  /// Prints the space that each level would free, by volume.
  func query() throws {
    for volume in plan.volumes {
      try console.result(head(volume))
      if volume.levels.isEmpty {
        try console.result("the policy '\(plan.scan.policy.name)' has no pressure levels")
        continue
      }
      var table = Table([("level", .left), ("frees", .right), ("units", .right)])
      for gain in volume.levels {
        table.add([gain.level.rawValue, Sizes.text(gain.bytes), Sizes.count(gain.units)])
      }
      for line in table.lines { try console.result("  " + line) }
    }
    try tellRunning(plan.runningParties)
  }

  /// Prints the plan; with `listing`, each candidate.
  func plan(listing: Bool) throws {
    for volume in plan.volumes {
      try console.result(head(volume))
      if listing { try list(volume) }
      let units = Sizes.count(volume.chosen.count, "unit")
      let level = volume.term?.level.map { ", level \($0.rawValue)" } ?? ""
      try console.result("would free \(Sizes.text(volume.gain)) in \(units)\(level)")
    }
    try tellRunning(plan.runningParties)
  }

  private func head(_ volume: PurgeVolume) -> String {
    let share = volume.space.total == 0 ? 0 : volume.space.available * 100 / volume.space.total
    let pressure = volume.pressure.map { "under pressure: \($0.rawValue)" } ?? "no pressure"
    return "\(Paths.volume(of: volume.path)): \(Sizes.text(volume.space.available)) of "
      + "\(Sizes.text(volume.space.total)) free (\(share) %), \(pressure)"
  }

  private func list(_ volume: PurgeVolume) throws {
    let excerpt = ListExcerpt(volume.chosen, all: listsAll) { plan.units[Int($0)].bytes }
    for place in excerpt.shown {
      let unit = plan.units[Int(place)]
      let size = Sizes.text(unit.bytes)
      let columns = [
        String(repeating: " ", count: max(0, 9 - size.count)) + size,
        pad("order \(unit.terms.order)", 9), pad(plan.age(of: unit).words, 13),
        pad(plan.decision(on: unit).rule, 20),
      ]
      let over = unit.overQuota > 0 ? " (over its quota)" : ""
      let path = plan.path(of: unit)
      try console.result(
        columns.joined(separator: "  ") + "  \(path)" + (unit.kind == .folder ? "/" : "") + over)
    }
    if let remainder = excerpt.remainder { try console.result(remainder) }
  }

  private func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  /// Prints the result.
  func report(_ report: PurgeReport) throws {
    if !isQuiet {
      let excerpt = ListExcerpt(report.parties, all: listsAll, size: \.bytes)
      for party in excerpt.shown {
        let units = Sizes.count(party.units, "unit")
        try console.result("  \(Sizes.text(party.bytes))  \(party.name)  \(units)")
      }
      if let remainder = excerpt.remainder { try console.result("  " + remainder) }
      for volume in report.volumes {
        let after = volume.after.map { ", \(Sizes.text($0)) free now" } ?? ""
        try console.result(
          "\(Paths.volume(of: volume.path)): freed \(Sizes.text(volume.freed)) in "
            + "\(Sizes.count(volume.files, "file"))\(after)")
      }
    }
    try tellRunning(report.running + plan.runningParties)
    let places = RealPaths(plan.scan.device)
    for remark in report.changed { console.note("skipped: \(places.text(remark))") }
    for remark in report.failed { console.warning("not deleted: \(places.text(remark))") }
  }

  private func tellRunning(_ running: [PathRemark]) throws {
    if isQuiet { return }
    let excerpt = ListExcerpt(running, all: listsAll)
    for remark in excerpt.shown { console.note("skipped: \(remark.path): \(remark.remark)") }
    if let remainder = excerpt.remainder { console.note("skipped: " + remainder) }
  }

  /// Prints the volumes whose goal is not met, and the next level.
  func tellMissing(after report: PurgeReport? = nil) throws {
    for (number, volume) in plan.volumes.enumerated() {
      let missing =
        report.map { $0.volumes.indices.contains(number) ? $0.volumes[number].missing : 0 }
        ?? volume.missing
      guard missing > 0 else { continue }
      let next = volume.next.map { gain in
        "; level \(gain.level.rawValue) would free \(Sizes.text(gain.bytes)) in total "
          + "('--level \(gain.level.rawValue)')"
      }
      console.warning(
        "\(Paths.volume(of: volume.path)): \(Sizes.text(missing)) short of the goal"
          + (next ?? "; no level would free more"))
    }
  }
}

extension PurgePlan {
  /// The running apps and groups, which are excluded from the plan.
  var runningParties: [PathRemark] {
    request.running.sorted { $0.key < $1.key }.map { PathRemark(path: $0.key, remark: $0.value) }
  }

  /// Returns the time since the last use of a unit.
  func age(of unit: PurgeUnit) -> PurgeUnit.Age { PurgeUnit.Age(unit, at: request.now) }
}

extension PurgeUnit.Age {
  var words: String {
    switch self {
    case .over90Days: "over 90 days"
    case .over30Days: "over 30 days"
    case .over7Days: "over 7 days"
    case .over1Day: "over 1 day"
    case .younger: "younger"
    }
  }
}
