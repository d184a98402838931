internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// The snapshot that an operation makes of the data that it is about to change. If it fails,
/// nothing is changed.
struct SafetySnapshot {
  private let repository: Repository
  private let saving: BackupRequest
  private let hint: String

  /// Creates a safety snapshot.
  ///
  /// - Parameters:
  ///   - saving: the options of the backup.
  ///   - hint: how to run the operation without a snapshot.
  init(in repository: Repository, _ saving: BackupRequest, hint: String) {
    self.repository = repository
    self.saving = saving
    self.hint = hint
  }

  /// Saves the entries of a scan.
  ///
  /// - Throws: `LifecycleError`, also if an entry that the policy includes could not be read.
  func save(_ scan: DeviceScan, reason: Reason, scope: Scope) throws -> StoredSnapshot? {
    var request = saving
    request.reason = reason
    request.scope = scope
    request.isPart = true
    request.skipsUnchanged = false
    let report: BackupReport
    do {
      report = try BackupOperation(BackupPlan.make(scan), to: repository, request).run()
    } catch {
      throw notSaved(error)
    }
    guard let missing = report.unreadable.first else { return report.snapshot }
    throw failure(.failed, "'\(missing.path)': \(missing.remark)")
  }

  private func notSaved(_ error: any Error) -> any Error {
    if let error = error as? LifecycleError {
      return error.kind == .interrupted ? error : failure(error.kind, error.description)
    }
    guard let error = error as? StoreError else { return error }
    return failure(.failed, error.description)
  }

  private func failure(_ kind: LifecycleError.Kind, _ reason: String) -> LifecycleError {
    LifecycleError(
      kind, "cannot save the current data before it is replaced: \(reason)", hint: hint)
  }
}
