public import SystemIO

/// An operation that ended before its end, as its journal says.
public struct InterruptedOperation: Sendable {
  let record: JournalRecord

  /// The operation's name.
  public var id: String { record.id }
  /// What was being done: `restore`.
  public var operation: String { record.operation }
  /// When it began.
  public var time: Timestamp { record.time }
  /// The logical path of the container that was in hand.
  public var container: ByteString { record.containers[record.currentContainer] }
  /// The containers that it was about and had not begun with.
  public var notBegun: [ByteString] {
    Array(record.containers.dropFirst(record.currentContainer + 1))
  }
  /// Whether everything was staged, so that it can be finished; else it is taken back.
  public var canBeFinished: Bool { record.state == .moving }

  /// Those of a device, the oldest first. Nothing is changed there.
  ///
  /// - Throws: `failed` when the journal cannot be looked at.
  public static func all(on root: ByteString) throws(LifecycleError) -> [InterruptedOperation] {
    var found: [InterruptedOperation] = []
    for (path, record) in try records(on: root) {
      guard let record, JournalRecord.isID(ByteString(record.id)),
        OperationJournal.file(record.id) == path.lastComponent
      else {
        throw LifecycleError(
          .failed,
          "cannot read the journal '\(path)': it is damaged, or of a later version of this program",
          hint: "if it is damaged, remove it: no file is torn, and what gave way is in the trash")
      }
      found.append(InterruptedOperation(record: record))
    }
    return found.sorted { ($0.time, $0.id) < ($1.time, $1.id) }
  }

  /// Whether its journal still says the same. Another run may have recovered it since it was read: to
  /// be asked when its apps are locked.
  func isPending(on root: ByteString) throws(LifecycleError) -> Bool {
    do throws(SystemError) {
      guard let directory = try ControlDirectory.open(ControlDirectory.journal, root: root),
        let file = try ControlDirectory.file(OperationJournal.file(record.id), in: directory)
      else { return false }
      return try JournalRecord.read(file) == record
    } catch { throw LifecycleError(error) }
  }

  /// The journals of a device whose operations live no more; nil for one that cannot be understood.
  private static func records(
    on root: ByteString
  ) throws(LifecycleError) -> [(path: ByteString, record: JournalRecord?)] {
    do throws(SystemError) {
      guard let directory = try ControlDirectory.open(ControlDirectory.journal, root: root) else {
        return []
      }
      var found: [(ByteString, JournalRecord?)] = []
      for name in try directory.names() {
        guard let id = OperationJournal.id(name) else { continue }
        if try FileLock.isHeld(OperationJournal.lock(id), in: directory) { continue }
        // It may have ended between two looks.
        guard let file = try ControlDirectory.file(name, in: directory) else { continue }
        found.append((directory.path.appending(name), try JournalRecord.read(file)))
      }
      return found
    } catch { throw LifecycleError(error) }
  }
}
