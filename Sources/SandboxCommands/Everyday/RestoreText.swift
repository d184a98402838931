internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

extension RestorePlan {
  /// Says what would be done: what is replaced and removed by name, all of it in numbers.
  func tell(_ console: Console, _ needs: [VolumeNeed]) throws {
    for path in replacedPaths { try console.result("replace  \(path)") }
    for path in deletedPaths { try console.result("delete   \(path)") }
    for remark in displaced { try console.result("rename   \(remark.path)") }
    for remark in damaged { console.warning("damaged: \(remark.path): \(remark.remark)") }
    for remark in blocked { console.warning("not restored: \(remark.path): \(remark.remark)") }
    for remark in spared { console.note("not removed: \(remark.path): \(remark.remark)") }
    console.warn(ofTooMuch: needs)
    try console.result("would restore \(creates.text)")
    if request.overwrite == nil { return }
    try console.result("would replace \(replaces.text)")
    try console.result("would leave \(leaves.text)")
    if request.deletes { try console.result("would delete \(deletes.text)") }
  }
}

extension RestoreReport {
  /// Says what was done, and what was not.
  func tell(_ plan: RestorePlan, _ console: Console, quiet: Bool) throws {
    for remark in damaged { console.warning("damaged: \(remark.path): \(remark.remark)") }
    for remark in failed { console.warning("not restored: \(remark.path): \(remark.remark)") }
    tellLosses(plan, console)
    if quiet { return }
    for remark in spared { console.note("not removed: \(remark.path): \(remark.remark)") }
    for remark in displaced { console.note("renamed: \(remark.path): \(remark.remark)") }
    let id = plan.snapshot.id.hex.prefix(8)
    try console.result(
      "restored \(restored.text) from snapshot \(id) to \(plan.request.target) "
        + "in \(Times.duration(seconds))")
    if plan.request.overwrite != nil { try console.result("left \(left.text)") }
    if plan.request.deletes { try console.result("deleted \(deleted.text)") }
    if ownersNotSet > 0 {
      console.note(
        "\(Sizes.count(ownersNotSet, "entry", plural: "entries")) belonged to another user or group "
          + "and are yours now: only the superuser can give them back")
    }
  }

  private func tellLosses(_ plan: RestorePlan, _ console: Console) {
    if !damaged.isEmpty {
      // Of what a part of the tree held neither names nor number are known.
      let (entries, parts) = (damaged.count - plan.damaged.count, plan.damaged.count)
      var lost = entries > 0 ? [Sizes.count(entries, "entry", plural: "entries")] : []
      if parts > 0 { lost.append("what \(Sizes.count(parts, "part")) of the snapshot's tree held") }
      console.warning(
        "\(lost.joined(separator: " and ")) could not be restored, because the repository is "
          + "damaged; all \(parts > 0 ? "else was" : "others were")")
    }
    if !failed.isEmpty {
      console.warning("\(Sizes.count(failed.count, "remark")) on what was not restored as stored")
    }
  }
}

extension RestoreTotals {
  /// What there is: "3.1 GiB in 41,209 files, 812 folders, 14 links".
  var text: String {
    var parts = [
      "\(Sizes.text(bytes)) in \(Sizes.count(files, "file"))", Sizes.count(folders, "folder"),
    ]
    if links > 0 { parts.append(Sizes.count(links, "link")) }
    if specials > 0 { parts.append(Sizes.count(specials, "special file")) }
    return parts.joined(separator: ", ")
  }
}
