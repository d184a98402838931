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
  public var container: ByteString { record.containers[record.inHand] }
  /// The containers that it was about and had not begun with.
  public var notBegun: [ByteString] { Array(record.containers.dropFirst(record.inHand + 1)) }
  /// Whether everything was staged, so that it can be finished; else it is taken back.
  public var canBeFinished: Bool { record.state == .moving }

  /// Those of a device, the oldest first. Nothing is changed there.
  ///
  /// - Throws: `failed` when the journal cannot be looked at.
  public static func all(on root: ByteString) throws(LifecycleError) -> [InterruptedOperation] {
    do throws(SystemError) {
      guard let folder = try ControlFolder.open(ControlFolder.journal, root: root) else {
        return []
      }
      var found: [InterruptedOperation] = []
      for name in try folder.names() {
        guard let id = OperationJournal.id(name) else { continue }
        if try FileLock.isHeld(OperationJournal.lock(id), in: folder) { continue }
        // It may have ended between two looks.
        guard let bytes = try read(name, in: folder) else { continue }
        guard let record = JournalRecord(reading: bytes), record.id == id else {
          throw SystemError.replaced(folder.path.appending(name))
        }
        found.append(InterruptedOperation(record: record))
      }
      return found.sorted { ($0.time, $0.id) < ($1.time, $1.id) }
    } catch {
      throw LifecycleError(
        .failed, "cannot read the journal of '\(root)': \(error.description)",
        hint: "what it says of an interrupted operation is lost; look at "
          + "'\(ControlFolder.path(ControlFolder.journal, root: root))'")
    }
  }

  private static func read(
    _ name: ByteString, in folder: borrowing Folder
  ) throws(SystemError) -> [UInt8]? {
    do throws(SystemError) {
      return try folder.file(name).readAll(limit: 1 << 31)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }
}
