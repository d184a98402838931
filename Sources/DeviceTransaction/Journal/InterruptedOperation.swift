package import SystemIO

/// An operation that was interrupted, as recorded in its journal.
package struct InterruptedOperation: Sendable {
  package let record: JournalRecord
  /// The owner of the journal.
  let writer: UInt32

  /// The operation's ID.
  package var id: String { record.id }
  /// The kind of the operation, for example `restore`.
  package var operation: String { record.operation }
  /// The start time.
  package var time: Timestamp { record.time }
  /// The logical path of the container that was being changed.
  package var container: ByteString { record.containers[record.currentContainer] }
  /// The containers that the operation had not reached.
  package var notBegun: [ByteString] {
    Array(record.containers.dropFirst(record.currentContainer + 1))
  }
  /// Whether everything was staged, so that the operation can be finished. Otherwise it is rolled
  /// back.
  package var canBeFinished: Bool { record.state == .moving }

  /// Returns the interrupted operations of a device, oldest first. Changes nothing.
  ///
  /// - Throws: `failed` if the journal cannot be read.
  package static func all(on root: ByteString) throws(OperationError) -> [InterruptedOperation] {
    var found: [InterruptedOperation] = []
    for (path, record, writer) in try records(on: root) {
      guard let record, JournalRecord.isID(ByteString(record.id)),
        OperationJournal.file(record.id) == path.lastComponent
      else {
        throw OperationError(
          .failed, code: .journalDamaged,
          "read the journal", subject: path,
          reason: "it is damaged or was written by a later version",
          hint: "if it is damaged, remove it: no file is incomplete, and replaced files are in "
            + "the trash")
      }
      found.append(InterruptedOperation(record: record.located(at: root), writer: writer))
    }
    return found.sorted { ($0.time, $0.id) < ($1.time, $1.id) }
  }

  /// Whether the journal is unchanged. Another process may have recovered the operation since it
  /// was read, so call this with the locks on its apps held.
  func isPending(on root: ByteString) throws(OperationError) -> Bool {
    do throws(SystemError) {
      guard let directory = try ControlDirectory.open(ControlDirectory.journal, root: root),
        let file = try ControlDirectory.file(OperationJournal.file(record.id), in: directory)
      else { return false }
      return try JournalRecord.read(file)?.located(at: root) == record
    } catch { throw OperationError(error) }
  }

  /// Returns the journals of a device whose operations no longer run, with a nil record for a
  /// journal that cannot be parsed.
  private static func records(
    on root: ByteString
  ) throws(OperationError) -> [(path: ByteString, record: JournalRecord?, writer: UInt32)] {
    do throws(SystemError) {
      guard let directory = try ControlDirectory.open(ControlDirectory.journal, root: root) else {
        return []
      }
      var found: [(ByteString, JournalRecord?, UInt32)] = []
      for name in try directory.names() {
        guard let id = OperationJournal.id(name) else { continue }
        if try FileLock.isHeld(OperationJournal.lock(id), in: directory) { continue }
        // It may have ended since the directory was listed.
        guard let file = try ControlDirectory.file(name, in: directory) else { continue }
        let writer = try file.status().user
        found.append((directory.path.appending(name), try JournalRecord.read(file), writer))
      }
      return found
    } catch { throw failure(error, on: root) }
  }

  /// Returns the error for a journal that cannot be read. The journal of another user stays that
  /// user's in the device of this one: this user cannot recover the operation.
  private static func failure(_ error: SystemError, on root: ByteString) -> OperationError {
    guard error.operation == .open, error.isRefused, let name = error.path.lastComponent,
      OperationJournal.id(name) != nil,
      let directory = try? ControlDirectory.open(ControlDirectory.journal, root: root),
      let writer = try? directory.status(name).user, writer != Host.userID
    else { return OperationError(error) }
    let user = writer == 0 ? "root" : "the user with the ID \(writer)"
    return OperationError(
      .failed, code: error.code, "read the journal", subject: error.path,
      reason: "an operation of \(user) was interrupted, and only \(user) can recover it",
      hint: "run 'sandboxctl recover' on this device as \(user)")
  }
}
