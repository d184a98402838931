internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// What a person is told of a restore into a device.
struct DeviceRestoreText {
  private let plan: DeviceRestorePlan

  init(_ plan: DeviceRestorePlan) { self.plan = plan }

  /// Says what would be done: each container with where it comes to, what is replaced and removed by
  /// name, and all in numbers.
  func tell(_ console: Console, _ needs: [VolumeNeed]) throws {
    for part in plan.parts { try console.result(Self.line(part)) }
    for part in plan.parts {
      for path in part.replacedPaths { try console.result("replace  \(path)") }
      for path in part.deletedPaths { try console.result("delete   \(path)") }
      for path in part.displacedPaths { try console.result("move     \(path)") }
    }
    tellRemarks(damaged: plan.damaged, failed: plan.remarks(\.blocked), console)
    tellNotes(spared: plan.remarks(\.spared), isDone: false, console)
    for process in plan.runningProcesses() {
      let end =
        plan.request.isForced
        ? "'--force' restores all the same" : "without '--force' nothing would be restored"
      console.warning("\(process.text): \(end)")
    }
    console.warn(ofTooMuch: needs)
    try console.result("would restore \(plan.total(\.creates).text)")
    try console.result("would replace \(plan.total(\.replaces).text)")
    try console.result("would leave \(plan.total(\.leaves).text)")
    if plan.request.deletes { try console.result("would delete \(plan.total(\.deletes).text)") }
    try tellInstalls(console)
  }

  /// Says what was done, and what was not.
  func tell(_ report: DeviceRestoreReport, _ console: Console, quiet: Bool) throws {
    tellRemarks(damaged: report.damaged, failed: report.remarks(\.failed), console)
    if quiet { return }
    if let saved = report.saved {
      let id = saved.id.hex.prefix(8)
      try console.result(
        "saved what was there: snapshot \(id); 'sandboxctl restore \(id) --in-place' brings it back"
      )
    }
    for part in plan.parts { try console.result(Self.line(part)) }
    tellNotes(spared: report.remarks(\.spared), isDone: true, console)
    let id = plan.snapshot.id.hex.prefix(8)
    try console.result(
      "restored \(report.total(\.restored).text) from snapshot \(id) to "
        + "\(plan.request.device.root) in \(Times.duration(report.seconds))")
    try console.result("left \(report.total(\.left).text)")
    if plan.request.deletes { try console.result("deleted \(report.total(\.deleted).text)") }
    if let trash = report.trash {
      try console.result(
        "what gave way is in the trash: \(trash); 'sandboxctl trash list' shows it")
    }
    try tellInstalls(console)
  }

  private static func line(_ part: PlannedPart) -> String {
    let word =
      switch part.fate {
      case .merge: "merge"
      case .make: "make"
      case .harbor: "keep until the app is installed"
      }
    return "\(word)  \(part.path) -> \(part.target)"
  }

  private func tellRemarks(damaged: [PathRemark], failed: [PathRemark], _ console: Console) {
    for remark in damaged { console.warning("damaged: \(remark.path): \(remark.remark)") }
    for remark in failed { console.warning("not restored: \(remark.path): \(remark.remark)") }
  }

  private func tellNotes(spared: [PathRemark], isDone: Bool, _ console: Console) {
    for remark in spared { console.note("not removed: \(remark.path): \(remark.remark)") }
    for remark in plan.left { console.note("left as it is: \(remark.path): \(remark.remark)") }
    for group in plan.leftGroups {
      console.note(
        "left as it is: \(group.path): \(group.reason); '--with-groups' restores it, too")
    }
    for remark in plan.remarks(\.relinked) { console.note("\(remark.path): \(remark.remark)") }
    for remark in plan.remarks(\.foreignLinks) {
      console.note("\(remark.path): \(remark.remark), which is in no container of the snapshot")
    }
    if !plan.notHeld.isEmpty {
      let sums = plan.notHeld.reduce(into: (files: 0, bytes: UInt64(0))) {
        $0.files = Int(clamping: UInt64($0.files) &+ $1.files)
        $0.bytes.addClamping($1.bytes)
      }
      console.note(
        "the snapshot does not hold what its policy left out: \(Sizes.text(sums.bytes)) in "
          + "\(Sizes.count(sums.files, "file")); 'sandboxctl snapshots show' lists it")
    }
  }

  private func tellInstalls(_ console: Console) throws {
    if plan.installCommands.isEmpty { return }
    try console.result("to install the apps:")
    for command in plan.installCommands { try console.result("  " + command) }
  }
}

extension PlannedPart {
  /// The logical paths that give way.
  var replacedPaths: [ByteString] { plan.replacedPaths.map { path.appending($0) } }

  /// The logical paths that are to be removed.
  var deletedPaths: [ByteString] { plan.deletedPaths.map { path.appending($0) } }

  /// The logical paths of what is moved away with databases that give way.
  var displacedPaths: [ByteString] { plan.displaced.map { path.appending($0.path) } }
}

extension LeftGroup {
  /// Why it stays, for a person.
  var reason: String {
    if sharers.isEmpty { return "whose it is, is only guessed" }
    return "it is shared by " + sharers.map { "'\(ByteString($0))'" }.joined(separator: ", ")
  }
}
