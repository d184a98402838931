internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

extension RestorePlan {
  /// Says what would be done: what is replaced and removed by name, all of it in numbers.
  func tell(_ console: Console, _ needs: [VolumeNeed], listsAll: Bool) throws {
    try console.list("replace  ", replacedPaths, all: listsAll)
    try console.list("delete   ", deletedPaths, all: listsAll)
    try console.list("rename   ", displaced.map(\.path), all: listsAll)
    for remark in damaged { console.warning("damaged: \(remark.path): \(remark.remark)") }
    for remark in blocked { console.warning("not restored: \(remark.path): \(remark.remark)") }
    for remark in spared { console.note("not removed: \(remark.path): \(remark.remark)") }
    console.note(notHeld: notHeld)
    console.warn(ofTooMuch: needs)
    try console.result("would restore \(creates.text)")
    try replaces.tell("would replace", console)
    try leaves.tell("would leave", console)
    try deletes.tell("would delete", console)
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
    try left.tell("left", console)
    try deleted.tell("deleted", console)
    console.note(notHeld: plan.notHeld)
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
  /// Writes a line about the entries, if there are any.
  func tell(_ words: String, _ console: Console) throws {
    if entries > 0 { try console.result("\(words) \(text)") }
  }

  /// What there is: "3.1 GiB in 41,209 files, 812 directories, 14 links".
  var text: String {
    var parts = [
      "\(Sizes.text(bytes)) in \(Sizes.count(files, "file"))", Sizes.count(directories, "folder"),
    ]
    if links > 0 { parts.append(Sizes.count(links, "link")) }
    if specials > 0 { parts.append(Sizes.count(specials, "special file")) }
    return parts.joined(separator: ", ")
  }
}

extension Console {
  /// Notes how much of what is restored the snapshot's policy excluded.
  func note(notHeld: [Exclusion]) {
    if notHeld.isEmpty { return }
    let bytes = notHeld.lazy.map(\.bytes).clampedSum
    let files = Int(clamping: notHeld.lazy.map(\.files).clampedSum)
    note(
      "the snapshot does not hold what its policy excluded: \(Sizes.text(bytes)) in "
        + "\(Sizes.count(files, "file")); 'sandboxctl snapshots show' lists it")
  }
}
