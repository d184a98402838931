internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The text output of the commands that install, replace and remove apps.
struct AppChangeText {
  private let plan: AppChangePlan
  private let console: Console
  private let isQuiet: Bool

  init(_ plan: AppChangePlan, _ console: Console, isQuiet: Bool) {
    (self.plan, self.console, self.isQuiet) = (plan, console, isQuiet)
  }

  /// Prints the planned changes and the reasons to refuse them.
  func tell(_ refusals: [Refusal]) throws {
    try head()
    try containers()
    try sums(isDone: false)
    if let bound = plan.snapshotBound {
      try console.result(
        "snapshot first: up to \(Sizes.text(bound.bytes)) in \(Sizes.count(bound.files, "file")), "
          + "minus data already in the repository")
    }
    for process in plan.runningProcesses() where !plan.isSimulated {
      let end = plan.request.isForced ? "'--force' proceeds anyway" : "refused without '--force'"
      console.warning("\(process.text): \(end)")
    }
    for refusal in refusals {
      let hint = refusal.hint.map { "; \($0)" } ?? ""
      console.warning("would be refused: \(refusal.reason)\(hint)")
    }
    for command in plan.commands { try console.result("run: \(command)") }
  }

  /// Prints the changes made.
  func report(_ report: AppChangeReport) throws {
    for remark in report.unplanned {
      console.warning("not in the plan: \(remark.path): \(remark.remark); moved to the trash")
    }
    for remark in report.failed { console.warning("not done: \(remark.path): \(remark.remark)") }
    if isQuiet { return }
    if let saved = report.saved {
      try console.result("saved the previous state: snapshot \(saved.id.hex.prefix(8))")
    }
    try head()
    try containers()
    try sums(isDone: true)
    if let trash = report.trash {
      try console.result(
        "replaced and removed files were moved to trash \(trash); "
          + "'sandboxctl trash list' shows them")
    }
    if plan.request.change == .uninstall, let saved = report.saved {
      try console.result(
        "'sandboxctl restore \(saved.id.hex.prefix(8)) --in-place' restores it")
    }
    try console.result(
      "done in \(Times.duration(report.seconds)), exchange in "
        + Times.duration(report.exchangeSeconds))
  }

  private func head() throws {
    let app = plan.request.app
    let before = plan.present.flatMap { $0.isInstalled ? text($0.version, $0.build) : nil }
    let after = plan.arriving.map { text($0.version, $0.build) }
    let versions = [before, after].compactMap { $0 }.joined(separator: " -> ")
    let way =
      plan.isSimulated ? " (simulated: \(plan.device.layout.rawValue) does this itself)" : ""
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
      let place = container.action == .keep ? "" : to
      try console.result("\(container.action.rawValue)  \(container.path)\(place)")
      for path in container.paths where container.logical.kind != .bundle {
        try console.result(
          "  \(path.outcome.words)  \(path.path)  \(path.dataClass.rawValue), "
            + "\(Sizes.count(path.totals.files, "file")), \(Sizes.text(path.totals.bytes))")
      }
      for move in container.moves {
        try console.result("  move  \(move.from) -> \(container.path.appending(move.inner))")
      }
      for item in container.returns {
        try console.result(
          "  restored from the trash  \(container.path.appending(item.inner))  "
            + "\(item.dataClass.rawValue), \(Sizes.count(item.totals.files, "file")), "
            + Sizes.text(item.totals.bytes))
      }
      for remark in container.notMoved { console.note("\(remark.path): \(remark.remark)") }
      for link in container.links {
        try console.result("  link  \(link.path): \(link.before) -> \(link.after)")
      }
      for link in container.foreignLinks {
        console.note("\(link.path): \(link.remark), outside the moved containers")
      }
    }
    for group in plan.restore?.leftGroups ?? [] {
      console.note(
        "skipped: \(group.path): \(group.reason); '--with-groups' includes it")
    }
    for note in plan.notes { console.note("\(note.path): \(note.remark)") }
  }

  private func sums(isDone: Bool) throws {
    let stays = isDone ? "kept" : "would be kept"
    try sum(plan.totals(.carried), stays)
    try sum(plan.totals(.atRisk), stays + ", not guaranteed by the platform")
    try sum(plan.totals(.replaced), isDone ? "replaced" : "would be replaced")
    let goes = plan.isSimulated ? "would be removed" : "would be moved to the trash"
    try sum(plan.totals(.dropped), isDone ? "moved to the trash" : goes)
    let back = isDone ? "restored" : "would be restored"
    try sum(plan.totals(.restored), back + " from the snapshot")
    try sum(plan.returnTotals, back + " from the trash of the update")
    if plan.makesSnapshot {
      try sum(plan.notHeldTotals, "not in the snapshot")
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

extension DataOutcome {
  /// The word in text output.
  fileprivate var words: String {
    switch self {
    case .carried: "kept"
    case .atRisk: "kept, not guaranteed"
    case .dropped: "dropped"
    case .replaced: "replaced"
    case .restored: "restored"
    }
  }
}
