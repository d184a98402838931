internal import ArchiveStore
internal import Codecs
internal import Restore
internal import SystemIO

extension RestorePlan {
  /// Prints the plan: the paths to replace and delete, and totals.
  func show(_ console: Console, _ needs: [VolumeNeed], listsAll: Bool) throws {
    try console.list("replace  ", replacedPaths, all: listsAll)
    try console.list("delete   ", deletedPaths, all: listsAll)
    try console.list("rename   ", displaced.map(\.path), all: listsAll)
    console.remarks(damaged, as: .warning("damaged: "), all: listsAll)
    console.remarks(blocked, as: .warning("not restored: "), all: listsAll)
    console.remarks(spared, as: .note("not deleted: "), all: listsAll)
    console.note(excludedData: excludedData)
    console.warn(ofTooMuch: needs)
    try console.result("would restore \(creates.text)")
    try replaces.show("would replace", console)
    try leaves.show("would leave", console)
    try deletes.show("would delete", console)
  }
}

extension RestoreReport {
  /// Prints the result and the problems.
  func show(_ plan: RestorePlan, _ console: Console, quiet: Bool, listsAll: Bool) throws {
    console.remarks(damaged, as: .warning("damaged: "), all: listsAll)
    console.remarks(failed, as: .warning("not restored: "), all: listsAll)
    showLosses(plan, console)
    if quiet { return }
    console.remarks(spared, as: .note("not deleted: "), all: listsAll)
    console.remarks(displaced, as: .note("renamed: "), all: listsAll)
    let id = plan.snapshot.id.hex.prefix(8)
    try console.result(
      "restored \(restored.text) from snapshot \(id) to \(plan.request.target) "
        + "in \(Times.duration(seconds))")
    try left.show("left", console)
    try deleted.show("deleted", console)
    console.note(excludedData: plan.excludedData)
    if ownersNotSet > 0 {
      console.note(
        "you now own \(Sizes.count(ownersNotSet, "entry")) that belonged to another user or group: "
          + "only root can restore the owner")
    }
  }

  private func showLosses(_ plan: RestorePlan, _ console: Console) {
    if !damaged.isEmpty {
      // The names and the number of the entries in a damaged part of the tree are unknown.
      let (entries, parts) = (damaged.count - plan.damaged.count, plan.damaged.count)
      var lost = entries > 0 ? [Sizes.count(entries, "entry")] : []
      if parts > 0 {
        lost.append("the content of \(Sizes.count(parts, "part")) of the snapshot's tree")
      }
      console.warning(
        "\(lost.joined(separator: " and ")) could not be restored, because the repository is "
          + "damaged; \(parts > 0 ? "everything else was" : "all others were") restored")
    }
    if !failed.isEmpty {
      console.warning("\(Sizes.count(failed.count, "problem")): not restored exactly as stored")
    }
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
  func json(_ needs: [VolumeNeed]) -> JSONStream {
    var stream = JSONStream(
      head + [
        JSON.Member("restores", creates.json), JSON.Member("replaces", replaces.json),
        JSON.Member("leaves", leaves.json), JSON.Member("deletes", deletes.json),
      ])
    stream.add("replaced", .elements(replacedPaths.lazy.map { .object(JSON.path($0)) }))
    stream.add("deleted", .elements(deletedPaths.lazy.map { .object(JSON.path($0)) }))
    stream.add([
      JSON.Member("displaced", .array(displaced.map(\.json))),
      JSON.Member("damaged", .array(damaged.map(\.json))),
      JSON.Member("failed", .array(blocked.map(\.json))),
      JSON.Member("not_deleted", .array(spared.map(\.json))),
      JSON.Member("space", .array(needs.map(\.json))),
    ])
    return stream
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
