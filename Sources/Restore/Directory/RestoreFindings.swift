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
    var failed = Reasons()
    var missing: [BlobDelivery.Use] = []
    var ownersNotSet = 0
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

  init(_ counters: ProgressCounters) { self.counters = counters }

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

  /// Records that a file's stored data is damaged; only the first call for a file has an effect.
  func lose(_ number: Int, _ reason: String) {
    state.withLock { state in
      guard state.unmade.insert(number).inserted else { return }
      state.damaged.append(number, reason)
      counters.didFail()
    }
  }

  /// Records that an entry was created, but a part of its stored data is damaged.
  func losePart(_ number: Int, _ reason: String) {
    counters.didFail()
    state.withLock { $0.damaged.append(number, reason) }
  }

  /// Records that a hard link could not be created because the entry that it links to is missing,
  /// with the reason for that entry.
  func loseLink(_ other: Int, _ number: Int) {
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
  func miss(_ uses: [BlobDelivery.Use]) {
    if !uses.isEmpty { state.withLock { $0.missing += uses } }
  }

  func countOwnerNotSet() { state.withLock { $0.ownersNotSet += 1 } }

  /// Whether an entry has failed so far.
  func isUnmade(_ number: Int) -> Bool { state.withLock { $0.unmade.contains(number) } }

  /// All reasons why entries are missing or incomplete.
  var reasons: [String] {
    state.withLock { state in (state.damaged.all + state.failed.all).map(\.reason) }
  }

  /// Returns the blobs missed since the last call.
  func takeMissing() -> [BlobDelivery.Use] {
    state.withLock { state in
      defer { state.missing = [] }
      return state.missing
    }
  }

  /// Adds the results to a report.
  package func tell(_ plan: RestorePlan, _ report: inout RestoreReport) {
    let found = state.withLock { $0 }
    let tell = { (found: [(number: Int, reason: String)], remarks: inout [PathRemark]) in
      var bound = RemarkLimit(room: plan.request.remarkRoom)
      for (number, reason) in found.sorted(by: { $0.number < $1.number }) {
        bound.add(PathRemark(path: plan.shownPath(number), remark: reason), to: &remarks)
      }
      bound.close(&remarks)
    }
    tell(found.damaged.all, &report.damaged)
    tell(found.failed.all, &report.failed)
    report.ownersNotSet = found.ownersNotSet
    for (number, entry) in plan.tree.entries.enumerated()
    where entry.action.isWritten && plan.isCounted(entry) && !found.unmade.contains(number) {
      report.restored.count(entry.kind, size: entry.size)
    }
  }
}
