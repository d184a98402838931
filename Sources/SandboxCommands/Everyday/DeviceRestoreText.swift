internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// The text output of a restore into a device.
struct DeviceRestoreText {
  private let plan: DeviceRestorePlan
  private let listsAll: Bool
  private let places: RealPaths

  init(_ plan: DeviceRestorePlan, listsAll: Bool) {
    (self.plan, self.listsAll) = (plan, listsAll)
    places = RealPaths(plan)
  }

  /// Prints the plan: the target of each container, the paths to replace and delete, and totals.
  func tell(_ console: Console, _ needs: [VolumeNeed]) throws {
    try tellParts(console)
    try console.list("replace  ", plan.parts.lazy.flatMap(\.replacedPaths), all: listsAll)
    try console.list("delete   ", plan.parts.lazy.flatMap(\.deletedPaths), all: listsAll)
    try console.list("move     ", plan.parts.flatMap(\.displacedPaths), all: listsAll)
    tellRemarks(damaged: plan.damaged, failed: plan.remarks(\.blocked), console)
    tellNotes(spared: plan.remarks(\.spared), isDone: false, console)
    for process in plan.runningProcesses() {
      let end =
        plan.request.isForced
        ? "'--force' restores anyway" : "refused without '--force'"
      console.warning("\(process.text): \(end)")
    }
    console.warn(ofTooMuch: needs)
    try console.result("would restore \(plan.total(\.creates).text)")
    try plan.total(\.replaces).tell("would replace", console)
    try plan.total(\.leaves).tell("would leave", console)
    try plan.total(\.deletes).tell("would delete", console)
    try tellInstalls(console)
  }

  /// Prints the result and the problems.
  func tell(_ report: DeviceRestoreReport, _ console: Console, quiet: Bool) throws {
    tellRemarks(damaged: report.damaged, failed: report.remarks(\.failed), console)
    if quiet { return }
    if let saved = report.saved {
      let id = saved.id.hex.prefix(8)
      try console.result(
        "saved the previous state: snapshot \(id); "
          + "'sandboxctl restore \(id) --in-place' restores it"
      )
    }
    try tellParts(console)
    tellNotes(spared: report.remarks(\.spared), isDone: true, console)
    let id = plan.snapshot.id.hex.prefix(8)
    try console.result(
      "restored \(report.total(\.restored).text) from snapshot \(id) to "
        + "\(plan.request.device.root) in \(Times.duration(report.seconds))")
    try report.total(\.left).tell("left", console)
    try report.total(\.deleted).tell("deleted", console)
    if let trash = report.trash {
      try console.result(
        "replaced and removed files were moved to trash \(trash); "
          + "'sandboxctl trash list' shows them")
    }
    try tellInstalls(console)
  }

  private func tellParts(_ console: Console) throws {
    let excerpt = ListExcerpt(plan.parts, all: listsAll) { part in
      [part.plan.creates.bytes, part.plan.replaces.bytes, part.plan.leaves.bytes].clampedSum
    }
    for part in excerpt.shown { try console.result(Self.line(part)) }
    if let remainder = excerpt.remainder { try console.result(remainder) }
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

  private func tellRemarks(damaged: [PathRemark], failed: [PathRemark], _ console: Console) {
    for remark in damaged { console.warning("damaged: \(places.text(remark))") }
    for remark in failed { console.warning("not restored: \(places.text(remark))") }
  }

  private func tellNotes(spared: [PathRemark], isDone: Bool, _ console: Console) {
    for remark in spared { console.note("not deleted: \(places.text(remark))") }
    for remark in plan.left { console.note("skipped: \(remark.path): \(remark.remark)") }
    for group in plan.leftGroups {
      console.note(
        "skipped: \(group.path): \(group.reason); '--with-groups' includes it")
    }
    for remark in plan.remarks(\.relinked) { console.note("\(remark.path): \(remark.remark)") }
    for remark in plan.remarks(\.foreignLinks) {
      console.note("\(remark.path): \(remark.remark), outside the snapshot's containers")
    }
    console.note(excludedData: plan.excludedData)
  }

  private func tellInstalls(_ console: Console) throws {
    if plan.installCommands.isEmpty { return }
    try console.result("to install the apps:")
    for command in plan.installCommands { try console.result("  " + command) }
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

extension LeftGroup {
  /// The reason why it is skipped.
  var reason: String {
    if sharers.isEmpty { return "its owner is only guessed" }
    return "it is shared by " + sharers.map { "'\(ByteString($0))'" }.joined(separator: ", ")
  }
}
