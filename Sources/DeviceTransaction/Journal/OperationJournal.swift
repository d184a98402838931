package import SystemIO

// The journal of changes to a device (docs/journal.md). An operation stages all new entries, syncs
// them, records the steps that put them in place, and applies the steps; at the end it removes the
// journal. The file is written completely before the first step and does not change while steps are
// applied. The progress follows from the location of each entry, so nothing is synced between two
// steps.
//
// Not guaranteed: that all containers of an operation change together. They change one after
// another, and after a recovery each is in its old or its new state.

/// The journal of an operation in progress, with the locks on its subjects.
package final class OperationJournal {
  private let directory: Directory
  private let locks: AppLocks
  /// Held while the operation runs. A journal with a free lock belongs to an interrupted operation.
  private let lock: FileLock
  package private(set) var record: JournalRecord
  /// Whether an entry is in neither its old nor its new state. The journal then stays for the
  /// recovery.
  package var isUnstable = false
  /// The note that records a directory opened for its move.
  package let opened: OpenedNote

  private static let suffix = ".json"
  private static let lockSuffix = ".lock"

  static func file(_ id: String) -> ByteString { ByteString(id + suffix) }
  static func lock(_ id: String) -> ByteString { ByteString(id + lockSuffix) }

  /// Returns the ID of the operation that a file in the journal directory belongs to, or nil if it
  /// is not a journal.
  static func id(_ name: ByteString) -> String? {
    guard let text = name.utf8, text.hasSuffix(suffix), !AtomicFile.isTemporary(name) else {
      return nil
    }
    return String(text.dropLast(suffix.count))
  }

  /// Begins an operation. No other operation can change its subjects from here on.
  ///
  /// - Throws: `busy` if another operation on one of its subjects is in progress; `failed` if one
  ///   was interrupted and has to be recovered first.
  package init(_ record: JournalRecord, root: ByteString) throws(OperationError) {
    locks = try AppLocks(record.subjects, root: root)
    var located = record
    located.device = root
    self.record = located
    opened = OpenedNote(record.id, root: root)
    // With the locks held, no other operation on the subjects can be interrupted from here on.
    try Self.requireRecovered(record, root: root)
    do throws(SystemError) {
      directory = try ControlDirectory.make(ControlDirectory.journal, root: root)
      lock = try FileLock(Self.lock(record.id), in: directory)
      try directory.inheritOwner(Self.lock(record.id))
    } catch { throw OperationError(error) }
    AtomicFile.removeAbandoned(in: directory)
  }

  /// Removes journals that killed processes had not written completely, one of which can have
  /// 2 GiB, and the locks that they left without a journal.
  static func removeAbandoned(root: ByteString) {
    guard let directory = try? ControlDirectory.open(ControlDirectory.journal, root: root) else {
      return
    }
    AtomicFile.removeAbandoned(in: directory)
    for name in (try? directory.names()) ?? [] {
      guard let text = name.utf8, text.hasSuffix(lockSuffix) else { continue }
      let id = String(text.dropLast(lockSuffix.count))
      if JournalRecord.isID(ByteString(id)) { removeAbandonedLock(of: id, in: directory) }
    }
  }

  /// The minimum age in seconds of a removed lock.
  private static let lockAge = 24.0 * 3600

  /// Removes the lock of an operation that was killed before it wrote a journal or after it removed
  /// it. A recent one may belong to an operation that is about to lock it.
  private static func removeAbandonedLock(of id: String, in directory: borrowing Directory) {
    let name = lock(id)
    do throws(SystemError) {
      guard try directory.statusIfPresent(file(id)) == nil,
        Host.now().since(try directory.status(name).modified) > lockAge
      else { return }
      let lock = try FileLock(existing: name, in: directory)
      defer { withExtendedLifetime(lock) {} }
      guard try directory.statusIfPresent(file(id)) == nil else { return }
      try directory.remove(name)
    } catch {
      // It is held, or was removed meanwhile; otherwise the next recovery tries again.
    }
  }

  private static func requireRecovered(
    _ record: JournalRecord, root: ByteString
  ) throws(OperationError) {
    for left in try InterruptedOperation.all(on: root) {
      guard let subject = record.subjects.first(where: left.record.subjects.contains) else {
        continue
      }
      throw OperationError(
        .failed, code: .recoveryRequired, "change", subject: subject,
        reason: "the interrupted \(left.operation) of '\(left.container)' in '\(root)' has to be "
          + "recovered first",
        hint: "run 'sandboxctl recover' to finish it or roll it back")
    }
  }

  /// Records the directories in which entries for the next container are going to be staged.
  package func prepare(_ container: Int, stagingIn directories: [ByteString]) throws(SystemError) {
    record.currentContainer = container
    record.state = .preparing
    record.staging = directories
    (record.roots, record.steps) = ([], [])
    try write()
  }

  /// Records the steps that are about to be applied. The entries that they move are synced.
  package func move(
    _ steps: JournalSteps, below roots: [JournalRecord.Root]
  ) throws(SystemError) {
    record.state = .moving
    (record.roots, record.steps) = (roots, steps)
    try write()
  }

  /// Records that the steps are about to be rolled back.
  package func rollBack() throws(SystemError) {
    record.state = .returning
    try write()
  }

  /// Records that all steps were rolled back.
  package func forgetSteps(hasPlacedEntries: Bool) throws(SystemError) {
    record = record.withoutSteps(hasPlacedEntries: hasPlacedEntries)
    try write()
  }

  /// Records that no remaining step is to be applied.
  package func settleSteps() throws(SystemError) {
    if record.steps.isEmpty { return }
    let settled = record.settled
    try Self.write(settled, in: directory)
    record = settled
  }

  /// Ends the operation: nothing is left to finish or roll back.
  package func end() throws(SystemError) {
    try opened.settle()
    do throws(SystemError) {
      try directory.remove(Self.file(record.id))
    } catch { if !error.isMissing { throw error } }
    try directory.sync()
    try? directory.remove(Self.lock(record.id))
  }

  private func write() throws(SystemError) { try Self.write(record, in: directory) }

  /// Writes a record, replacing the present one.
  ///
  /// - Throws: `tooLarge` if the record exceeds `limit` bytes; the present record is kept.
  static func write(
    _ record: JournalRecord, in directory: borrowing Directory, limit: Int = JournalRecord.limit
  ) throws(SystemError) {
    let name = file(record.id)
    let written = try AtomicFile(lockedIn: directory, permissions: 0o600)
    var count = 0
    try record.write { piece throws(SystemError) in
      count += piece.count
      guard count <= limit else { throw SystemError.tooLarge(directory.path.appending(name)) }
      try written.write(piece)
    }
    try written.commit(as: name)
    // A journal of the device's owner would not be accepted (docs/journal.md, "What is trusted").
    if try record.isBeyond(directory.status().user) { return }
    try directory.inheritOwner(name)
  }
}

extension JournalRecord {
  /// Whether it names a directory outside of the device that does not belong to a user.
  fileprivate func isBeyond(_ user: UInt32) -> Bool {
    guard let device else { return false }
    return (roots.map(\.path) + staging).contains {
      !$0.isWithin(device) && !DeviceScope.belongs($0, to: user)
    }
  }
}
