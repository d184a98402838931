internal import SystemIO

// The journal of what changes a device (docs/journal.md). An operation stages all that is to come,
// syncs it, writes down the steps by which it gets its place, and takes them; at the end the journal
// goes. The file is written whole before the first step and is not touched while steps are taken: what
// lies where says how far they came, so that nothing need be synced between two of them.
//
// Not guaranteed: that all containers of an operation change together. They come one after another, and
// each is as it was, or as it is to be, once an interruption was made good.

/// The journal of an operation that is going on, with the locks of what it changes.
final class OperationJournal {
  private let directory: Directory
  private let locks: AppLocks
  /// Held while the operation lives: a journal whose lock is free is that of an interrupted one.
  private let lock: FileLock
  private(set) var record: JournalRecord
  /// Whether something is neither as it was nor as it is to be: then the journal stays, for the recovery.
  var isUnstable = false
  /// Where a directory is noted that is opened for its move.
  let opened: OpenedNote

  private static let suffix = ".json"
  private static let lockSuffix = ".lock"

  static func file(_ id: String) -> ByteString { ByteString(id + suffix) }
  static func lock(_ id: String) -> ByteString { ByteString(id + lockSuffix) }

  /// The operation that a name in the journal's directory is of.
  static func id(_ name: ByteString) -> String? {
    guard let text = name.utf8, text.hasSuffix(suffix), !AtomicFile.isTemporary(name) else {
      return nil
    }
    return String(text.dropLast(suffix.count))
  }

  /// Begins an operation: nobody else changes what it is about from here on.
  ///
  /// - Throws: `busy` when another operation on one of its apps is going on, `failed` when one on one of
  ///   them was interrupted and waits for its recovery.
  init(_ record: JournalRecord, root: ByteString) throws(LifecycleError) {
    locks = try AppLocks(record.subjects, root: root)
    self.record = record
    opened = OpenedNote(record.id, root: root)
    // With the locks in hand nobody else can be interrupted on them any more.
    try Self.requireRecovered(record, root: root)
    do throws(SystemError) {
      directory = try ControlDirectory.make(ControlDirectory.journal, root: root)
      lock = try FileLock(Self.lock(record.id), in: directory)
    } catch { throw LifecycleError(error) }
  }

  private static func requireRecovered(
    _ record: JournalRecord, root: ByteString
  ) throws(LifecycleError) {
    for left in try InterruptedOperation.all(on: root) {
      guard let subject = record.subjects.first(where: left.record.subjects.contains) else {
        continue
      }
      throw LifecycleError(
        .failed,
        "cannot change '\(subject)' of '\(root)': the \(left.operation) of '\(left.container)' was "
          + "interrupted, and what became of it is not settled",
        hint: "'sandboxctl recover' finishes it or takes it back")
    }
  }

  /// Notes that something is going to be staged in a directory, or several, for the next container.
  func prepare(_ container: Int, stagingIn places: [ByteString]) throws(SystemError) {
    record.currentContainer = container
    record.state = .preparing
    record.staging = places
    (record.roots, record.steps) = ([], [])
    try write()
  }

  /// Notes the steps that are about to be taken; what they move is on the disk.
  func move(
    _ steps: JournalSteps, below roots: [JournalRecord.Root]
  ) throws(SystemError) {
    record.state = .moving
    (record.roots, record.steps) = (roots, steps)
    try write()
  }

  /// Notes that the steps are about to be taken back.
  func rollBack() throws(SystemError) {
    record.state = .returning
    try write()
  }

  /// Notes that all steps were taken back.
  func forgetSteps(hasCome: Bool) throws(SystemError) {
    record = record.withoutSteps(hasCome: hasCome)
    try write()
  }

  /// Notes that no step is to be taken any more, of those that are left.
  func settleSteps() throws(SystemError) {
    if record.steps.isEmpty { return }
    let settled = record.settled
    try Self.write(settled, in: directory)
    record = settled
  }

  /// Ends the operation: there is nothing to be finished or taken back.
  func end() throws(SystemError) {
    try opened.settle()
    do throws(SystemError) {
      try directory.remove(Self.file(record.id))
    } catch { if !error.isMissing { throw error } }
    try directory.sync()
    try? directory.remove(Self.lock(record.id))
  }

  private func write() throws(SystemError) { try Self.write(record, in: directory) }

  /// Writes a record in the place of the one that is there.
  ///
  /// - Throws: `tooLarge`, with the one that is there kept, for more bytes than a reader takes.
  static func write(
    _ record: JournalRecord, in directory: borrowing Directory, limit: Int = JournalRecord.limit
  ) throws(SystemError) {
    let name = file(record.id)
    let written = try AtomicFile(in: directory, permissions: 0o600)
    var count = 0
    try record.write { piece throws(SystemError) in
      count += piece.count
      guard count <= limit else { throw SystemError.tooLarge(directory.path.appending(name)) }
      try written.write(piece)
    }
    try written.commit(as: name)
    try ControlOwner.give(file(record.id), in: directory)
  }
}
