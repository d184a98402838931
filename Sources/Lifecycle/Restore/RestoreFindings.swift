internal import ArchiveStore
internal import Synchronization
internal import SystemIO

/// What the threads of a restore find out: what could not be made, and why.
final class RestoreFindings: Sendable {
  private struct State: Sendable {
    /// Entries that are not there, nor what is below them.
    var unmade: Set<Int> = []
    var damaged = Reasons()
    var failed = Reasons()
    var missing: [BlobUse] = []
    var ownersNotSet = 0
  }

  /// Reasons in the order in which they were found, each entry's first one by its number.
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

  /// An entry could not be made.
  func fail(_ number: Int, _ reason: String) {
    counters.didFail()
    state.withLock { state in
      state.failed.append(number, reason)
      state.unmade.insert(number)
    }
  }

  /// An entry was made, but not all that belongs to it.
  func remark(_ number: Int, _ reason: String) {
    counters.didFail()
    state.withLock { $0.failed.append(number, reason) }
  }

  /// A file's stored data is damaged; said once for each.
  func lose(_ number: Int, _ reason: String) {
    state.withLock { state in
      guard state.unmade.insert(number).inserted else { return }
      state.damaged.append(number, reason)
      counters.didFail()
    }
  }

  /// An entry was made, but what is stored of something that belongs to it is damaged.
  func losePart(_ number: Int, _ reason: String) {
    counters.didFail()
    state.withLock { $0.damaged.append(number, reason) }
  }

  /// An entry is another name of one that is not there: it is not there either, and for that reason.
  func loseLike(_ other: Int, _ number: Int) {
    state.withLock { state in
      state.unmade.insert(number)
      if let reason = state.damaged[other] {
        state.damaged.append(number, reason)
      } else {
        state.failed.append(
          number, state.failed[other] ?? "the file that it is a name of could not be made")
      }
    }
  }

  /// An entry is not there for a reason that is told of another one.
  func skip(_ number: Int) { state.withLock { _ = $0.unmade.insert(number) } }

  /// Blobs that are not to be had from where they were looked for.
  func miss(_ uses: [BlobUse]) {
    if !uses.isEmpty { state.withLock { $0.missing += uses } }
  }

  func countOwnerNotSet() { state.withLock { $0.ownersNotSet += 1 } }

  /// Whether an entry could not be made, so far.
  func isUnmade(_ number: Int) -> Bool { state.withLock { $0.unmade.contains(number) } }

  /// All reasons for which something was not made, or not whole.
  var reasons: [String] {
    state.withLock { state in (state.damaged.all + state.failed.all).map(\.reason) }
  }

  /// Takes what was missed since the last time.
  func takeMissing() -> [BlobUse] {
    state.withLock { state in
      defer { state.missing = [] }
      return state.missing
    }
  }

  /// Adds what was found to a report.
  func tell(_ plan: RestorePlan, _ report: inout RestoreReport) {
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
