internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// The commands that somebody who has just made a backup may want next.
struct NextSteps {
  /// "next: sandboxctl restore latest --app firefox --to look     sandboxctl ls latest"
  let line: String

  /// Nil when no snapshot was made. `suffix` is what each command needs besides; `heads` are the
  /// repository's snapshots: `latest` is suggested only where it is sure to be the one just made.
  init?(
    _ done: [(plan: BackupPlan, report: BackupReport)], among heads: [SnapshotHead], suffix: String
  ) {
    let made = done.filter { $0.report.snapshot != nil }
    guard let first = made.first, let stored = first.report.snapshot else { return nil }
    // 'latest' is a whole device's, and with snapshots of several devices it comes with a warning.
    let isOnlyDevice = heads.allSatisfy { $0.device.identity == stored.snapshot.device.identity }
    let isLatest = made.count == 1 && stored.snapshot.scope == .device && isOnlyDevice
    let name = isLatest ? "latest" : String(stored.id.hex.prefix(8))
    let app = Self.app(first.plan, in: stored.snapshot)
    let part = app.map { " --app \(ShellWord.text($0))" } ?? ""
    let commands = ["restore \(name)\(part) --to look\(suffix)", "ls \(name)\(suffix)"]
    line = "next: " + commands.map { "sandboxctl \($0)" }.joined(separator: "     ")
  }

  /// The shortest name of the first app of which something is kept.
  private static func app(_ plan: BackupPlan, in snapshot: Snapshot) -> String? {
    let kept = plan.summaries.filter { $0.kept.files > 0 }.map(\.path)
    return snapshot.apps.first { app in
      kept.contains(ByteString("apps").appending(ByteString(app.identifier)))
    }
    .map(snapshot.shortestName)
  }
}

extension Snapshot {
  /// The shortest of an app's names by which it alone is meant, in small letters where that makes it
  /// none less; the identifier where nothing shorter is typed as easily.
  func shortestName(of app: AppRecord) -> String {
    let last = app.identifier.split(separator: ".").last.map(String.init)
    let names = [last, app.name].compactMap { $0?.lowercased() }.filter { name in
      ShellWord.text(name) == name && !name.hasPrefix("-")
        && (try? self.app(ByteString(name)))?.identifier == app.identifier
    }
    let shorter = names.filter { $0.utf8.count < app.identifier.utf8.count }
    return shorter.min { $0.utf8.count < $1.utf8.count } ?? app.identifier
  }
}
