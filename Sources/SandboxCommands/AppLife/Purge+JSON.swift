internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension PurgePlan {
  /// Returns the line for a candidate to delete.
  func json(candidate place: Int, number: Int, of volume: PurgeVolume) -> JSON {
    let unit = units[place]
    let decision = decision(on: unit)
    var members = [JSON.Member("event", "candidate")] + JSON.path(path(of: unit))
    members += unit.json(at: request.now)
    members += JSON.path(volume.path, named: "volume")
    members += [
      JSON.Member("number", .integer(Int64(number))), JSON.Member("rule", .string(decision.rule)),
      JSON.Member("at", .place(decision.location)),
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
      ])
  }

  fileprivate func head(event: String) -> [JSON.Member] {
    [
      JSON.Member("event", .string(event)),
      JSON.Member("device", .string(scan.device.identity.description)),
      JSON.Member("layout", .string(scan.device.layout.rawValue)),
    ] + JSON.path(scan.device.root, named: "root") + [
      JSON.Member("policy", .string(scan.policy.name)),
      JSON.Member("policy_digest", .string(scan.policy.digest.hex)),
    ]
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
        JSON.Member("total", .integer(Int64(clamping: space.total))),
        JSON.Member("free", .integer(Int64(clamping: space.available))),
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
          JSON.Member("changed", RealPaths(plan.scan.device).json(changed)),
          JSON.Member("failed", RealPaths(plan.scan.device).json(failed)),
          JSON.Member("interrupted", .bool(isInterrupted)),
        ])
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
        JSON.Member("free_before", .integer(Int64(clamping: before))),
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
