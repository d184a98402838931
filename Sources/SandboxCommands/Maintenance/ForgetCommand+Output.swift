internal import ArchiveStore
internal import Codecs
internal import Retention
internal import SystemIO

extension ForgetCommand {
  /// Prints a plan: each snapshot with the rules that keep it, or only the named ones.
  func show(
    _ plan: RetentionPlan, pins: Set<SnapshotID>, _ console: Console
  ) throws {
    if output.json {
      for entry in plan.groups.flatMap(\.entries) where !entry.isUnnamed {
        try console.result(entry.json(isPinned: pins.contains(entry.head.id)))
      }
      for id in plan.damaged {
        try console.result(["id": .string(id.hex), "damaged": true, "action": "remove"])
      }
    } else if !output.quiet {
      for group in plan.groups where !group.entries.allSatisfy(\.isUnnamed) {
        for line in GroupText(group).lines { try console.result(line) }
      }
      for id in plan.damaged { try console.result("damaged snapshot: remove \(id.hex)\n") }
    }
  }

  /// Prints the number of snapshots that were removed or, in a dry run, would be.
  func summarize(
    _ plan: RetentionPlan, removed: Int, freed: RepositoryPrune.Freed?, _ console: Console
  ) throws {
    let count = plan.groups.reduce(plan.damaged.count) { $0 + $1.entries.count }
    if output.json {
      try console.result([
        "summary": [
          "dry_run": .bool(dryRun), "groups": .integer(Int64(plan.groups.count)),
          "refused_groups": .integer(Int64(plan.groups.count(where: \.isRefused))),
          "kept": .integer(Int64(count - removed)), "removed": .integer(Int64(removed)),
          "freed": freed?.json ?? .null,
        ]
      ])
    } else if !output.quiet {
      let verb = dryRun ? "would remove" : "removed"
      try console.result(
        "\(verb) \(Sizes.count(removed)) of \(Sizes.count(count, "snapshot"))")
      if let freed {
        try console.result(
          "only the removed snapshots need \(Sizes.count(freed.blobs, "blob")): "
            + "\(Sizes.text(freed.bytes)), stored in \(Sizes.text(freed.stored))")
      }
      if removed > 0, !prune, !dryRun {
        console.note(
          "'sandboxctl prune\(console.repositorySuffix)' removes the data that only they needed")
      }
    }
  }
}

extension RepositoryPrune.Freed {
  fileprivate var json: JSON {
    [
      "blobs": .integer(Int64(blobs)), "bytes": .integer(Int64(clamping: bytes)),
      "stored_bytes": .integer(Int64(clamping: stored)),
    ]
  }
}

extension MetricsText {
  /// Adds the metrics of a removal of snapshots and of the prune after it.
  mutating func add(_ done: ForgetCommand.Done) {
    let count = done.plan.groups.reduce(done.plan.damaged.count) { $0 + $1.entries.count }
    add("kept_snapshots", help: "Snapshots that were kept.", value: count - done.removed)
    add("removed_snapshots", help: "Snapshots that were removed.", value: done.removed)
    add(
      "refused_groups", help: "Groups of which the rules keep no snapshot, and all stay.",
      value: done.plan.groups.count(where: \.isRefused))
    add(done.hosts)
    if let pruned = done.pruned { add(pruned, prefix: "prune_") }
  }
}

/// A group of snapshots as text: a title, and a line for each snapshot.
struct GroupText {
  private let group: RetentionPlan.Group
  private let entries: [RetentionPlan.Entry]

  init(_ group: RetentionPlan.Group) {
    self.group = group
    entries = group.entries.filter { !$0.isUnnamed }
  }

  /// The properties that the snapshots have in common: `user@host:/root, apps a, b, tags c`.
  var title: String {
    var parts: [String] = []
    if group.key.device != nil, let head = group.entries.last?.head {
      parts.append(head.deviceText)
    }
    if group.key.device == nil, let host = group.key.host { parts.append("host \(host)".shown) }
    if let scope = group.key.scope { parts.append("scope \(scope.text)".shown) }
    if let containers = group.key.containers, let first = containers.first {
      let others = containers.count > 1 ? " and \(containers.count - 1) more" : ""
      parts.append("containers \(first)\(others)")
    }
    if let tags = group.key.tags {
      parts.append(tags.isEmpty ? "no tags" : "tags \(tags.joined(separator: ","))".shown)
    }
    let title = parts.isEmpty ? "all snapshots" : parts.joined(separator: ", ")
    return group.key.isAccepted ? title : title + ", not trusted"
  }

  /// The text, which ends with an empty line.
  var lines: [String] {
    let count = "keep \(Sizes.count(group.kept)), remove \(Sizes.count(group.removed))"
    let columns = self.columns
    var table = Table(columns.map { ($0.title, .left) })
    for entry in entries { table.add(columns.map { $0.cell(entry) }) }
    return ["\(title): \(count)"] + table.lines.map { "  " + $0 } + [""]
  }

  private struct Column {
    let title: String
    let cell: (RetentionPlan.Entry) -> String

    init(_ title: String, cell: @escaping (RetentionPlan.Entry) -> String) {
      (self.title, self.cell) = (title, cell)
    }
  }

  /// The columns. Those with the same value in all lines are omitted.
  private var columns: [Column] {
    var columns = [
      Column("action") { $0.isKept ? "keep" : "remove" },
      Column("id") { String($0.head.id.hex.prefix(8)) },
      Column("time") { Times.text($0.head.time) },
    ]
    if group.key.device == nil { columns.append(Column("device") { $0.head.deviceText }) }
    if entries.contains(where: { $0.head.reason != .manual }) {
      columns.append(Column("reason") { $0.head.reason.rawValue.shown })
    }
    if group.key.scope == nil, entries.contains(where: { $0.head.scope != .device }) {
      columns.append(Column("scope") { $0.head.scope.text.shown })
    }
    if entries.contains(where: { !$0.head.tags.isEmpty }) {
      columns.append(Column("tags") { $0.head.tags.joined(separator: ",").shown })
    }
    columns.append(
      Column("kept by") { $0.reasons.map(\.description).joined(separator: ", ").shown })
    return columns
  }
}

extension RetentionPlan.Entry {
  /// Whether only named snapshots are concerned, and this is not one of them.
  fileprivate var isUnnamed: Bool { reasons == [.notNamed] }

  /// The snapshot as a line of `forget --json`.
  fileprivate func json(isPinned: Bool) -> JSON {
    .object(
      [
        JSON.Member("id", .string(head.id.hex)), JSON.Member("time", .string(head.time.rfc3339)),
        JSON.Member("host", .string(head.host)), JSON.Member("user", .string(head.user)),
        JSON.Member("device", .string(head.device.identity)),
      ] + JSON.path(head.device.root, named: "root") + [
        JSON.Member("reason", .string(head.reason.rawValue)),
        JSON.Member("scope", head.scope.json),
        JSON.Member("tags", .array(head.tags.map { .string($0) })),
        JSON.Member("pinned", .bool(isPinned)),
        JSON.Member("action", .string(isKept ? "keep" : "remove")),
        JSON.Member("kept_by", .array(reasons.map { .string($0.description) })),
      ])
  }
}
