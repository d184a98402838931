internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// The commands that somebody who has just made a backup may want next.
struct NextSteps {
  /// "next: sandboxctl restore latest:firefox --to look     sandboxctl ls latest"
  let line: String

  /// Nil when no snapshot was made. `suffix` is what each command needs besides.
  init?(_ done: [(plan: BackupPlan, report: BackupReport)], suffix: String) {
    let made = done.filter { $0.report.snapshot != nil }
    guard let first = made.first, let snapshot = first.report.snapshot else { return nil }
    let name = made.count == 1 ? "latest" : String(snapshot.id.hex.prefix(8))
    let part = Self.app(first.plan).map { ":\($0)" } ?? ""
    let commands = ["restore \(name)\(part) --to look\(suffix)", "ls \(name)\(suffix)"]
    line = "next: " + commands.map { "sandboxctl \($0)" }.joined(separator: "     ")
  }

  /// The shortest name of the first app of which something is kept.
  private static func app(_ plan: BackupPlan) -> String? {
    let device = plan.device
    let kept = plan.summaries.filter { $0.kept.files > 0 }.map(\.path)
    guard
      let app = device.apps.first(where: {
        kept.contains(ByteString("apps").appending($0.identifier.bytes))
      })
    else { return nil }
    let short = app.identifier.lastComponent
    let isPlain = short.bytes.allSatisfy { byte in
      UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
        || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
    }
    guard isPlain, let text = short.utf8?.lowercased(),
      (try? device.app(ByteString(text)))?.identifier == app.identifier
    else { return app.identifier.description }
    return text
  }
}
