/// The rules by which prune removes packs beside running programs (docs/repository-format.md,
/// "Prune"), as a model whose states are all visited: every interleaving of the steps of two
/// writers, a prune that runs twice, a program that removes snapshots or moves them back twice, and
/// a reader. Any of them may end at any step, and any lease may expire whenever a prune looks. With
/// `condemnsUnindexed`, the prune condemns packs that no index names as well. With `hasDamage`, the
/// bytes of a condemned object change once at any time, a writer that notices this removes the
/// object, and the prune may sleep for an hour at any step before.
///
/// Without rename (`objects`), a writer puts its snapshot as pending, looks for the mark that its
/// lease is dead, puts the snapshot, and looks again; with a dead lease, it takes a new one, once,
/// and checks its pack. A writer that has committed may lack the right to remove objects: it marks
/// its lease as dead and leaves the pending object. A prune whose right was taken over may still
/// carry out its pending action: put a condemned object, write the index, or delete packs, at any
/// later time. The docs state the bound: a writer that slept between its first look and the put for
/// so long that its pending snapshot was removed must not be ended before it has looked again.
///
/// There is one blob. For the old snapshot it is in pack 0; a writer that finds no usable copy
/// stores it again as pack 1 or 2, and a prune that rewrites packs as pack 3. All snapshots have
/// the same tree, so a prune that knows the needs of one does not search the others.
package struct PruneModel {
  /// The rules of the format; a test drops one.
  package enum Rule: CaseIterable, Sendable {
    case writersSkipCondemned, sweepWaitsForEarlierLeases, sweepListsSnapshotsAfterLeases
    case commitNeedsTheLease, readersHaveLeases, readersListAgain, neededCopiesAreMarked
    case sweepListsLeasesAgain, removalThatMovesBackLeavesItsLease, secondLookDropsOnly
    case mendingNeedsTheRight, mendingRemovesExpiredLeases
    case commitLooksAgain, renewalChecksPacks, pendingIsNeeded, mendingWaitsForSleepers
    case keptPacksWaitForSleepers

    /// Whether it concerns damaged condemned objects.
    package var isOfDamage: Bool {
      [.mendingNeedsTheRight, .mendingRemovesExpiredLeases, .mendingWaitsForSleepers].contains(self)
    }

    /// Whether it concerns readers.
    package var isOfReaders: Bool { [.readersHaveLeases, .readersListAgain].contains(self) }

    /// Whether it concerns stores without rename only.
    package var isOfObjects: Bool {
      [
        .commitLooksAgain, .renewalChecksPacks, .pendingIsNeeded, .mendingWaitsForSleepers,
        .keptPacksWaitForSleepers,
      ].contains(self)
    }
  }

  /// The dropped rule.
  let rule: Rule?
  /// The number of writers, whether there is a reader, and the maximum number of snapshots that are
  /// removed or moved back.
  let writers: Int
  package let hasReader: Bool
  let removals: UInt8
  /// Whether a condemned object is damaged once.
  package let hasDamage: Bool
  /// Whether a prune condemns packs that no index names, those of running writers as well: whatever
  /// the clock says, no more can be condemned.
  package let condemnsUnindexed: Bool
  /// Whether the store has no rename.
  package let objects: Bool

  /// Creates a model, of some programs only, in which one rule is dropped.
  package init(
    writers: Int = 2, hasReader: Bool = true, removals: UInt8 = 2, hasDamage: Bool = false,
    condemnsUnindexed: Bool = false, objects: Bool = false, without rule: Rule? = nil
  ) {
    self.objects = objects
    (self.writers, self.hasReader, self.removals) = (writers, hasReader, removals)
    (self.hasDamage, self.condemnsUnindexed) = (hasDamage, condemnsUnindexed)
    self.rule = rule
  }

  /// The result of an exploration.
  package struct Result {
    /// The number of states.
    package var states = 0
    /// Descriptions of states in which something is lost.
    package var violations: [String] = []
    /// The states in which a writer has committed, a pack was removed, a writer was refused because
    /// its lease was gone, a reader reads a snapshot that was forgotten, a prune has copied the
    /// blob, a removal has moved the snapshot back, a damaged object was removed, and this was done
    /// while a prune slept.
    package var committed = 0
    package var removed = 0
    package var fenced = 0
    package var read = 0
    package var copied = 0
    package var returned = 0
    package var mended = 0
    package var takenOver = 0
    /// The states in which a pack is condemned whose running writer has not written its index yet,
    /// and in which a pack was removed that no index had named.
    package var condemnedEarly = 0
    package var removedUnindexed = 0
    /// Without rename: the states in which a snapshot is visible before it is committed, in which a
    /// writer has committed with a new lease, in which one waits for a sleeping prune's action, and
    /// in which a writer was ended at the moment that the docs exclude.
    package var visible = 0
    package var renewed = 0
    package var sleeping = 0
    package var excluded = 0
  }

  /// The steps of a writer.
  enum WriterStep: UInt8 {
    case idle, leased, listedCondemned, listedPacks, stored, indexed, committed, refused, dead
    /// Its snapshot was moved into the lease of a removal.
    case away
    /// Without rename: its snapshot is pending, it has found its lease alive, it has put the
    /// snapshot, it has a new lease, and it has listed condemned objects with it.
    case pending, checked, put, renewed, renewedListed
  }

  struct Writer: Hashable {
    var step = WriterStep.idle
    var hasLease = false
    /// The condemned objects that it saw before it listed packs.
    var seen: UInt8 = 0
    /// The packs that were condemned then.
    var avoids: UInt8 = 0
    /// The pack that it relies on, or nil if it stores the blob itself.
    var reliesOn: UInt8?
    /// Without rename: whether there is a pending object, and the snapshot; whether the latter was
    /// put without the former; and whether it has renewed its lease.
    var hasPending = false
    var isPut = false
    var isLate = false
    var hasRenewed = false
  }

  /// The two writers, without an array, so that states are compared quickly.
  struct Writers: Hashable {
    private var first = Writer()
    private var second = Writer()

    static let indices = 0..<2

    subscript(number: Int) -> Writer {
      get { number == 0 ? first : second }
      set { if number == 0 { first = newValue } else { second = newValue } }
    }

    func contains(where isSelected: (Writer) -> Bool) -> Bool {
      isSelected(first) || isSelected(second)
    }
  }

  enum PruneStep: UInt8 {
    case idle, listed, marked, planned, copied, condemned, leasesChecked, listedAgain, checkedAgain
    case indexWritten, done, dead
  }

  struct Prune: Hashable {
    var step = PruneStep.idle
    /// Whether a snapshot that it has listed needs the blob, and whether no pack contained it at
    /// that time.
    var isNeeded = false
    var isLost = false
    /// The packs in the index objects that it has read, and those with a mark.
    var view: UInt8 = 0
    var marks: UInt8 = 0
    /// Whether it still has its original lease, without which it can neither write nor remove
    /// anything.
    var hasLease = false
    /// The packs that it has listed, before it read the index.
    var listed: UInt8 = 0
    /// The condemned packs and objects, as it has read them.
    var condemned: UInt8 = 0
    var objects: UInt8 = 0
    /// The packs and objects that it sweeps.
    var sweeps: UInt8 = 0
    var due: UInt8 = 0
    /// Whether it has planned, and so condemned packs itself.
    var hasPlanned = false
    var runs: UInt8 = 0
  }

  /// The steps of a program that removes a snapshot, which may or may not be pinned at that moment.
  enum RemovalStep: UInt8 { case idle, leased, away, back, done }

  struct Removal: Hashable {
    var step = RemovalStep.idle
    var runs: UInt8 = 0
    /// The number of the writer whose snapshot it moves, or nil for the old one.
    var target: UInt8?
    /// Whether it has left a lease.
    var hasLeft = false

    var hasLease: Bool { [.leased, .away, .back].contains(step) || hasLeft }
  }

  /// Whether a condemned object was damaged, and whether the damage was repaired.
  enum Damage: UInt8 { case none, damaged, mended }

  /// The packs of the condemned objects: each of the two runs of the prune makes one at most, and
  /// the second one may find that of the first.
  struct Condemned: Hashable {
    private var first: UInt8 = 0
    private var second: UInt8 = 0

    subscript(object: Int) -> UInt8 {
      get { object == 0 ? first : second }
      set { if object == 0 { first = newValue } else { second = newValue } }
    }

    /// The objects that exist, a bit for each.
    var objects: UInt8 { (first == 0 ? 0 : 1) | (second == 0 ? 0 : 2) }

    /// Returns the packs of objects.
    func packs(of objects: UInt8) -> UInt8 {
      (objects & 1 == 0 ? 0 : first) | (objects & 2 == 0 ? 0 : second)
    }

    mutating func remove(_ objects: UInt8) {
      if objects & 1 != 0 { first = 0 }
      if objects & 2 != 0 { second = 0 }
    }
  }

  enum ReaderStep: UInt8 { case idle, early, leased, opened, done }

  struct State: Hashable {
    /// The packs that exist, and that an index names: a bit for each.
    var packs: UInt8 = 1
    var indexed: UInt8 = 1
    var condemned = Condemned()
    /// The number of condemned objects that were made.
    var number: UInt8 = 0
    var damage = Damage.none
    /// The damaged object.
    var damaged: UInt8 = 0
    var hasOldSnapshot = true
    var writers = Writers()
    var prune = Prune()
    var removal = Removal()
    var reader = ReaderStep.idle
    /// The packs that a prune removed although no index object had been written for them.
    var removedUnindexed: UInt8 = 0
    /// Actions of a prune that lost the right, which it may still take once: delete packs, write
    /// the index without them, or put a condemned object with packs.
    var lateDeletion: UInt8 = 0
    var lateIndex: UInt8 = 0
    var lateCondemned: UInt8 = 0
    /// Whether the dead lease of a prune that lost the right is still there: for a day.
    var hasSign = false

    /// Whether a prune that lost the right may still do something.
    var hasSleeper: Bool { lateDeletion | lateIndex | lateCondemned != 0 }

    var isPruning: Bool { ![.idle, .done, .dead].contains(prune.step) }

    /// Whether a listing of snapshots finds one.
    var isListed: Bool {
      hasOldSnapshot || writers.contains { $0.step == .committed || $0.isPut }
    }

    /// Whether there is a pending snapshot.
    var isPending: Bool { writers.contains { $0.hasPending } }
  }

  /// Visits all states that the rules allow, and checks each.
  package func explore() -> Result {
    var result = Result()
    var seen: Set<State> = [State()]
    var pending = [State()]
    while let state = pending.popLast() {
      result.states += 1
      check(state, &result)
      if !result.violations.isEmpty { return result }
      for next in successors(of: state) where seen.insert(next).inserted { pending.append(next) }
    }
    return result
  }

  private func check(_ state: State, _ result: inout Result) {
    // The blob is found if an index names any existing pack, because all packs contain it.
    let isThere = state.packs & state.indexed != 0
    let isCommitted = state.writers.contains { $0.step == .committed }
    let isComplete = isThere || !state.hasOldSnapshot && !isCommitted
    if !isComplete || !isThere && state.writers.contains(where: { $0.isLeftBehind }) {
      result.violations.append("a snapshot lacks its blob: \(state)")
    }
    if state.reader == .opened, !isThere {
      result.violations.append("a reader with a lease lost its blob: \(state)")
    }
    if isCommitted { result.committed += 1 }
    if state.packs & 1 == 0 { result.removed += 1 }
    if state.packs & 8 != 0 { result.copied += 1 }
    if state.writers.contains(where: { $0.step == .refused }) { result.fenced += 1 }
    if state.reader == .opened, !state.hasOldSnapshot { result.read += 1 }
    if state.removal.step == .back { result.returned += 1 }
    if state.damage == .mended { result.mended += 1 }
    if state.isPruning, !state.prune.hasLease { result.takenOver += 1 }
    if state.writers.contains(where: { $0.isPut }) { result.visible += 1 }
    if state.writers.contains(where: { $0.hasRenewed && $0.step == .committed }) {
      result.renewed += 1
    }
    if state.hasSleeper { result.sleeping += 1 }
    if state.writers.contains(where: { $0.step == .dead && $0.isPut && $0.isLate }) {
      result.excluded += 1
    }
    for number in Writers.indices {
      let (own, step) = (UInt8(2) << UInt8(number), state.writers[number].step)
      let isCondemned = state.condemned.packs(of: 3) & own != 0
      if step == .stored, isCondemned { result.condemnedEarly += 1 }
      if step == .dead, state.removedUnindexed & own != 0 { result.removedUnindexed += 1 }
    }
  }

  private func successors(of state: State) -> [State] {
    (0..<writers).flatMap { steps(ofWriter: $0, in: state) } + stepsOfRemoval(in: state)
      + stepsOfPrune(in: state) + stepsOfReader(in: state) + stepsOfDamage(in: state)
      + stepsOfSleeper(in: state)
  }
}

extension PruneModel.Writer {
  /// Whether the writer was ended after it had put a snapshot that has to be complete.
  var isLeftBehind: Bool { step == .dead && isPut && !isLate }
}
