internal import AppPackages
internal import AppUpdate
internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SystemIO

extension AppChangeRun {
  /// The text output of the commands that install, replace and remove apps.
  struct Text {
    private let plan: AppChangePlan
    private let console: Console
    private let isQuiet: Bool
    private let listsAll: Bool

    init(_ plan: AppChangePlan, _ console: Console, isQuiet: Bool, listsAll: Bool) {
      (self.plan, self.console) = (plan, console)
      (self.isQuiet, self.listsAll) = (isQuiet, listsAll)
    }

    /// Prints the planned changes and the reasons to refuse them.
    func show(_ refusals: [AppChangePlan.Refusal]) throws {
      try head()
      try containers()
      console.remarks(plan.unreadTrash, as: .warning("would not be restored: "), all: listsAll)
      try sums(isDone: false)
      if let bound = plan.snapshotBound {
        try console.result(
          "snapshot first: up to \(Sizes.text(bound.bytes)) in "
            + "\(Sizes.count(bound.files, "file")), minus data already in the repository")
      }
      for process in plan.runningProcesses() where !plan.isSimulated {
        let end = plan.request.isForced ? "'--force' proceeds anyway" : "refused without '--force'"
        console.warning("\(process.text): \(end)")
      }
      for refusal in refusals {
        let hint = refusal.hint.map { "; \($0)" } ?? ""
        console.warning("would be refused: \(refusal.reason)\(hint)")
      }
      for command in plan.commands { try console.result("run: \(command)") }
    }

    /// Prints the changes made.
    func report(_ report: AppChangeReport) throws {
      console.remarks(report.lateChanges, as: .warning("not in the plan: "), all: listsAll) {
        "\($0.path): \($0.remark); moved to the trash"
      }
      console.remarks(report.failed, as: .warning("not done: "), all: listsAll)
      if isQuiet { return }
      if let saved = report.saved {
        try console.result("saved the previous state: snapshot \(saved.id.hex.prefix(8))")
      }
      try head()
      try containers()
      try sums(isDone: true)
      if let trash = report.trash {
        try console.result(
          "replaced and removed files were moved to trash \(trash); "
            + "'sandboxctl trash list\(plan.device.selection)' shows them")
      }
      if plan.request.change == .uninstall, let saved = report.saved {
        try console.result(
          "'sandboxctl restore \(saved.id.hex.prefix(8)) --in-place\(console.repositorySuffix)' "
            + "restores it")
      }
      try console.result(
        "done in \(Times.duration(report.seconds)), exchange in "
          + Times.duration(report.exchangeSeconds))
    }

    private func head() throws {
      let app = plan.request.app
      let before = plan.present.flatMap { $0.isInstalled ? text($0.version, $0.build) : nil }
      let after = plan.arriving.map { text($0.version, $0.build) }
      let versions = [before, after].compactMap { $0 }.joined(separator: " -> ")
      let suffix =
        plan.device.layout.installer.map { " (simulated: \($0) does this itself)" } ?? ""
      try console.result(
        "\(plan.request.change.rawValue)  \(app)\(versions.isEmpty ? "" : "  " + versions)\(suffix)"
      )
    }

    private func text(_ version: ByteString?, _ build: ByteString?) -> String {
      let build = build.map { " (\($0))" } ?? ""
      return (version?.description ?? "?") + build
    }

    private func containers() throws {
      for container in plan.containers {
        let to = container.to.map { " -> \($0)" } ?? ""
        let destination = container.action == .keep ? "" : to
        try console.result("\(container.action.rawValue)  \(container.path)\(destination)")
        if container.logical.kind != .bundle {
          try list(container.paths, size: \.totals) {
            "\($0.outcome.words)  \($0.path)  \(text($0.dataClass, $0.totals))"
          }
        }
        try console.list(ListExcerpt(container.moves, all: listsAll), after: "  ") {
          "move  \($0.from) -> \(container.path.appending($0.inner))"
        }
        try list(container.trashRestores, size: \.totals) { item in
          "restored from the trash  \(container.path.appending(item.inner))  "
            + text(item.dataClass, item.totals)
        }
        console.remarks(container.notMoved, as: .note(""), all: listsAll)
        try console.list(ListExcerpt(container.links, all: listsAll), after: "  ") {
          "link  \($0.path): \($0.before) -> \($0.after)"
        }
        console.remarks(container.foreignLinks, as: .note("link not adjusted: "), all: listsAll) {
          "\($0.path): \($0.remark), outside the moved containers"
        }
      }
      console.note(leftGroups: plan.restore?.leftGroups ?? [], all: listsAll)
      console.note(omitted: plan.omitted, by: plan.policy.name)
      console.remarks(plan.notes, as: .note(""), all: listsAll)
    }

    /// Prints a line for each element: all, or the largest. Those of size 0 are also of interest.
    private func list<Element>(
      _ elements: [Element], size: (Element) -> EntryTotals, line: (Element) -> String
    ) throws {
      let excerpt = ListExcerpt(
        elements, all: listsAll, isEmpty: { _ in false }, size: { size($0).bytes })
      try console.list(excerpt, after: "  ", line: line)
    }

    private func text(_ dataClass: DataClass, _ totals: EntryTotals) -> String {
      "\(dataClass.rawValue), \(Sizes.count(totals.files, "file")), \(Sizes.text(totals.bytes))"
    }

    private func sums(isDone: Bool) throws {
      let stays = isDone ? "kept" : "would be kept"
      try sum(plan.totals(.carried), stays)
      try sum(plan.totals(.atRisk), stays + ", not guaranteed by the platform")
      try sum(plan.totals(.replaced), isDone ? "replaced" : "would be replaced")
      let goes = plan.isSimulated ? "would be removed" : "would be moved to the trash"
      try sum(plan.totals(.dropped), isDone ? "moved to the trash" : goes)
      let back = isDone ? "restored" : "would be restored"
      try sum(plan.totals(.restored), back + " from the snapshot")
      try sum(plan.trashRestoreTotals, back + " from the trash of the update")
      if plan.makesSnapshot {
        try sum(plan.notHeldTotals, "not in the snapshot")
      }
    }

    private func sum(
      _ sums: [(dataClass: DataClass, totals: EntryTotals)], _ what: String
    ) throws {
      let sums = sums.filter { $0.totals.files > 0 }
      if sums.isEmpty { return }
      let all = sums.reduce(into: EntryTotals()) { $0.add($1.totals) }
      let parts = sums.map { "\($0.dataClass.rawValue) \(Sizes.text($0.totals.bytes))" }
      try console.result("\(what): \(all.text) (\(parts.joined(separator: ", ")))")
    }
  }
}

extension DataOutcome {
  /// The word in text output.
  fileprivate var words: String {
    switch self {
    case .carried: "kept"
    case .atRisk: "kept, not guaranteed"
    case .dropped: "dropped"
    case .replaced: "replaced"
    case .restored: "restored"
    }
  }
}

extension AppChangePlan {
  /// Returns the plan as `--dry-run --json` prints it, with the reasons to refuse it.
  func json(_ refusals: [AppChangePlan.Refusal]) -> JSON {
    .object(
      head(refusals) + [
        JSON.Member("snapshot_at_most", snapshotBound?.json ?? .null),
        JSON.Member("running", .array(runningProcesses().map(\.json))),
      ])
  }

  /// Returns the members that the plan and the report share.
  fileprivate func head(_ refusals: [AppChangePlan.Refusal]) -> [JSON.Member] {
    [JSON.Member("operation", .string(request.change.rawValue))]
      + device.members(policy: policy.name, policy.digest)
      + JSON.path(request.app.bytes, named: "app") + [
        JSON.Member(
          "from",
          present.map { version($0.version, build: $0.build, isInstalled: $0.isInstalled) } ?? .null
        ),
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
        JSON.Member("omitted", omitted.json),
        JSON.Member("notes", .array((notes + unreadTrash).map(\.json))),
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
        JSON.Member("unplanned", .array(lateChanges.map(\.json))),
        JSON.Member("failed", .array(failed.map(\.json))),
        JSON.Member("written_entries", .integer(Int64(written.entries))),
        JSON.Member("written_bytes", .integer(Int64(clamping: written.bytes))),
        JSON.Member("exchange_seconds", .double(exchangeSeconds)),
        JSON.Member("seconds", .double(seconds)),
      ])
  }
}

extension AppChangePlan.Refusal {
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
          JSON.Member("returns", .array(trashRestores.map { $0.json(in: path) })),
          JSON.Member("moves", .array(moves.map(\.json))),
          JSON.Member("not_moved", .array(notMoved.map(\.json))),
          JSON.Member("links", .array(links.map(\.json))),
          JSON.Member("foreign_links", .array(foreignLinks.map(\.json))),
        ])
  }
}

extension PlannedContainer.Path {
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

extension PlannedContainer.TrashRestore {
  fileprivate func json(in container: ByteString) -> JSON {
    .object(
      JSON.path(container.appending(inner)) + JSON.path(from, named: "from") + [
        JSON.Member("class", .string(dataClass.rawValue)),
        JSON.Member("files", .integer(Int64(totals.files))),
        JSON.Member("bytes", .integer(Int64(clamping: totals.bytes))),
      ])
  }
}

extension PlannedContainer.Move {
  fileprivate var json: JSON {
    .object(JSON.path(from, named: "from") + JSON.path(inner, named: "to"))
  }
}

extension PlannedContainer.Link {
  fileprivate var json: JSON {
    .object(
      JSON.path(path) + JSON.path(before, named: "before") + JSON.path(after, named: "after"))
  }
}
