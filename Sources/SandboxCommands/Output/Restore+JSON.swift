internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

extension RestoreTotals {
  var json: JSON {
    [
      "files": .integer(Int64(files)), "folders": .integer(Int64(directories)),
      "links": .integer(Int64(links)), "specials": .integer(Int64(specials)),
      "bytes": .integer(Int64(clamping: bytes)),
    ]
  }
}

extension RestorePlan {
  /// The members that the plan and the report share.
  fileprivate var head: [JSON.Member] {
    [JSON.Member("snapshot", .string(snapshot.id.hex))] + JSON.path(request.path)
      + JSON.path(request.target, named: "target")
      + [
        JSON.Member("overwrite", request.overwrite.map { .string($0.rawValue) } ?? .null),
        JSON.Member("delete", .bool(request.deletes)),
        JSON.Member("not_in_snapshot", .array(excludedData.map(\.json))),
      ]
  }

  /// Returns the plan as `restore --dry-run --json` prints it, with the space that it needs on each
  /// volume.
  func json(_ needs: [VolumeNeed]) -> JSON {
    .object(
      head + [
        JSON.Member("restores", creates.json), JSON.Member("replaces", replaces.json),
        JSON.Member("leaves", leaves.json), JSON.Member("deletes", deletes.json),
        JSON.Member("replaced", .array(replacedPaths.map { .object(JSON.path($0)) })),
        JSON.Member("deleted", .array(deletedPaths.map { .object(JSON.path($0)) })),
        JSON.Member("displaced", .array(displaced.map(\.json))),
        JSON.Member("damaged", .array(damaged.map(\.json))),
        JSON.Member("failed", .array(blocked.map(\.json))),
        JSON.Member("not_deleted", .array(spared.map(\.json))),
        JSON.Member("space", .array(needs.map(\.json))),
      ])
  }
}

extension RestoreReport {
  /// Returns the report as `restore --json` prints it.
  func json(_ plan: RestorePlan) -> JSON {
    .object(
      plan.head + [
        JSON.Member("restored", restored.json), JSON.Member("left", left.json),
        JSON.Member("deleted", deleted.json),
        JSON.Member("damaged", .array(damaged.map(\.json))),
        JSON.Member("failed", .array(failed.map(\.json))),
        JSON.Member("not_deleted", .array(spared.map(\.json))),
        JSON.Member("displaced", .array(displaced.map(\.json))),
        JSON.Member("owners_not_set", .integer(Int64(ownersNotSet))),
        JSON.Member("seconds", .double(seconds)),
      ])
  }
}
