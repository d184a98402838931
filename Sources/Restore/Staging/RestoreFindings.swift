internal import ArchiveStore
internal import DeviceTransaction
internal import Synchronization
internal import SystemIO

/// The results that the threads of a restore collect: the entries that failed, with the reasons.
package final class RestoreFindings: Sendable {
  private struct State: Sendable {
    /// Entries that were not created, including the descendants of such directories.
    var unmade: Set<Int> = []
    var damaged = Reasons()
    var isDamaged = false
    var failed = Reasons()
    var missing: [BlobDelivery.Use] = []
    var ownersNotSet = 0
    var (modesNotKept, timesNotKept) = (0, 0)
  }

  /// Reasons in the order in which they were found, with each entry's first one by its number.
  private struct Reasons: Sendable {
    private(set) var all: [(number: Int, reason: String)] = []
    private var first: [Int: Int] = [:]

    mutating func append(_ number: Int, _ reason: String) {
      if first[number] == nil { first[number] = all.count }
      all.append((number, reason))
    }

    subscript(number: Int) -> String? { first[number].map { all[$0].reason } }
  }

  private let state = Mutex(State())
  private let counters: ProgressCounters
  /// Whether the metadata of each entry is compared with what the file system reports.
  let verifiesMetadata: Bool

  init(_ counters: ProgressCounters, verifiesMetadata: Bool = false) {
    (self.counters, self.verifiesMetadata) = (counters, verifiesMetadata)
  }

  /// Records that an entry could not be created.
  func fail(_ number: Int, _ reason: String) {
    counters.didFail()
    state.withLock { state in
      state.failed.append(number, reason)
      state.unmade.insert(number)
    }
  }

  /// Records that an entry was created, but is incomplete.
  func remark(_ number: Int, _ reason: String) {
    counters.didFail()
    state.withLock { $0.failed.append(number, reason) }
  }

  /// Records that a file's stored data is damaged or needs an older key; only the first call for a
  /// file has an effect.
  func addLost(_ number: Int, _ reason: String, needsOlderKey: Bool = false) {
    state.withLock { state in
      guard state.unmade.insert(number).inserted else { return }
      state.damaged.append(number, reason)
      if !needsOlderKey { state.isDamaged = true }
      counters.didFail()
    }
  }

  /// Records that an entry was created, but a part of its stored data is damaged or needs an older
  /// key.
  func addLostPart(_ number: Int, _ reason: String, needsOlderKey: Bool) {
    counters.didFail()
    state.withLock { state in
      state.damaged.append(number, reason)
      if !needsOlderKey { state.isDamaged = true }
    }
  }

  /// Records that a hard link could not be created because the entry that it links to is missing,
  /// with the reason for that entry.
  func addLostLink(_ other: Int, _ number: Int) {
    state.withLock { state in
      state.unmade.insert(number)
      if let reason = state.damaged[other] {
        state.damaged.append(number, reason)
      } else {
        state.failed.append(
          number, state.failed[other] ?? "the file that it is a hard link to could not be created")
      }
    }
  }

  /// Records that an entry was not created for a reason that is reported for another one.
  func skip(_ number: Int) { state.withLock { _ = $0.unmade.insert(number) } }

  /// Records blobs that were not at their recorded location.
  func addMissing(_ uses: [BlobDelivery.Use]) {
    if !uses.isEmpty { state.withLock { $0.missing += uses } }
  }

  func countOwnerNotSet() { state.withLock { $0.ownersNotSet += 1 } }

  /// Counts an entry if the file system does not keep its mode or time.
  func countUnkept(mode: Bool, time: Bool) {
    guard mode || time else { return }
    state.withLock { state in
      if mode { state.modesNotKept += 1 }
      if time { state.timesNotKept += 1 }
    }
  }

  /// Returns the numbers of entries whose metadata is not kept in a directory; nil if there are
  /// none.
  func unkeptMetadata(in directory: borrowing Directory) -> UnkeptMetadata? {
    let found = state.withLock { $0 }
    guard found.modesNotKept + found.timesNotKept > 0 else { return nil }
    return UnkeptMetadata(
      device: (try? directory.status().identity.device) ?? 0, directory: directory.path,
      modes: found.modesNotKept, times: found.timesNotKept)
  }

  /// Whether an entry has failed so far.
  func isUnmade(_ number: Int) -> Bool { state.withLock { $0.unmade.contains(number) } }

  /// All reasons why entries are missing or incomplete.
  var reasons: [String] {
    state.withLock { state in (state.damaged.all + state.failed.all).map(\.reason) }
  }

  // MARK: - Databases

  /// Whether an entry of a database failed, so that nothing of it is restored and the existing
  /// files are kept. If none exists, a log that failed does not prevent the restore of the
  /// database.
  func isBroken(_ database: RestorePlan.Database) -> Bool {
    let members = database.members
    return (database.isPresent ? members[...] : members.suffix(1)).contains(where: isUnmade)
  }

  /// Marks all entries of a database as failed.
  func fail(_ database: RestorePlan.Database) {
    for member in database.members where !isUnmade(member) {
      fail(member, JournalStep.brokenItemReason)
    }
  }

  /// Marks the databases that cannot be restored completely: a database without its log, or with
  /// another one's, is damaged, so the existing files are kept. If none exists, the database is
  /// restored and the missing log is reported.
  func failBrokenDatabases(of plan: RestorePlan) {
    for database in plan.databases where isBroken(database) { fail(database) }
    remarkLostLogs(of: plan.tree)
  }

  private func remarkLostLogs(of tree: PlannedTree) {
    var lost: [RestorePlan.Child: ByteString] = [:]
    for (number, entry) in tree.entries.enumerated()
    where entry.kind == .file && isUnmade(number) {
      let name = tree.name(number)
      guard let database = name.databaseOfCompanion else { continue }
      lost[RestorePlan.Child(directory: Int(entry.parent), name: database)] = name
    }
    if lost.isEmpty { return }
    for (number, entry) in tree.entries.enumerated()
    where entry.kind == .file && entry.action.isWritten && !isUnmade(number) {
      let child = RestorePlan.Child(directory: Int(entry.parent), name: tree.name(number))
      guard let log = lost[child] else { continue }
      remark(
        number,
        "'\(log)' could not be restored with it: it may lack the latest changes, "
          + "or be damaged")
    }
  }

  // MARK: - Results

  /// Returns the blobs missed since the last call.
  func removeMissing() -> [BlobDelivery.Use] {
    state.withLock { state in
      defer { state.missing = [] }
      return state.missing
    }
  }

  /// Adds the results for a plan to a report.
  package func add(to report: inout RestoreReport, for plan: RestorePlan) {
    let found = state.withLock { $0 }
    let add = { (found: [(number: Int, reason: String)], remarks: inout [PathRemark]) in
      var bound = RestorePlan.RemarkLimit(room: plan.request.remarkRoom)
      for (number, reason) in found.sorted(by: { $0.number < $1.number }) {
        bound.add(PathRemark(path: plan.shownPath(number), remark: reason), to: &remarks)
      }
      bound.close(&remarks)
    }
    add(found.damaged.all, &report.damaged)
    if found.isDamaged { report.isDamaged = true }
    add(found.failed.all, &report.failed)
    report.ownersNotSet = found.ownersNotSet
    for (number, entry) in plan.tree.entries.enumerated()
    where entry.action.isWritten && plan.isCounted(entry) && !found.unmade.contains(number) {
      report.restored.count(entry.kind, size: entry.size)
    }
  }
}
