internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

extension RestorePlan {
  /// Prints the plan: the paths to replace and delete, and totals.
  func tell(_ console: Console, _ needs: [VolumeNeed], listsAll: Bool) throws {
    try console.list("replace  ", replacedPaths, all: listsAll)
    try console.list("delete   ", deletedPaths, all: listsAll)
    try console.list("rename   ", displaced.map(\.path), all: listsAll)
    for remark in damaged { console.warning("damaged: \(remark.path): \(remark.remark)") }
    for remark in blocked { console.warning("not restored: \(remark.path): \(remark.remark)") }
    for remark in spared { console.note("not deleted: \(remark.path): \(remark.remark)") }
    console.note(excludedData: excludedData)
    console.warn(ofTooMuch: needs)
    try console.result("would restore \(creates.text)")
    try replaces.tell("would replace", console)
    try leaves.tell("would leave", console)
    try deletes.tell("would delete", console)
  }
}

extension RestoreReport {
  /// Prints the result and the problems.
  func tell(_ plan: RestorePlan, _ console: Console, quiet: Bool) throws {
    for remark in damaged { console.warning("damaged: \(remark.path): \(remark.remark)") }
    for remark in failed { console.warning("not restored: \(remark.path): \(remark.remark)") }
    tellLosses(plan, console)
    if quiet { return }
    for remark in spared { console.note("not deleted: \(remark.path): \(remark.remark)") }
    for remark in displaced { console.note("renamed: \(remark.path): \(remark.remark)") }
    let id = plan.snapshot.id.hex.prefix(8)
    try console.result(
      "restored \(restored.text) from snapshot \(id) to \(plan.request.target) "
        + "in \(Times.duration(seconds))")
    try left.tell("left", console)
    try deleted.tell("deleted", console)
    console.note(excludedData: plan.excludedData)
    if ownersNotSet > 0 {
      console.note(
        "you now own \(Sizes.count(ownersNotSet, "entry")) that belonged to another user or group: "
          + "only root can restore the owner")
    }
  }

  private func tellLosses(_ plan: RestorePlan, _ console: Console) {
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

extension RestoreTotals {
  /// Prints a line with the totals, unless there are no entries.
  func tell(_ words: String, _ console: Console) throws {
    if entries > 0 { try console.result("\(words) \(text)") }
  }

  /// The totals: "3.1 GiB in 41,209 files, 812 directories, 14 links".
  var text: String {
    var parts = [
      "\(Sizes.text(bytes)) in \(Sizes.count(files, "file"))",
      Sizes.count(directories, "directory"),
    ]
    if links > 0 { parts.append(Sizes.count(links, "link")) }
    if specials > 0 { parts.append(Sizes.count(specials, "special file")) }
    return parts.joined(separator: ", ")
  }
}

extension Console {
  /// Prints how much of the restored data the snapshot's policy excluded.
  func note(excludedData: [Exclusion]) {
    if excludedData.isEmpty { return }
    let bytes = excludedData.lazy.map(\.bytes).clampedSum
    let files = Int(clamping: excludedData.lazy.map(\.files).clampedSum)
    note(
      "the snapshot lacks data that its policy excluded: \(Sizes.text(bytes)) in "
        + "\(Sizes.count(files, "file")); 'sandboxctl snapshots show' lists it")
  }
}
