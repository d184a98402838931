internal import Backup
internal import SandboxModel
internal import SystemIO

extension MetricsText {
  /// Adds the metrics of the devices of a backup.
  mutating func add(_ results: [BackupCommand.DeviceResult]) {
    add(
      "device_exit_code", help: "Exit status for this device alone.",
      samples: results.map { (Self.labels($0), "\($0.status.rawValue)") })
    for (name, help, value) in Self.perDevice {
      let samples = results.compactMap { result in
        result.done.map { (Self.labels(result), "\(value($0.report))") }
      }
      add(name, help: help, samples: samples)
    }
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
}
