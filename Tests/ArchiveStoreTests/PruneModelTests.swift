import Testing

/// The rules by which prune removes packs beside running programs, as a model: every interleaving
/// of their steps is visited, with each program ending at any step, and a clock that lets any lease
/// expire at any moment (docs/repository-format.md, "Prune").
///
/// The model has one blob that is in pack 0 of an old snapshot, and may be stored again as pack 1
/// or 2 by a writer that finds no usable copy.
@Suite struct PruneModelTests {
  @Test func noCommittedSnapshotLacksABlob() {
    let result = PruneModel.explore()
    #expect(result.violations.isEmpty, "\(result.violations.first ?? "")")
    // The exploration is of the size that the rules give, and reaches what matters.
    #expect(result.states > 20_000, "\(result.states)")
    #expect(result.committed > 0 && result.removed > 0 && result.fenced > 0 && result.read > 0)
  }

  /// The model finds a violation if any one rule is dropped, so it can fail.
  @Test(arguments: PruneModel.Rule.allCases) func eachRuleIsNeeded(rule: PruneModel.Rule) {
    #expect(!PruneModel.explore(without: rule).violations.isEmpty)
  }
}

/// A model of two writers, a prune that runs twice, a forget and a reader.
enum PruneModel {
  /// The rules of the format; a test drops one.
  enum Rule: CaseIterable {
    case writersSkipCondemned, sweepWaitsForEarlierLeases, sweepListsSnapshotsAfterLeases
    case commitNeedsTheLease, readersHaveLeases
  }

  struct Result {
    var states = 0
    var violations: [String] = []
    /// The states in which a writer has committed, a pack was removed, a writer was refused because
    /// its lease was gone, and a reader reads a snapshot that was forgotten.
    var committed = 0
    var removed = 0
    var fenced = 0
    var read = 0
  }

  /// The steps of a writer.
  enum WriterStep: UInt8 {
    case idle, leased, listedCondemned, listedPacks, stored, indexed, committed, refused, dead
  }

  struct Writer: Hashable {
    var step = WriterStep.idle
    var hasLease = false
    /// The number of the condemned object that it saw before it listed packs; 0 for none.
    var seen: UInt8 = 0
    /// The pack that it relies on, or nil if it stores the blob itself.
    var reliesOn: UInt8?
  }

  enum PruneStep: UInt8 {
    case idle, marked, condemned, expired, leasesChecked, listedSnapshots, indexWritten, done, dead
  }

  struct Prune: Hashable {
    var step = PruneStep.idle
    /// Whether the old snapshot was there when snapshots were listed for the mark.
    var knowsOfNeed = false
    var runs: UInt8 = 0
  }

  enum ReaderStep: UInt8 { case idle, leased, opened, done }

  struct State: Hashable {
    /// The packs that exist, that an index names, and that are condemned: a bit for each.
    var packs: UInt8 = 1
    var indexed: UInt8 = 1
    var condemned: UInt8 = 0
    /// The number of the last condemned object.
    var number: UInt8 = 0
    var hasOldSnapshot = true
    /// For each committed snapshot, the pack that has its blob.
    var writers = [Writer(), Writer()]
    var prune = Prune()
    var reader = ReaderStep.idle
  }

  /// Visits all states that the rules allow, and checks each.
  static func explore(without rule: Rule? = nil) -> Result {
    var result = Result()
    var seen: Set<State> = [State()]
    var pending = [State()]
    while let state = pending.popLast() {
      result.states += 1
      check(state, &result)
      if result.violations.count > 3 { return result }
      for next in successors(of: state, without: rule) where seen.insert(next).inserted {
        pending.append(next)
      }
    }
    return result
  }

  private static func check(_ state: State, _ result: inout Result) {
    // A blob is found if any existing pack that an index names has it; all packs have the blob.
    let isThere = state.packs & state.indexed != 0
    let isCommitted = state.writers.contains { $0.step == .committed }
    if isCommitted || state.hasOldSnapshot, !isThere {
      result.violations.append("a snapshot lacks its blob: \(state)")
    }
    if state.reader == .opened, !isThere {
      result.violations.append("a reader with a lease lost its blob: \(state)")
    }
    if isCommitted { result.committed += 1 }
    if state.packs & 1 == 0 { result.removed += 1 }
    if state.writers.contains(where: { $0.step == .refused }) { result.fenced += 1 }
    if state.reader == .opened, !state.hasOldSnapshot { result.read += 1 }
  }

  private static func successors(of state: State, without rule: Rule?) -> [State] {
    var next: [State] = []
    if state.hasOldSnapshot {
      var forgotten = state
      forgotten.hasOldSnapshot = false
      next.append(forgotten)
    }
    for writer in state.writers.indices {
      next += steps(ofWriter: writer, in: state, without: rule)
    }
    next += stepsOfPrune(in: state, without: rule)
    next += stepsOfReader(in: state)
    return next
  }

  private static func steps(
    ofWriter number: Int, in state: State, without rule: Rule?
  ) -> [State] {
    var next: [State] = []
    func step(_ change: (inout State, inout Writer) -> Void) {
      var (changed, writer) = (state, state.writers[number])
      change(&changed, &writer)
      changed.writers[number] = writer
      next.append(changed)
    }
    let writer = state.writers[number]
    let own = UInt8(2) << UInt8(number)
    switch writer.step {
    case .idle: step { ($1.step, $1.hasLease) = (.leased, true) }
    case .leased:
      step { state, writer in
        writer.step = .listedCondemned
        writer.seen = state.condemned == 0 ? 0 : state.number
        // It remembers what is condemned now: packs condemned later may be relied on.
        writer.reliesOn = rule != .writersSkipCondemned ? state.condemned : 0
      }
    case .listedCondemned:
      step { state, writer in
        writer.step = .listedPacks
        let usable = state.packs & state.indexed & ~(writer.reliesOn ?? 0)
        writer.reliesOn = usable == 0 ? nil : UInt8(usable.trailingZeroBitCount)
      }
    case .listedPacks:
      step { state, writer in
        writer.step = .stored
        if writer.reliesOn == nil { state.packs |= own }
      }
    case .stored:
      step { state, writer in
        writer.step = .indexed
        if writer.reliesOn == nil { state.indexed |= own }
      }
    case .indexed:
      step { _, writer in
        writer.step = writer.hasLease || rule == .commitNeedsTheLease ? .committed : .refused
        writer.hasLease = false
      }
    case .committed, .refused, .dead: break
    }
    if ![.idle, .committed, .refused, .dead].contains(writer.step) {
      // It is killed; its lease stays until it expires.
      step { $1.step = .dead }
    }
    return next
  }

  private static func stepsOfPrune(in state: State, without rule: Rule?) -> [State] {
    var next: [State] = []
    func step(_ change: (inout State) -> Void) {
      var changed = state
      change(&changed)
      next.append(changed)
    }
    let isNeeded =
      state.hasOldSnapshot || state.writers.contains { $0.step == .committed }
    switch state.prune.step {
    case .idle:
      step { state in
        state.prune.knowsOfNeed = isNeeded
        state.prune.step = state.condemned != 0 ? .condemned : .marked
      }
    case .marked:
      step { state in
        if state.prune.knowsOfNeed {
          state.prune.step = .done
        } else {
          state.condemned = state.packs & state.indexed
          state.number += 1
          state.prune.step = .condemned
        }
      }
    case .condemned: step { $0.prune.step = .expired }
    case .expired:
      // The clock may let any lease expire before, in any combination.
      for gone in 0..<4 {
        step { state in
          for number in 0..<2 where gone >> number & 1 == 1 {
            state.writers[number].hasLease = false
          }
          let isBlocked =
            state.writers.contains { $0.hasLease && $0.seen != state.number }
            || ([.leased, .opened].contains(state.reader) && rule != .readersHaveLeases)
          state.prune.step =
            isBlocked && rule != .sweepWaitsForEarlierLeases ? .done : .leasesChecked
        }
      }
    case .leasesChecked:
      step { state in
        if rule != .sweepListsSnapshotsAfterLeases { state.prune.knowsOfNeed = isNeeded }
        state.prune.step = .listedSnapshots
      }
    case .listedSnapshots:
      step { state in
        // A condemned pack stays if a snapshot needs the blob and no other usable pack has it.
        let others = state.packs & state.indexed & ~state.condemned
        if state.prune.knowsOfNeed, others == 0 { state.condemned = 0 }
        state.indexed &= ~state.condemned
        state.prune.step = .indexWritten
      }
    case .indexWritten:
      step { state in
        state.packs &= ~state.condemned
        state.condemned = 0
        state.prune.step = .done
      }
    case .done, .dead:
      if state.prune.runs < 1 {
        step { state in
          state.prune = Prune(runs: state.prune.runs + 1)
        }
      }
    }
    if ![.idle, .done, .dead].contains(state.prune.step) { step { $0.prune.step = .dead } }
    return next
  }

  /// A reader of the old snapshot takes a lease while the snapshot exists, opens the index, and
  /// ends. Packs in the index at that time must stay until then.
  private static func stepsOfReader(in state: State) -> [State] {
    var changed = state
    switch state.reader {
    case .idle where state.hasOldSnapshot: changed.reader = .leased
    case .leased where state.hasOldSnapshot: changed.reader = .opened
    case .leased, .opened: changed.reader = .done
    default: return []
    }
    return [changed]
  }
}
