internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// What a person is told of what becomes of an app: the same for all commands that install, replace and
/// remove apps.
struct AppChangeText {
  private let plan: AppChangePlan
  private let console: Console
  private let isQuiet: Bool

  init(_ plan: AppChangePlan, _ console: Console, isQuiet: Bool) {
    (self.plan, self.console, self.isQuiet) = (plan, console, isQuiet)
  }

  /// Says what would be done, and what forbids it.
  func tell(_ refusals: [Refusal]) throws {
    try head()
    try containers()
    try sums(isDone: false)
    if let bound = plan.snapshotBound {
      try console.result(
        "snapshot first: up to \(Sizes.text(bound.bytes)) in \(Sizes.count(bound.files, "file")), "
          + "less what the repository has of it")
    }
    for process in plan.runningProcesses() where !plan.isSimulated {
      let end =
        plan.request.isForced ? "'--force' goes on all the same" : "without '--force' it is refused"
      console.warning("\(process.text): \(end)")
    }
    for refusal in refusals {
      let hint = refusal.hint.map { "; \($0)" } ?? ""
      console.warning("it would be refused: \(refusal.reason)\(hint)")
    }
    for command in plan.commands { try console.result("to do it: \(command)") }
  }

  /// Says what was done.
  func report(_ report: AppChangeReport) throws {
    for remark in report.unplanned {
      console.warning("not in the plan: \(remark.path): \(remark.remark); it is in the trash")
    }
    for remark in report.failed { console.warning("not done: \(remark.path): \(remark.remark)") }
    if isQuiet { return }
    if let saved = report.saved {
      try console.result("saved what was there: snapshot \(saved.id.hex.prefix(8))")
    }
    try head()
    try containers()
    try sums(isDone: true)
    if let trash = report.trash {
      try console.result(
        "what gave way is in the trash: \(trash); 'sandboxctl trash list' shows it")
    }
    if plan.request.change == .uninstall, let saved = report.saved {
      try console.result(
        "'sandboxctl restore \(saved.id.hex.prefix(8)) --in-place' brings it back")
    }
    try console.result(
      "done in \(Times.duration(report.seconds)), the exchange in "
        + Times.duration(report.exchangeSeconds))
  }

  private func head() throws {
    let app = plan.request.app
    let before = plan.present.flatMap { $0.isInstalled ? text($0.version, $0.build) : nil }
    let after = plan.arriving.map { text($0.version, $0.build) }
    let versions = [before, after].compactMap { $0 }.joined(separator: " -> ")
    let way = plan.isSimulated ? " (told only: \(plan.device.layout.rawValue) does it itself)" : ""
    try console.result(
      "\(plan.request.change.rawValue)  \(app)\(versions.isEmpty ? "" : "  " + versions)\(way)")
  }

  private func text(_ version: ByteString?, _ build: ByteString?) -> String {
    let build = build.map { " (\($0))" } ?? ""
    return (version?.description ?? "?") + build
  }

  private func containers() throws {
    for container in plan.containers {
      let to = container.to.map { " -> \($0)" } ?? ""
      let place = container.fate == .keep ? "" : to
      try console.result("\(container.fate.rawValue)  \(container.path)\(place)")
      for path in container.paths where container.logical.kind != .bundle {
        try console.result(
          "  \(path.fate.words)  \(path.path)  \(path.dataClass.rawValue), "
            + "\(Sizes.count(path.totals.files, "file")), \(Sizes.text(path.totals.bytes))")
      }
      for move in container.moves {
        try console.result("  move  \(move.from) -> \(container.path.appending(move.inner))")
      }
      for item in container.returns {
        try console.result(
          "  comes back from the trash  \(container.path.appending(item.inner))  "
            + "\(item.dataClass.rawValue), \(Sizes.count(item.totals.files, "file")), "
            + Sizes.text(item.totals.bytes))
      }
      for remark in container.notMoved { console.note("\(remark.path): \(remark.remark)") }
      for link in container.links {
        try console.result("  link  \(link.path): \(link.before) -> \(link.after)")
      }
      for link in container.foreignLinks {
        console.note("\(link.path): \(link.remark), which is in no container that moves")
      }
    }
    for group in plan.restore?.leftGroups ?? [] {
      console.note(
        "left as it is: \(group.path): \(group.reason); '--with-groups' takes it along")
    }
    for note in plan.notes { console.note("\(note.path): \(note.remark)") }
  }

  private func sums(isDone: Bool) throws {
    let stays = isDone ? "stayed with the app" : "would stay with the app"
    try sum(plan.totals(.carried), stays)
    try sum(plan.totals(.atRisk), stays + ", which the platform does not promise")
    try sum(plan.totals(.replaced), isDone ? "was replaced" : "would be replaced")
    let goes = plan.isSimulated ? "would be removed" : "would go to the trash"
    try sum(plan.totals(.dropped), isDone ? "went to the trash" : goes)
    let back = isDone ? "came back" : "would come back"
    try sum(plan.totals(.restored), back + " of the snapshot")
    try sum(plan.returnTotals, back + " from the trash of the update")
    if plan.makesSnapshot {
      try sum(plan.notHeldTotals, "not held by the snapshot")
    }
  }

  private func sum(
    _ sums: [(dataClass: DataClass, totals: EntryTotals)], _ what: String
  ) throws {
    let sums = sums.filter { $0.totals.files > 0 }
    if sums.isEmpty { return }
    let all = sums.reduce(into: EntryTotals()) { $0.add($1.totals) }
    let parts = sums.map { "\($0.dataClass.rawValue) \(Sizes.text($0.totals.bytes))" }
    try console.result(
      "\(what): \(Sizes.text(all.bytes)) in \(Sizes.count(all.files, "file")) "
        + "(\(parts.joined(separator: ", ")))")
  }
}

extension PlannedPath.Fate {
  /// The word for a person.
  fileprivate var words: String {
    switch self {
    case .carried: "stays"
    case .atRisk: "stays, not promised"
    case .dropped: "goes"
    case .replaced: "is replaced"
    case .restored: "comes back"
    }
  }
}
