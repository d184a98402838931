internal import ArchiveStore
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// What a run of `backup` came to, as a file for Prometheus' textfile collector: text exposition format
/// 0.0.4, written whole or not at all. docs/metrics.md lists the metrics.
struct BackupMetrics {
  private let file: ByteString
  private let start = Host.monotonicSeconds()

  init(file: ByteString) { self.file = file }

  private static let prefix = "sandboxctl_backup_"
  private static let lastSuccess = prefix + "last_success_timestamp_seconds"

  /// Writes the file. What keeps it from being written is a warning: the backup is what it is.
  func write(_ results: [DeviceBackup.Result], _ status: ExitStatus, _ console: Console) {
    guard let name = file.lastComponent else { return }
    do {
      let above = ByteString(file.bytes.dropLast(name.count))
      let directory = try Directory.open(path: above.isEmpty ? "." : above)
      let old = try Self.old(name, in: directory)
      let text = text(results, status, now: Host.now(), old: old)
      try AtomicFile.write(Array(text.utf8), as: name, in: directory, permissions: 0o644)
    } catch let error as SystemError {
      console.warning("the metrics are not written: \(error)")
    } catch {
      console.warning("the metrics are not written: \(error)")
    }
  }

  /// The file of the last run, empty where there is none. What is no such file is not overwritten.
  private static func old(_ name: ByteString, in directory: borrowing Directory) throws -> String {
    guard let status = try directory.statusIfPresent(name) else { return "" }
    let bytes = status.kind == .file ? try directory.file(name).readAll(limit: 1 << 20) : nil
    let text = bytes.map { String(decoding: $0, as: UTF8.self) }
    guard let text, text.isEmpty || text.hasPrefix("# HELP \(prefix)") else {
      throw LifecycleError(.failed, "'\(directory.path.appending(name))' holds something else")
    }
    return text
  }

  private func text(
    _ results: [DeviceBackup.Result], _ status: ExitStatus, now: Timestamp, old: String
  ) -> String {
    var text = MetricsText(prefix: Self.prefix)
    text.add("last_run_timestamp_seconds", "When the last run ended.", [([], Self.seconds(now))])
    let isSuccess = status == .done || status == .nothingToDo
    let earlier = old.split(separator: "\n").last { $0.hasPrefix(Self.lastSuccess + " ") }
      .flatMap { Double($0.dropFirst(Self.lastSuccess.count + 1)) }
      .flatMap { $0.isFinite && $0 >= 0 ? "\($0)" : nil }
    if let success = isSuccess ? Self.seconds(now) : earlier {
      text.add(
        "last_success_timestamp_seconds", "When the last run that stored everything ended.",
        [([], success)])
    }
    text.add(
      "last_exit_code", "The exit status of the last run.", [([], "\(status.rawValue)")])
    text.add(
      "last_duration_seconds", "How long the last run took.",
      [([], "\(Host.monotonicSeconds() - start)")])
    text.add(
      "device_exit_code", "What the exit status for the device alone would be.",
      results.map { (Self.labels($0), "\($0.status.rawValue)") })
    for (name, help, value) in Self.perDevice {
      let samples = results.compactMap { result in
        result.done.map { (Self.labels(result), "\(value($0.report))") }
      }
      text.add(name, help, samples)
    }
    return text.text
  }

  private typealias Value = @Sendable (BackupReport) -> UInt64

  private static let perDevice: [(String, String, Value)] = [
    ("device_files", "Files in the snapshot.", { UInt64($0.files) }),
    ("device_bytes", "Bytes of the files in the snapshot.", { $0.bytes }),
    ("device_stored_bytes", "Bytes that were added to the repository.", { $0.storedBytes }),
    (
      "device_failures", "Entries that the policy keeps and that could not be read.",
      { UInt64($0.unreadable.count) }
    ),
    (
      "device_warnings", "Entries that are in the snapshot with a remark.",
      { UInt64($0.warnings.count) }
    ),
    (
      "device_databases_as_they_stood", "Databases that were in use all the time.",
      { UInt64($0.databasesAsTheyStood.count) }
    ),
  ]

  private static func labels(_ result: DeviceBackup.Result) -> [(String, String)] {
    let layout = result.done?.plan.device.layout.rawValue ?? ""
    return [("root", result.root.utf8 ?? result.root.description), ("layout", layout)]
  }

  private static func seconds(_ time: Timestamp) -> String {
    let fraction = String(time.nanoseconds / 1_000_000)
    return "\(time.seconds)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }
}

/// Metrics in the text exposition format: for each its help, its type and its samples.
private struct MetricsText {
  let prefix: String
  private(set) var text = ""

  init(prefix: String) { self.prefix = prefix }

  /// Adds a gauge; without samples it is left out.
  mutating func add(
    _ name: String, _ help: String, _ samples: [(labels: [(String, String)], value: String)]
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
