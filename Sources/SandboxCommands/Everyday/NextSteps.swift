internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// The commands to suggest after a backup.
struct NextSteps {
  /// "next: sandboxctl restore latest --app firefox --to look     sandboxctl ls latest"
  let line: String

  /// Nil if no snapshot was made. `suffix` is added to each command; `heads` are the repository's
  /// snapshots: `latest` is suggested only if it names the snapshot just made.
  init?(
    _ done: [(plan: BackupPlan, report: BackupReport)], among heads: [SnapshotHead], suffix: String
  ) {
    let made = done.filter { $0.report.snapshot != nil }
    guard let first = made.first, let stored = first.report.snapshot else { return nil }
    // 'latest' names a snapshot of a whole device, and warns if there are several devices.
    let isOnlyDevice = heads.allSatisfy { $0.device.identity == stored.snapshot.device.identity }
    let isLatest = made.count == 1 && stored.snapshot.scope == .device && isOnlyDevice
    let name = isLatest ? "latest" : String(stored.id.hex.prefix(8))
    let app = Self.app(first.plan, in: stored.snapshot)
    let part = app.map { " --app \(ShellWord.text($0))" } ?? ""
    let commands = ["restore \(name)\(part) --to look\(suffix)", "ls \(name)\(suffix)"]
    line = "next: " + commands.map { "sandboxctl \($0)" }.joined(separator: "     ")
  }

  /// Returns the shortest name of the first app with kept data.
  private static func app(_ plan: BackupPlan, in snapshot: Snapshot) -> String? {
    let kept = plan.summaries.filter { $0.kept.files > 0 }.map(\.path)
    return snapshot.apps.first { app in
      kept.contains(ByteString("apps").appending(ByteString(app.identifier)))
    }
    .map(snapshot.shortestName)
  }
}

extension Snapshot {
  /// Returns the shortest name that identifies an app and needs no quotes in a shell, in lower
  /// case; otherwise its identifier.
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
