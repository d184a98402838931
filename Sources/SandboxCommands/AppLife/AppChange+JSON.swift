internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension AppChangePlan {
  /// Returns the plan as `--dry-run --json` prints it, with the reasons to refuse it.
  func json(_ refusals: [Refusal]) -> JSON {
    .object(
      head(refusals) + [
        JSON.Member("snapshot_at_most", snapshotBound?.json ?? .null),
        JSON.Member("running", .array(runningProcesses().map(\.json))),
      ])
  }

  /// Returns the members that the plan and the report share.
  fileprivate func head(_ refusals: [Refusal]) -> [JSON.Member] {
    [
      JSON.Member("operation", .string(request.change.rawValue)),
      JSON.Member("device", .string(device.identity.description)),
      JSON.Member("layout", .string(device.layout.rawValue)),
    ] + JSON.path(device.root, named: "root") + [
      JSON.Member("policy", .string(policy.name)),
      JSON.Member("policy_digest", .string(policy.digest.hex)),
    ] + JSON.path(request.app.bytes, named: "app") + [
      JSON.Member(
        "from",
        present.map { version($0.version, build: $0.build, isInstalled: $0.isInstalled) } ?? .null),
      JSON.Member(
        "to", arriving.map { version($0.version, build: $0.build, isInstalled: true) } ?? .null),
      JSON.Member("strict", .bool(request.isStrict)),
      JSON.Member("simulated", .bool(isSimulated)),
      JSON.Member("commands", .array(commands.map { .string($0) })),
      JSON.Member("refusals", .array(refusals.map(\.json))),
      JSON.Member("containers", .array(containers.map(\.json))),
      JSON.Member("snapshot", restore.map { .string($0.snapshot.id.hex) } ?? .null),
      JSON.Member("newer", .array(newer.map { .object(JSON.path($0)) })),
      JSON.Member(
        "left_groups", .array((restore?.leftGroups ?? []).map(\.json))),
      JSON.Member("carried", Self.json(totals(.carried))),
      JSON.Member("at_risk", Self.json(totals(.atRisk))),
      JSON.Member("dropped", Self.json(totals(.dropped))),
      JSON.Member("replaced", Self.json(totals(.replaced))),
      JSON.Member("restored", Self.json(totals(.restored))),
      JSON.Member("not_in_snapshot", .array(excludedData.map(\.json))),
      JSON.Member("not_in_snapshot_by_class", Self.json(notHeldTotals)),
      JSON.Member("notes", .array(notes.map(\.json))),
    ]
  }

  private func version(_ version: ByteString?, build: ByteString?, isInstalled: Bool) -> JSON {
    [
      "installed": .bool(isInstalled),
      "version": version.map { .string($0.description) } ?? .null,
      "build": build.map { .string($0.description) } ?? .null,
    ]
  }

  private static func json(_ sums: [(dataClass: DataClass, totals: EntryTotals)]) -> JSON {
    .object(sums.map { JSON.Member($0.dataClass.rawValue, $0.totals.json) })
  }
}

extension AppChangeReport {
  /// Returns the report as `--json` prints it.
  func json(_ plan: AppChangePlan) -> JSON {
    .object(
      plan.head([]) + JSON.kept(saved, trash: trash) + [
        JSON.Member("unplanned", .array(unplanned.map(\.json))),
        JSON.Member("failed", .array(failed.map(\.json))),
        JSON.Member("written_entries", .integer(Int64(written.entries))),
        JSON.Member("written_bytes", .integer(Int64(clamping: written.bytes))),
        JSON.Member("exchange_seconds", .double(exchangeSeconds)),
        JSON.Member("seconds", .double(seconds)),
      ])
  }
}

extension Refusal {
  fileprivate var json: JSON {
    [
      "code": .string(code.rawValue), "reason": .string(reason),
      "hint": hint.map { .string($0) } ?? .null,
    ]
  }
}

extension PlannedContainer {
  fileprivate var json: JSON {
    .object(
      JSON.path(path) + [
        JSON.Member("kind", .string(logical.kind.rawValue)),
        JSON.Member("fate", .string(action.rawValue)),
      ] + (from.map { JSON.path($0, named: "from") } ?? [JSON.Member("from", .null)])
        + (to.map { JSON.path($0, named: "to") } ?? [JSON.Member("to", .null)]) + [
          JSON.Member("paths", .array(paths.map(\.json))),
          JSON.Member("returns", .array(returns.map { $0.json(in: path) })),
          JSON.Member("moves", .array(moves.map(\.json))),
          JSON.Member("not_moved", .array(notMoved.map(\.json))),
          JSON.Member("links", .array(links.map(\.json))),
          JSON.Member("foreign_links", .array(foreignLinks.map(\.json))),
        ])
  }
}

extension PlannedPath {
  fileprivate var json: JSON {
    .object(
      JSON.path(path) + [
        JSON.Member("fate", .string(outcome.rawValue)),
        JSON.Member("class", .string(dataClass.rawValue)),
        JSON.Member("files", .integer(Int64(totals.files))),
        JSON.Member("bytes", .integer(Int64(clamping: totals.bytes))),
      ])
  }
}

extension PlannedTrashRestore {
  fileprivate func json(in container: ByteString) -> JSON {
    .object(
      JSON.path(container.appending(inner)) + JSON.path(from, named: "from") + [
        JSON.Member("class", .string(dataClass.rawValue)),
        JSON.Member("files", .integer(Int64(totals.files))),
        JSON.Member("bytes", .integer(Int64(clamping: totals.bytes))),
      ])
  }
}

extension PlannedMove {
  fileprivate var json: JSON {
    .object(JSON.path(from, named: "from") + JSON.path(inner, named: "to"))
  }
}

extension PlannedLink {
  fileprivate var json: JSON {
    .object(
      JSON.path(path) + JSON.path(before, named: "before") + JSON.path(after, named: "after"))
  }
}
