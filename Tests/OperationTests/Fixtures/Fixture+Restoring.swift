import ArchiveStore
import Backup
import Restore
import SystemIO
import TestSupport

extension Fixture {
  /// Restores a path of a snapshot into an existing directory. Returns the report.
  func merge(
    _ report: BackupReport, _ path: ByteString = "folders/tree", into name: ByteString,
    _ mode: OverwriteMode, deletes: Bool = false, protected: Set<FileIdentity> = [],
    threads: Int = 2
  ) throws -> RestoreReport {
    let plan = try plan(
      report, path, into: name, mode, deletes: deletes, protected: protected)
    return try RestoreOperation(plan, from: repository.beginReading(), threads: threads).run()
  }

  /// Plans to restore a path of a snapshot into an existing directory.
  func plan(
    _ report: BackupReport, _ path: ByteString = "folders/tree", into name: ByteString,
    _ mode: OverwriteMode, deletes: Bool = false, protected: Set<FileIdentity> = []
  ) throws -> RestorePlan {
    guard let snapshot = report.snapshot else { throw Missing() }
    let request = RestoreRequest(
      path: path, target: directory.path(name), overwrite: mode, deletes: deletes,
      protected: protected)
    return try RestorePlan.make(snapshot, request, from: repository.beginReading())
  }

  /// All entries below a path of the fixture's directory.
  func records(_ path: ByteString) throws -> [ByteString: TreeRecord] {
    try TreeRecord.all(in: directory, path)
  }

  /// Copies a directory with all its metadata.
  func copy(_ from: String, to name: String) throws {
    let outcome = try Program.run("cp", ["-a", from, name], in: directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// Sets the modification time of a file or directory, in seconds of 2001.
  func setTime(_ path: ByteString, _ seconds: Int64) throws {
    let parts = path.components
    let above = parts.dropLast().reduce(directory.path) { $0.appending($1) }
    let time = Timestamp(seconds: 1_000_000_000 + seconds)
    try Directory.open(path: above).setModified(time, of: parts.last ?? "")
  }
}

extension RestorePlan {
  /// Plans a restore of a path of a snapshot to a new or empty directory.
  static func make(
    _ snapshot: StoredSnapshot, path: ByteString, to target: ByteString,
    from reader: RepositoryReader
  ) throws -> RestorePlan {
    try make(snapshot, RestoreRequest(path: path, target: target), from: reader)
  }
}

extension RestoreReport {
  /// Whether everything is restored as it was stored, except for owners.
  var isComplete: Bool { damaged.isEmpty && failed.isEmpty }
}
