internal import Backup
internal import SandboxModel
internal import SystemIO

/// The metrics of a run of `backup` in text exposition format 0.0.4, for Prometheus' textfile
/// collector. docs/metrics.md lists them.
struct BackupMetrics {
  private let file: ByteString
  private let start = Host.monotonicSeconds()

  init(file: ByteString) { self.file = file }

  private static let prefix = "sandboxctl_backup_"
  private static let lastSuccess = prefix + "last_success_timestamp_seconds"

  /// Writes the file atomically. An error is only a warning, since it does not affect the backup.
  func write(_ results: [BackupCommand.DeviceResult], status: ExitStatus, _ console: Console) {
    guard let name = file.lastComponent else { return }
    do {
      let above = ByteString(file.bytes.dropLast(name.count))
      let directory = try Directory.open(path: above.isEmpty ? "." : above)
      let old = try Self.old(name, in: directory)
      let text = text(results, status, now: Host.now(), old: old)
      try AtomicFile.write(Array(text.utf8), as: name, in: directory, permissions: 0o644)
    } catch {
      console.warning("cannot write the metrics: \(error)")
    }
  }

  /// Returns the text of the existing file, empty if there is none.
  ///
  /// - Throws: `OperationError` for a file that does not contain these metrics, which must not be
  ///   overwritten.
  private static func old(_ name: ByteString, in directory: borrowing Directory) throws -> String {
    guard let status = try directory.statusIfPresent(name) else { return "" }
    let bytes = status.kind == .file ? try directory.file(name).readAll(limit: 1 << 20) : nil
    let text = bytes.map { String(decoding: $0, as: UTF8.self) }
    guard let text, text.isEmpty || text.hasPrefix("# HELP \(prefix)") else {
      throw OperationError(
        .failed, code: .notOurFile,
        "'\(directory.path.appending(name))' is not a file of these metrics")
    }
    return text
  }

  private func text(
    _ results: [BackupCommand.DeviceResult], _ status: ExitStatus, now: Timestamp, old: String
  ) -> String {
    var text = Text(prefix: Self.prefix)
    text.add(
      "last_run_timestamp_seconds", help: "Unix time of the end of the last run.",
      samples: [([], Self.seconds(now))])
    let isSuccess = status == .done || status == .nothingToDo
    let earlier = old.split(separator: "\n").last { $0.hasPrefix(Self.lastSuccess + " ") }
      .flatMap { Double($0.dropFirst(Self.lastSuccess.count + 1)) }
      .flatMap { $0.isFinite && $0 >= 0 ? "\($0)" : nil }
    if let success = isSuccess ? Self.seconds(now) : earlier {
      text.add(
        "last_success_timestamp_seconds",
        help: "Unix time of the end of the last run that stored everything.",
        samples: [([], success)])
    }
    text.add(
      "last_exit_code", help: "Exit status of the last run.",
      samples: [([], "\(status.rawValue)")])
    text.add(
      "last_duration_seconds", help: "Duration of the last run in seconds.",
      samples: [([], "\(Host.monotonicSeconds() - start)")])
    text.add(
      "device_exit_code", help: "Exit status for this device alone.",
      samples: results.map { (Self.labels($0), "\($0.status.rawValue)") })
    for (name, help, value) in Self.perDevice {
      let samples = results.compactMap { result in
        result.done.map { (Self.labels(result), "\(value($0.report))") }
      }
      text.add(name, help: help, samples: samples)
    }
    return text.text
  }

  private typealias Value = @Sendable (BackupReport) -> UInt64

  private static let perDevice: [(String, String, Value)] = [
    ("device_files", "Files in the snapshot.", { UInt64($0.files) }),
    ("device_bytes", "Bytes of the files in the snapshot.", { $0.bytes }),
    ("device_stored_bytes", "Bytes added to the repository.", { $0.storedBytes }),
    (
      "device_failures", "Entries that the policy keeps and that could not be read.",
      { UInt64($0.unreadable.count) }
    ),
    (
      "device_warnings", "Entries stored with a warning.",
      { UInt64($0.warnings.count) }
    ),
    (
      "device_databases_as_they_stood",
      "Databases stored without locks, because they were in use the whole time.",
      { UInt64($0.databasesUnlocked.count) }
    ),
  ]

  private static func labels(_ result: BackupCommand.DeviceResult) -> [(String, String)] {
    let layout = result.done?.plan.device.layout.rawValue ?? ""
    return [("root", result.root.utf8 ?? result.root.description), ("layout", layout)]
  }

  private static func seconds(_ time: Timestamp) -> String {
    let fraction = String(time.nanoseconds / 1_000_000)
    return "\(time.seconds)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }
}

extension BackupMetrics {
  /// Metrics in the text exposition format, each with its help, type and samples.
  private struct Text {
    let prefix: String
    private(set) var text = ""

    init(prefix: String) { self.prefix = prefix }

    /// Adds a gauge, unless there are no samples.
    mutating func add(
      _ name: String, help: String, samples: [(labels: [(String, String)], value: String)]
    ) {
      if samples.isEmpty { return }
      text += "# HELP \(prefix)\(name) \(help)\n# TYPE \(prefix)\(name) gauge\n"
      for sample in samples {
        let labels = sample.labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }
        let shown = labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
        text += "\(prefix)\(name)\(shown) \(sample.value)\n"
      }
    }

    private static func escaped(_ text: String) -> String {
      text.unicodeScalars.reduce(into: "") { result, scalar in
        switch scalar {
        case "\\": result += "\\\\"
        case "\"": result += "\\\""
        case "\n": result += "\\n"
        default: result.unicodeScalars.append(scalar)
        }
      }
    }
  }
}
