internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension Failure {
  /// The failure as `--json` prints it.
  var json: JSON {
    var members: [JSON.Member] = [
      JSON.Member("error", .string(message)),
      JSON.Member("exit_status", .integer(Int64(status.rawValue))),
    ]
    if let hint { members.append(JSON.Member("hint", .string(hint))) }
    return .object(members)
  }
}

extension EntryTotals {
  var json: JSON { ["files": .integer(Int64(files)), "bytes": .integer(Int64(clamping: bytes))] }
}

extension PathRemark {
  var json: JSON { .object(JSON.path(path) + [JSON.Member("note", .string(remark))]) }
}

extension JSON {
  /// Returns the members that locate replaced and removed data: the snapshot made before the
  /// operation, and its trash.
  static func kept(_ saved: StoredSnapshot?, trash: String?) -> [Member] {
    [
      Member("saved", saved.map { .string($0.id.hex) } ?? .null),
      Member("trash", trash.map { .string($0) } ?? .null),
    ]
  }
}

extension BackupPlan {
  /// The plan as `backup --dry-run --json` prints it.
  var json: JSON {
    .object(
      [
        JSON.Member("device", .string(device.identity.description)),
        JSON.Member("layout", .string(device.layout.rawValue)),
      ] + JSON.path(device.root, named: "root") + [
        JSON.Member("policy", .string(policy.name)),
        JSON.Member("policy_digest", .string(policy.digest.hex)),
        JSON.Member("keeps", kept.json), JSON.Member("leaves_out", left.json),
        JSON.Member("owners", .array(summaries.map(\.json))),
        JSON.Member("left_out", .array(excluded.map(\.json))),
        JSON.Member("unreadable", RealPaths(device).json(unreadable)),
        JSON.Member("warnings", RealPaths(device).json(warnings)),
      ])
  }
}

extension OwnerSummary {
  var json: JSON {
    var members = JSON.path(path)
    members.append(JSON.Member("keeps", kept.json))
    let left = excluded.map { JSON.Member($0.dataClass.rawValue, $0.totals.json) }
    members.append(JSON.Member("leaves_out", .object(left)))
    return .object(members)
  }
}

extension Exclusion {
  var json: JSON {
    .object(
      JSON.path(path) + [
        JSON.Member("rule", .string(rule)), JSON.Member("files", .integer(Int64(clamping: files))),
        JSON.Member("bytes", .integer(Int64(clamping: bytes))),
      ])
  }
}

extension BackupReport {
  /// Returns the report as `backup --json` prints it.
  func json(_ plan: BackupPlan, isOnSameDisk: Bool) -> JSON {
    [
      "snapshot": snapshot.map { .string($0.id.hex) } ?? .null,
      "parent": snapshot?.snapshot.parent.map { .string($0.hex) } ?? .null,
      "files": .integer(Int64(files)), "entries": .integer(Int64(entries)),
      "bytes": .integer(Int64(clamping: bytes)),
      "stored_bytes": .integer(Int64(clamping: storedBytes)),
      "opened": .integer(Int64(opened)), "unchanged": .bool(isUnchanged),
      "new_blobs": .integer(Int64(clamping: statistics?.newBlobs ?? 0)),
      "seconds": .double(seconds), "unreadable": RealPaths(plan.device).json(unreadable),
      "warnings": RealPaths(plan.device).json(warnings),
      "remarks": .array((remarks + damagedIndexes.map(\.description)).map { .string($0) }),
      "same_disk": .bool(isOnSameDisk),
      "plan": plan.json,
    ]
  }
}

extension Scope {
  /// The apps of a snapshot's scope; null for a whole device.
  fileprivate var json: JSON {
    if case .apps(let apps) = self { return .array(apps.map { .string($0) }) }
    return .null
  }
}

extension SnapshotHead {
  /// The snapshot as a line of `snapshots --json`.
  var json: JSON {
    .object(
      [
        JSON.Member("id", .string(id.hex)), JSON.Member("time", .string(time.rfc3339)),
        JSON.Member("host", .string(host)), JSON.Member("user", .string(user)),
        JSON.Member("device", .string(device.identity)),
        JSON.Member("layout", .string(device.layout)),
      ] + JSON.path(device.root, named: "root") + [
        JSON.Member("reason", .string(reason.rawValue)),
        JSON.Member("scope", scope.json),
        JSON.Member("policy", .string(policy.name)),
        JSON.Member("apps", .array(apps.map { .string($0.identifier) })),
        JSON.Member("files", .integer(Int64(clamping: totals.files))),
        JSON.Member("bytes", .integer(Int64(clamping: totals.bytes))),
        JSON.Member("stored_bytes", .integer(Int64(clamping: totals.stored))),
        JSON.Member("parent", parent.map { .string($0.hex) } ?? .null),
        JSON.Member("tags", .array(tags.map { .string($0) })),
      ])
  }
}
