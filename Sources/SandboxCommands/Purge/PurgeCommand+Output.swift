internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import Purge
internal import SandboxModel
internal import SystemIO

extension PurgeCommand {
  /// The text output of `purge`.
  struct Text {
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
        try console.result(table, indent: "  ")
      }
      try showRunning(plan.runningParties)
      showFixed()
      if !isQuiet { CacheNamesReport(plan.scan).note(console) }
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
      try showRunning(plan.runningParties)
      showFixed()
    }

    private func head(_ volume: PurgeVolume) -> String {
      guard volume.space.isKnown else {
        return "\(Paths.volume(of: volume.path)): it does not report its free space"
      }
      let share = volume.space.available * 100 / volume.space.total
      let pressure = volume.pressure.map { "under pressure: \($0.rawValue)" } ?? "no pressure"
      return "\(Paths.volume(of: volume.path)): \(Sizes.text(volume.space.available)) of "
        + "\(Sizes.text(volume.space.total)) free (\(share) %), \(pressure)"
    }

    private func list(_ volume: PurgeVolume) throws {
      let excerpt = ListExcerpt(volume.chosen, all: listsAll) { plan.units[Int($0)].bytes }
      try console.list(excerpt) { index in
        let unit = plan.units[Int(index)]
        let size = Sizes.text(unit.bytes)
        let columns = [
          String(repeating: " ", count: max(0, 9 - size.count)) + size,
          pad("order \(unit.terms.order)", 9), pad(plan.age(of: unit).words, 13),
          pad(plan.decision(on: unit).rule, 20),
        ]
        let over = unit.overQuota > 0 ? " (over its quota)" : ""
        let path = plan.path(of: unit)
        return columns.joined(separator: "  ") + "  \(path)"
          + (unit.kind == .directory ? "/" : "") + over
      }
    }

    private func pad(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(0, width - text.count))
    }

    /// Prints the result.
    func report(_ report: PurgeReport) throws {
      if !isQuiet {
        let excerpt = ListExcerpt(report.parties, all: listsAll, size: \.bytes)
        try console.list(excerpt, after: "  ") { party in
          "\(Sizes.text(party.bytes))  \(party.name)  \(Sizes.count(party.units, "unit"))"
        }
        for volume in report.volumes {
          let after = volume.after.map { ", \(Sizes.text($0)) free now" } ?? ""
          try console.result(
            "\(Paths.volume(of: volume.path)): freed \(Sizes.text(volume.freed)) in "
              + "\(Sizes.count(volume.files, "file"))\(after)")
        }
      }
      try showRunning(report.running + plan.runningParties)
      showFixed()
      let realPaths = RealPaths(plan.scan.device)
      console.remarks(report.changed, as: .note("skipped: "), all: listsAll, text: realPaths.text)
      console.remarks(
        report.failed, as: .warning("not deleted: "), all: listsAll, text: realPaths.text)
    }

    private func showRunning(_ running: [PathRemark]) throws {
      if isQuiet { return }
      console.remarks(running, as: .note("skipped: "), all: listsAll)
    }

    /// Prints the immutable entries, which no purge can delete.
    private func showFixed() {
      if isQuiet { return }
      console.remarks(
        plan.fixedEntries, as: .note("cannot be deleted: "), all: listsAll,
        text: RealPaths(plan.scan.device).text)
    }

    /// Prints the volumes whose goal is not met, and the next level.
    func showMissing(after report: PurgeReport? = nil) throws {
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
}

extension PurgePlan {
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

extension PurgePlan {
  /// Returns the line for a candidate to delete.
  ///
  /// - Parameter mountPoint: the mount point of its volume, found once for all of its candidates.
  func json(candidate index: Int, number: Int, on mountPoint: ByteString) -> JSON {
    let unit = units[index]
    let decision = decision(on: unit)
    var members = [JSON.Member("event", "candidate")] + JSON.path(path(of: unit))
    members += unit.json(at: request.now)
    members += JSON.path(mountPoint, named: "volume")
    members += [
      JSON.Member("number", .integer(Int64(number))), JSON.Member("rule", .string(decision.rule)),
      JSON.Member("at", .location(decision.location)),
    ]
    if let why = decision.why { members.append(JSON.Member("why", .string(why))) }
    return .object(members)
  }

  /// Returns the line for the device: the plan, or the space that each level would free.
  func json(event: String) -> JSON {
    .object(
      head(event: event) + [
        JSON.Member("volumes", .array(volumes.map { $0.json() })),
        JSON.Member("running", .array(runningParties.map(\.json))),
        JSON.Member("immutable", RealPaths(scan.device).json(fixedEntries)),
      ]
        + (event == "query"
          ? [JSON.Member("cache_names", CacheNamesReport(scan).json)] : []))
  }

  fileprivate func head(event: String) -> [JSON.Member] {
    [JSON.Member("event", .string(event))]
      + scan.device.members(policy: scan.policy.name, scan.policy.digest)
  }
}

extension PurgeUnit {
  /// Returns the members that describe a unit, and the keys by which units are ordered.
  func json(at now: Timestamp) -> [JSON.Member] {
    var members: [JSON.Member] = [
      JSON.Member("kind", .string(kind.rawValue)),
      JSON.Member("class", .string(dataClass.rawValue)),
      JSON.Member("purge", PurgeDisposition.allowed(terms).json),
      JSON.Member("bytes", .integer(Int64(clamping: bytes))),
      JSON.Member("files", .integer(Int64(files))),
      JSON.Member("last_used", .string(Timestamp(seconds: newest).rfc3339)),
      JSON.Member("age", .string(Age(self, at: now).words)),
    ]
    if overQuota > 0 {
      members.append(JSON.Member("over_quota_thousandths", .integer(Int64(overQuota))))
    }
    return members
  }
}

extension PurgeVolume {
  fileprivate func json() -> JSON {
    var members =
      JSON.path(path) + JSON.path(Host.mountPoint(of: path), named: "mount_point") + [
        JSON.Member("total", space.isKnown ? .integer(Int64(clamping: space.total)) : .null),
        JSON.Member("free", space.isKnown ? .integer(Int64(clamping: space.available)) : .null),
        JSON.Member("pressure", pressure.map { .string($0.rawValue) } ?? .null),
        JSON.Member("levels", .array(levels.map(\.json))),
      ]
    if let term {
      members += [
        JSON.Member("level", term.level.map { .string($0.rawValue) } ?? .null),
        JSON.Member("min_age_seconds", .integer(term.minimumAge)),
        JSON.Member("goal", goal.map { .integer(Int64(clamping: $0)) } ?? .null),
        JSON.Member("gives", .integer(Int64(clamping: gain))),
        JSON.Member("units", .integer(Int64(chosen.count))),
        JSON.Member("missing", .integer(Int64(clamping: missing))),
        JSON.Member("next", next?.json ?? .null),
      ]
    }
    return .object(members)
  }
}

extension PurgeVolume.LevelGain {
  fileprivate var json: JSON {
    [
      "level": .string(level.rawValue), "gives": .integer(Int64(clamping: bytes)),
      "units": .integer(Int64(units)),
    ]
  }
}

extension PurgeReport {
  /// Returns the line for a purged device, with the time if a watch prints it.
  func json(_ plan: PurgePlan, at time: Timestamp? = nil) -> JSON {
    .object(
      plan.head(event: "report") + (time.map { [JSON.Member("time", .string($0.rfc3339))] } ?? [])
        + [
          JSON.Member("freed", .integer(Int64(clamping: freed))),
          JSON.Member(
            "volumes", .array(zip(volumes, plan.volumes).map { $0.json(next: $1.next) })),
          JSON.Member("parties", .array(parties.map(\.json))),
          JSON.Member("running", .array((running + plan.runningParties).map(\.json))),
          JSON.Member("immutable", RealPaths(plan.scan.device).json(plan.fixedEntries)),
          JSON.Member("changed", RealPaths(plan.scan.device).json(changed)),
          JSON.Member("failed", RealPaths(plan.scan.device).json(failed)),
          JSON.Member("interrupted", .bool(isInterrupted)),
        ])
  }

  /// The error of a purge that was interrupted.
  var interruption: OperationError {
    let units = volumes.reduce(0) { $0 + $1.units }
    if units == 0 { return PurgeRequest.interrupted }
    return OperationError(
      .interrupted,
      "the purge was interrupted: \(Sizes.count(units, "unit")) deleted, all others are unchanged",
      hint: "run it again to continue")
  }
}

extension PurgeReport.Volume {
  fileprivate func json(next: PurgeVolume.LevelGain?) -> JSON {
    .object(
      JSON.path(path) + JSON.path(Host.mountPoint(of: path), named: "mount_point") + [
        JSON.Member("freed", .integer(Int64(clamping: freed))),
        JSON.Member("units", .integer(Int64(units))), JSON.Member("files", .integer(Int64(files))),
        JSON.Member("goal", goal.map { .integer(Int64(clamping: $0)) } ?? .null),
        JSON.Member("missing", .integer(Int64(clamping: missing))),
        JSON.Member("next", missing > 0 ? next?.json ?? .null : .null),
        JSON.Member("free_before", before.map { .integer(Int64(clamping: $0)) } ?? .null),
        JSON.Member("free_after", after.map { .integer(Int64(clamping: $0)) } ?? .null),
      ])
  }
}

extension PurgeReport.Party {
  fileprivate var json: JSON {
    .object(
      JSON.path(name, named: "name") + [
        JSON.Member("freed", .integer(Int64(clamping: bytes))),
        JSON.Member("units", .integer(Int64(units))), JSON.Member("files", .integer(Int64(files))),
      ])
  }
}
