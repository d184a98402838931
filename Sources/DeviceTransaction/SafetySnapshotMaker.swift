package import ArchiveStore
package import DeviceScan
package import SystemIO

/// Makes the snapshot of the data that an operation is about to change. If it fails, nothing is
/// changed.
///
/// The operations on a device do not know how a backup is made; module Backup provides the closure.
package struct SafetySnapshotMaker {
  /// The scan to save, and the conditions of the backup.
  package struct Request {
    /// The entries to save.
    package let scan: DeviceScan
    package let reason: Reason
    package let scope: Scope
    /// The number of bytes that the operation writes afterwards on the volume of the repository.
    package let neededAfterwards: UInt64
  }

  private let repository: Repository
  private let make: (Request) throws -> (snapshot: StoredSnapshot?, missing: PathRemark?)

  /// Creates a maker.
  ///
  /// - Parameters:
  ///   - repository: the repository of the snapshot.
  ///   - make: makes the snapshot, and returns it with the first entry that it lacks or that may be
  ///     inconsistent in it.
  package init(
    in repository: Repository,
    _ make: @escaping (Request) throws -> (snapshot: StoredSnapshot?, missing: PathRemark?)
  ) {
    self.repository = repository
    self.make = make
  }

  /// Saves the entries of a scan. If the repository is on a volume of the device, the backup leaves
  /// room for what the operation writes there.
  ///
  /// - Parameters:
  ///   - hint: how to run the operation without a snapshot.
  ///   - room: the number of bytes that the operation writes on a volume, by its device number.
  /// - Throws: `OperationError`, for example if an entry that the policy includes could not be
  ///   read, or a database could only be read without its locks.
  package func save(
    _ scan: DeviceScan, reason: Reason, scope: Scope, hint: String, room: (UInt64) -> UInt64
  ) throws -> StoredSnapshot? {
    let volume = try repository.storage.space()?.device
    let request = Request(
      scan: scan, reason: reason, scope: scope, neededAfterwards: volume.map(room) ?? 0)
    let result: (snapshot: StoredSnapshot?, missing: PathRemark?)
    do {
      result = try make(request)
    } catch {
      throw Self.notSaved(error, hint: hint)
    }
    guard let missing = result.missing else { return result.snapshot }
    throw Self.failure(.failed, reason: "'\(missing.path)': \(missing.remark)", hint: hint)
  }

  private static func notSaved(_ error: any Error, hint: String) -> any Error {
    if let error = error as? OperationError {
      if error.kind == .interrupted {
        return OperationError(
          .interrupted, "the snapshot of the current data was interrupted: nothing was changed",
          hint: error.hint)
      }
      return failure(error.kind, reason: error.description, hint: hint)
    }
    guard let error = error as? StoreError else { return error }
    return failure(.failed, reason: error.description, hint: hint)
  }

  private static func failure(
    _ kind: OperationError.Kind, reason: String, hint: String
  ) -> OperationError {
    OperationError(
      kind, code: .safetySnapshotFailed, "save the current data before it is replaced",
      reason: reason, hint: hint)
  }
}
