internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SystemIO

extension RestoreCommand {
  /// The text output of a restore into a device.
  struct DeviceText {
    private let plan: DeviceRestorePlan
    private let listsAll: Bool
    /// The option that includes groups that other apps share.
    private let groupOption: String
    private let realPaths: RealPaths

    init(_ plan: DeviceRestorePlan, listsAll: Bool, groupOption: String) {
      (self.plan, self.listsAll, self.groupOption) = (plan, listsAll, groupOption)
      realPaths = RealPaths(plan)
    }

    /// Prints the plan: the target of each container, the paths to replace and delete, and totals.
    func show(_ console: Console, _ needs: [VolumeNeed]) throws {
      try showParts(console)
      try console.list("replace  ", plan.parts.lazy.flatMap(\.replacedPaths), all: listsAll)
      try console.list("delete   ", plan.parts.lazy.flatMap(\.deletedPaths), all: listsAll)
      try console.list("move     ", plan.parts.flatMap(\.displacedPaths), all: listsAll)
      showRemarks(
        isDamaged: plan.isDamaged, lost: plan.damaged, failed: plan.remarks(\.blocked), console)
      showNotes(spared: plan.remarks(\.spared), isDone: false, console)
      for process in plan.runningProcesses() {
        let end =
          plan.request.isForced
          ? "'--force' restores anyway" : "refused without '--force'"
        console.warning("\(process.text): \(end)")
      }
      console.warn(ofTooMuch: needs)
      try console.result("would restore \(plan.total(\.creates).text)")
      try plan.total(\.replaces).show("would replace", console)
      try plan.total(\.leaves).show("would leave unchanged", console)
      try plan.total(\.deletes).show("would delete", console)
      try showInstalls(console)
    }

    /// Prints the result and the problems.
    func show(_ report: DeviceRestoreOperation.Report, _ console: Console, quiet: Bool) throws {
      showRemarks(
        isDamaged: report.isDamaged, lost: report.damaged, failed: report.remarks(\.failed),
        console)
      console.warn(of: report.unkept)
      if quiet { return }
      if let saved = report.saved {
        let id = saved.id.hex.prefix(8)
        try console.result(
          "saved the previous state: snapshot \(id); "
            + "'sandboxctl restore \(id) --in-place\(console.repositorySuffix)' restores it"
        )
      }
      try showParts(console)
      showNotes(spared: report.remarks(\.spared), isDone: true, console)
      let id = plan.snapshot.id.hex.prefix(8)
      try console.result(
        "restored \(report.total(\.restored).text) from snapshot \(id) to "
          + "\(plan.request.device.root) in \(Times.duration(report.seconds))")
      try report.total(\.left).show("unchanged", console)
      try report.total(\.deleted).show("deleted", console)
      if let trash = report.trash {
        try console.result(
          "replaced and removed files were moved to trash \(trash); "
            + "'sandboxctl trash list\(plan.request.device.selection)' shows them")
      }
      try console.show(setAside: report.setAside, all: listsAll)
      try showInstalls(console)
    }

    private func showParts(_ console: Console) throws {
      let bytes = { (part: PlannedPart) in
        [part.plan.creates.bytes, part.plan.replaces.bytes, part.plan.leaves.bytes].clampedSum
      }
      // A part in which something is deleted is never empty.
      let excerpt = ListExcerpt(
        plan.parts, all: listsAll, isEmpty: { bytes($0) == 0 && $0.plan.deletes.entries == 0 },
        size: bytes)
      try console.list(excerpt, line: Self.line)
    }

    private static func line(_ part: PlannedPart) -> String {
      let word =
        switch part.action {
        case .merge: "merge"
        case .make: "create"
        case .harbor: "keep until the app is installed"
        }
      return "\(word)  \(part.path) -> \(part.target)"
    }

    private func showRemarks(
      isDamaged: Bool, lost: [PathRemark], failed: [PathRemark], _ console: Console
    ) {
      console.remarks(
        lost, as: RestoreCommand.lossLabel(isDamaged: isDamaged), all: listsAll,
        text: realPaths.text)
      console.remarks(failed, as: .warning("not restored: "), all: listsAll, text: realPaths.text)
      console.warn(ofIncomplete: plan.incompleteData, all: listsAll, text: realPaths.text)
    }

    private func showNotes(spared: [PathRemark], isDone: Bool, _ console: Console) {
      console.remarks(spared, as: .note("not deleted: "), all: listsAll, text: realPaths.text)
      console.remarks(plan.left, as: .note("skipped: "), all: listsAll)
      console.note(leftGroups: plan.leftGroups, all: listsAll, option: groupOption)
      console.remarks(plan.remarks(\.relinked), as: .note("link adjusted: "), all: listsAll)
      console.remarks(plan.remarks(\.foreignLinks), as: .note("link not adjusted: "), all: listsAll)
      {
        "\($0.path): \($0.remark), outside the snapshot's containers"
      }
      console.note(excludedData: plan.excludedData)
      console.note(omitted: plan.total(\.omitted), by: plan.request.policy.name)
    }

    private func showInstalls(_ console: Console) throws {
      if plan.installCommands.isEmpty { return }
      try console.result("to install the apps:")
      for command in plan.installCommands { try console.result("  " + command) }
    }
  }
}

extension PlannedPart {
  /// The logical paths to replace.
  var replacedPaths: some Collection<ByteString> {
    plan.replacedPaths.lazy.map { path.appending($0) }
  }

  /// The logical paths to delete.
  var deletedPaths: some Collection<ByteString> {
    plan.deletedPaths.lazy.map { path.appending($0) }
  }

  /// The logical paths to move aside together with replaced databases.
  var displacedPaths: [ByteString] { plan.displaced.map { path.appending($0.path) } }
}

extension DeviceRestorePlan {
  /// The members that the plan and the report share: the request, and the decisions of the plan.
  fileprivate var head: [JSON.Member] {
    [JSON.Member("snapshot", .string(snapshot.id.hex))] + JSON.path(request.path)
      + JSON.path(request.device.root, named: "target")
      + [
        JSON.Member("in_place", .bool(request.isInPlace)),
        JSON.Member("overwrite", .string(request.overwrite.rawValue)),
        JSON.Member("delete", .bool(request.deletes)),
        JSON.Member("policy", .string(request.policy.name)),
        JSON.Member("containers", .array(parts.map(\.json))),
        JSON.Member("left", .array(left.map(\.json))),
        JSON.Member("left_groups", .array(leftGroups.map(\.json))),
        JSON.Member("relinked", .array(remarks(\.relinked).map(\.json))),
        JSON.Member("foreign_links", .array(remarks(\.foreignLinks).map(\.json))),
        JSON.Member("not_in_snapshot", .array(excludedData.map(\.json))),
        JSON.Member("incomplete", RealPaths(self).json(incompleteData)),
        JSON.Member("omitted", total(\.omitted).json),
        JSON.Member("install_commands", .array(installCommands.map { .string($0) })),
      ]
  }

  /// Returns the plan as `restore --dry-run --json` prints it, with the space that it needs on each
  /// volume.
  func json(_ needs: [VolumeNeed]) -> JSONStream {
    var stream = JSONStream(
      head + [
        JSON.Member("restores", total(\.creates).json),
        JSON.Member("replaces", total(\.replaces).json),
        JSON.Member("leaves", total(\.leaves).json),
        JSON.Member("deletes", total(\.deletes).json),
      ])
    let (replaced, deleted) = (
      parts.lazy.flatMap(\.replacedPaths), parts.lazy.flatMap(\.deletedPaths)
    )
    stream.add("replaced", .elements(replaced.map { .object(JSON.path($0)) }))
    stream.add("deleted", .elements(deleted.map { .object(JSON.path($0)) }))
    stream.add([
      JSON.Member("damaged", RealPaths(self).json(damaged)),
      JSON.Member("needs_older_key", .bool(!damaged.isEmpty && !isDamaged)),
      JSON.Member("failed", RealPaths(self).json(remarks(\.blocked))),
      JSON.Member("not_deleted", RealPaths(self).json(remarks(\.spared))),
      JSON.Member("displaced", .array(remarks(\.displaced).map(\.json))),
      JSON.Member("running", .array(runningProcesses().map(\.json))),
      JSON.Member("space", .array(needs.map(\.json))),
    ])
    return stream
  }
}

extension DeviceRestoreOperation.Report {
  /// Returns the report as `restore --json` prints it.
  func json(_ plan: DeviceRestorePlan) -> JSON {
    .object(
      plan.head + JSON.kept(saved, trash: trash) + [
        JSON.Member("restored", total(\.restored).json),
        JSON.Member("left_entries", total(\.left).json),
        JSON.Member("deleted", total(\.deleted).json),
        JSON.Member("damaged", RealPaths(plan).json(damaged)),
        JSON.Member("needs_older_key", .bool(!damaged.isEmpty && !isDamaged)),
        JSON.Member("failed", RealPaths(plan).json(remarks(\.failed))),
        JSON.Member("not_deleted", RealPaths(plan).json(remarks(\.spared))),
        JSON.Member("displaced", .array(remarks(\.displaced).map(\.json))),
        JSON.Member("set_aside", .array(setAside.map(\.json))),
        JSON.Member(
          "owners_not_set", .integer(Int64(parts.reduce(0) { $0 + $1.report.ownersNotSet }))),
      ] + unkept.json + [
        JSON.Member("seconds", .double(seconds))
      ])
  }
}

extension PlannedPart {
  fileprivate var json: JSON {
    .object(
      JSON.path(path)
        + [JSON.Member("fate", .string(action.rawValue))] + JSON.path(target, named: "target")
        + [
          JSON.Member("restores", plan.creates.json), JSON.Member("replaces", plan.replaces.json),
          JSON.Member("leaves", plan.leaves.json), JSON.Member("deletes", plan.deletes.json),
        ])
  }
}
