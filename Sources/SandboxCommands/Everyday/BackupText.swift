internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// What a person is told of a backup: what was found, what is kept and left out of each app, what was
/// stored, and what to do next.
struct BackupText {
  private let plan: BackupPlan
  private let report: BackupReport?

  init(_ plan: BackupPlan, _ report: BackupReport?) {
    self.plan = plan
    self.report = report
  }

  func write(_ console: Console, isQuiet: Bool) throws {
    if !isQuiet {
      try console.result(heading)
      for line in table.lines { try console.result("  " + line) }
      try console.result(summary)
    }
    if !isQuiet { tellOfTheDevice(console) }
    guard let report else { return }
    for remark in report.unreadable {
      console.warning("not in the snapshot: \(remark.path): \(remark.remark)")
    }
    if !isQuiet {
      for remark in report.warnings { console.note("\(remark.path): \(remark.remark)") }
      for remark in report.remarks { console.note(remark) }
      if let id = report.snapshot?.id.hex.prefix(8) {
        try console.result("next: sandboxctl ls \(id)     sandboxctl restore \(id) --to DIR")
      }
    }
  }

  /// What a person has to know of the way to the data: links and mounts that were followed, and what
  /// is not as the platform makes it.
  private func tellOfTheDevice(_ console: Console) {
    for finding in plan.device.findings {
      switch finding.code {
      case .linkFollowed, .mountEntered, .danglingLink, .claimedTwice, .leftOut, .anotherLayout:
        console.note("\(finding.path): \(finding.reason)")
      default: break
      }
    }
  }

  private var heading: String {
    let device = plan.device
    let name = device.name ?? device.root
    let apps = device.layout == .folder ? "" : ": \(Sizes.count(device.apps.count, "app"))"
    return "device  \(name), \(device.layout.rawValue), policy \(plan.policy.name)\(apps)"
  }

  private var table: Table {
    var table = Table([
      (plan.device.layout == .folder ? "folder" : "app", .left), ("keeps", .right),
      ("leaves out", .left),
    ])
    for owner in plan.summaries {
      let left = owner.leftOut.filter { $0.totals.bytes > 0 }
        .map { "\(Sizes.text($0.totals.bytes)) \($0.dataClass.rawValue)" }
      table.add([
        Self.name(owner.path), Sizes.text(owner.kept.bytes), left.joined(separator: ", "),
      ])
    }
    return table
  }

  private static func name(_ path: ByteString) -> String {
    let parts = path.components
    guard parts.count == 2, parts[0] == "apps" else { return path.description }
    return parts[1].description
  }

  private var summary: String {
    guard let report else {
      return "would keep \(Sizes.text(plan.kept.bytes)) in "
        + "\(Sizes.count(plan.kept.files, "file")), leave out \(Sizes.text(plan.left.bytes))"
    }
    if report.isUnchanged { return "nothing changed since the last snapshot: none was made" }
    let id = report.snapshot.map { String($0.id.hex.prefix(8)) } ?? ""
    let isFirst = report.snapshot?.snapshot.parent == nil
    return "\(isFirst ? "first backup" : "backup"): \(Sizes.text(report.bytes)) in "
      + "\(Sizes.count(report.files, "file")) -> \(Sizes.text(report.storedBytes)) stored "
      + "in \(Times.duration(report.seconds))   snapshot \(id)"
  }
}
