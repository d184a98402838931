internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension Failure {
  /// The failure as `--json` tells it.
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
  var json: JSON { .object(JSON.path(path) + [JSON.Member("remark", .string(remark))]) }
}

extension BackupPlan {
  /// The plan as `backup --dry-run --json` tells it.
  var json: JSON {
    [
      "device": .object(JSON.path(device.root)), "layout": .string(device.layout.rawValue),
      "policy": .string(policy.name), "policy_digest": .string(policy.digest.hex),
      "keeps": kept.json, "leaves_out": left.json, "owners": .array(summaries.map(\.json)),
      "left_out": .array(leftOut.map(\.json)),
    ]
  }
}

extension OwnerSummary {
  var json: JSON {
    var members = JSON.path(path)
    members.append(JSON.Member("keeps", kept.json))
    let left = leftOut.map { JSON.Member($0.dataClass.rawValue, $0.totals.json) }
    members.append(JSON.Member("leaves_out", .object(left)))
    return .object(members)
  }
}

extension LeftOut {
  var json: JSON {
    .object(
      JSON.path(path) + [
        JSON.Member("rule", .string(rule)), JSON.Member("files", .integer(Int64(clamping: files))),
        JSON.Member("bytes", .integer(Int64(clamping: bytes))),
      ])
  }
}

extension BackupReport {
  /// The report as `backup --json` tells it.
  func json(_ plan: BackupPlan, isOnSameDisk: Bool) -> JSON {
    [
      "snapshot": snapshot.map { .string($0.id.hex) } ?? .null,
      "parent": snapshot?.snapshot.parent.map { .string($0.hex) } ?? .null,
      "files": .integer(Int64(files)), "entries": .integer(Int64(entries)),
      "bytes": .integer(Int64(clamping: bytes)),
      "stored_bytes": .integer(Int64(clamping: storedBytes)),
      "opened": .integer(Int64(opened)), "unchanged": .bool(isUnchanged),
      "new_blobs": .integer(Int64(clamping: statistics?.newBlobs ?? 0)),
      "seconds": .double(seconds), "unreadable": .array(unreadable.map(\.json)),
      "warnings": .array(warnings.map(\.json)),
      "remarks": .array((remarks + damagedIndexes.map(\.description)).map { .string($0) }),
      "same_disk": .bool(isOnSameDisk),
      "plan": plan.json,
    ]
  }
}

extension Scope {
  /// The apps that a snapshot is of, null for a whole device.
  fileprivate var json: JSON {
    if case .apps(let apps) = self { return .array(apps.map { .string($0) }) }
    return .null
  }
}

extension StoredSnapshot {
  /// The snapshot as a line of `snapshots --json`.
  var json: JSON {
    [
      "id": .string(id.hex), "time": .string(snapshot.time.rfc3339),
      "host": .string(snapshot.host), "user": .string(snapshot.user),
      "device": .string(snapshot.device.identity), "layout": .string(snapshot.device.layout),
      "root": .string(snapshot.device.root.description),
      "reason": .string(snapshot.reason.rawValue), "scope": snapshot.scope.json,
      "policy": .string(snapshot.policy.name),
      "apps": .array(snapshot.apps.map { .string($0.identifier) }),
      "files": .integer(Int64(clamping: snapshot.totals.files)),
      "bytes": .integer(Int64(clamping: snapshot.totals.bytes)),
      "stored_bytes": .integer(Int64(clamping: snapshot.totals.stored)),
      "parent": snapshot.parent.map { .string($0.hex) } ?? .null,
      "tags": .array(snapshot.tags.map { .string($0) }),
    ]
  }
}
