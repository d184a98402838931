internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

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
        JSON.Member("install_commands", .array(installCommands.map { .string($0) })),
      ]
  }

  /// Returns the plan as `restore --dry-run --json` prints it, with the space that it needs on each
  /// volume.
  func json(_ needs: [VolumeNeed]) -> JSON {
    .object(
      head + [
        JSON.Member("restores", total(\.creates).json),
        JSON.Member("replaces", total(\.replaces).json),
        JSON.Member("leaves", total(\.leaves).json),
        JSON.Member("deletes", total(\.deletes).json),
        JSON.Member(
          "replaced", .array(parts.flatMap(\.replacedPaths).map { .object(JSON.path($0)) })),
        JSON.Member(
          "deleted", .array(parts.flatMap(\.deletedPaths).map { .object(JSON.path($0)) })),
        JSON.Member("damaged", RealPaths(self).json(damaged)),
        JSON.Member("failed", RealPaths(self).json(remarks(\.blocked))),
        JSON.Member("not_deleted", RealPaths(self).json(remarks(\.spared))),
        JSON.Member("displaced", .array(remarks(\.displaced).map(\.json))),
        JSON.Member("running", .array(runningProcesses().map(\.json))),
        JSON.Member("space", .array(needs.map(\.json))),
      ])
  }
}

extension RunningProcess {
  var json: JSON {
    .object(
      JSON.path(app, named: "app") + [JSON.Member("process", .integer(Int64(process)))]
        + JSON.path(program, named: "program") + JSON.path(file, named: "file"))
  }
}

extension DeviceRestoreReport {
  /// Returns the report as `restore --json` prints it.
  func json(_ plan: DeviceRestorePlan) -> JSON {
    .object(
      plan.head + JSON.kept(saved, trash: trash) + [
        JSON.Member("restored", total(\.restored).json),
        JSON.Member("left_entries", total(\.left).json),
        JSON.Member("deleted", total(\.deleted).json),
        JSON.Member("damaged", RealPaths(plan).json(damaged)),
        JSON.Member("failed", RealPaths(plan).json(remarks(\.failed))),
        JSON.Member("not_deleted", RealPaths(plan).json(remarks(\.spared))),
        JSON.Member("displaced", .array(remarks(\.displaced).map(\.json))),
        JSON.Member(
          "owners_not_set", .integer(Int64(parts.reduce(0) { $0 + $1.report.ownersNotSet }))),
        JSON.Member("seconds", .double(seconds)),
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

extension LeftGroup {
  var json: JSON {
    .object(
      JSON.path(path) + [JSON.Member("shared_by", .array(sharers.map { .string($0) }))])
  }
}
