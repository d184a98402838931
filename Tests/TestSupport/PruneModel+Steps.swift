// The programs that run beside the prune.
extension PruneModel {
  func stepsOfRemoval(in state: State) -> [State] {
    func step(_ change: (inout State) -> Void) -> State {
      var changed = state
      change(&changed)
      return changed
    }
    switch state.removal.step {
    case .idle: return removals == 0 ? [] : [step { $0.removal.step = .leased }]
    case .leased:
      return targets(in: state).map { target in
        step { state in
          (state.removal.step, state.removal.target) = (.away, target)
          Self.set(.away, of: target, in: &state)
        }
      }
    case .away:
      // The snapshot is removed, or was pinned and is moved back; a crash is like a removal.
      return [WriterStep.dead, .committed].map { outcome in
        step { state in
          Self.set(outcome, of: state.removal.target, in: &state)
          state.removal.target = nil
          if outcome == .dead { end(&state.removal) } else { state.removal.step = .back }
        }
      }
    case .back:
      return [
        step { state in
          state.removal.hasLeft =
            state.removal.hasLeft
            || (state.isPruning && rule != .removalThatMovesBackLeavesItsLease)
          end(&state.removal)
        }
      ]
    case .done: return []
    }
  }

  private func end(_ removal: inout Removal) {
    removal.runs += 1
    removal.step = removal.runs < removals ? .idle : .done
  }

  /// The snapshots that a removal can move: those of writers by their numbers, nil for the old one.
  private func targets(in state: State) -> [UInt8?] {
    let old: [UInt8?] = state.hasOldSnapshot ? [nil] : []
    return old + Writers.indices.filter { state.writers[$0].step == .committed }.map { UInt8($0) }
  }

  private static func set(_ step: WriterStep, of target: UInt8?, in state: inout State) {
    if let target {
      state.writers[Int(target)].step = step
    } else {
      state.hasOldSnapshot = step == .committed
    }
  }

  func steps(ofWriter number: Int, in state: State) -> [State] {
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
    case .leased where state.damage == .damaged: next += mends(by: number, in: state)
    case .leased:
      step { state, writer in
        writer.step = .listedCondemned
        writer.seen = state.condemned.objects
        writer.avoids = rule != .writersSkipCondemned ? state.condemned.packs(of: 3) : 0
      }
    case .listedCondemned:
      step { state, writer in
        writer.step = .listedPacks
        let usable = state.packs & state.indexed & ~writer.avoids
        writer.reliesOn = usable == 0 ? nil : UInt8(usable.trailingZeroBitCount)
        writer.avoids = 0
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
    case .indexed where objects:
      step { ($1.step, $1.hasPending) = (.pending, true) }
    case .pending, .checked, .put, .renewed, .renewedListed:
      commits(writer, needs: writer.reliesOn.map { 1 << $0 } ?? own, in: state, step)
    case .indexed:
      step { _, writer in
        let mayCommit = writer.hasLease || rule == .commitNeedsTheLease
        writer = Writer(step: mayCommit ? .committed : .refused)
      }
    case .committed, .refused, .dead, .away: break
    }
    if ![.idle, .committed, .refused, .dead, .away].contains(writer.step) {
      // It is killed; its lease stays until it expires.
      step { _, writer in
        var dead = Writer(step: .dead, hasLease: writer.hasLease, seen: writer.seen)
        dead.hasPending = writer.hasPending
        (dead.isPut, dead.isLate) = (writer.isPut, writer.isLate)
        writer = dead
      }
    }
    return next
  }

  /// The commit in a store without rename.
  ///
  /// - Parameter needs: the pack that the snapshot needs.
  private func commits(
    _ writer: Writer, needs: UInt8, in state: State,
    _ step: ((inout State, inout Writer) -> Void) -> Void
  ) {
    switch writer.step {
    case .pending: step { looks(&$1, then: .checked) }
    case .checked:
      step { _, writer in
        (writer.step, writer.isPut) = (.put, true)
        writer.isLate = writer.isLate || !writer.hasPending
      }
    case .put:
      if rule == .commitLooksAgain {
        step { $1 = Writer(step: .committed) }
      } else {
        step { looks(&$1, then: .committed) }
        // It may not remove objects: it marks its lease as dead, and the pending object stays.
        if writer.hasLease { step { $1 = Writer(step: .committed, hasPending: true) } }
      }
    case .renewed:
      step { state, writer in
        writer.step = .renewedListed
        writer.seen = state.condemned.objects
        writer.avoids = state.condemned.packs(of: 3)
      }
    default:
      step { state, writer in
        let isThere = state.packs & state.indexed & needs & ~writer.avoids != 0
        writer.avoids = 0
        guard isThere || rule == .renewalChecksPacks else {
          writer = Writer(step: .refused)
          return
        }
        writer.hasPending = true
        writer.step = writer.isPut ? .put : .pending
      }
    }
  }

  /// A writer looks for the mark of its lease: it continues, or takes a new lease once.
  private func looks(_ writer: inout Writer, then step: WriterStep) {
    if writer.hasLease {
      let hasRenewed = writer.hasRenewed
      if step == .committed { writer = Writer(step: step) } else { writer.step = step }
      writer.hasRenewed = hasRenewed
    } else if writer.hasRenewed {
      writer = Writer(step: .refused)
    } else {
      (writer.step, writer.hasLease, writer.seen) = (.renewed, true, 0)
      writer.hasRenewed = true
    }
  }

  /// A prune that lost the right carries out its pending action.
  func stepsOfSleeper(in state: State) -> [State] {
    guard state.hasSleeper else { return [] }
    var changed = state
    changed.packs &= ~state.lateDeletion
    changed.indexed &= ~state.lateIndex
    if state.lateCondemned != 0, state.number < 2 {
      changed.condemned[Int(state.number)] = state.lateCondemned
      changed.number += 1
    }
    (changed.lateDeletion, changed.lateIndex, changed.lateCondemned) = (0, 0, 0)
    return [changed]
  }

  /// Without rename, a prune may lose the right and its lease while it sleeps before its next
  /// action.
  private func stepsOfFallingAsleep(in state: State) -> [State] {
    guard objects, !state.hasSleeper, state.prune.runs == 0 else { return [] }
    var asleep = state
    switch state.prune.step {
    case .planned, .copied:
      var condemning = state
      condemn(&condemning)
      guard condemning.number > state.number else { return [] }
      asleep.lateCondemned = condemning.condemned[Int(state.number)]
    case .checkedAgain:
      var decided = state
      decide(&decided)
      asleep.lateIndex = state.indexed & ~decided.indexed
    case .indexWritten: asleep.lateDeletion = state.prune.sweeps & ~state.indexed & state.packs
    default: return []
    }
    guard asleep.hasSleeper else { return [] }
    asleep.hasSign = true
    asleep.prune = Prune(step: .dead, runs: state.prune.runs)
    return [asleep]
  }

  /// A condemned object is damaged.
  func stepsOfDamage(in state: State) -> [State] {
    guard hasDamage, state.damage == .none else { return [] }
    return [1, 2].filter { state.condemned.objects & $0 != 0 }.map { object in
      var changed = state
      (changed.damage, changed.damaged) = (.damaged, object)
      return changed
    }
  }

  /// A writer finds the damaged object, and removes it if it gets the right to remove objects. It
  /// gets the right of a running prune only if the prune has slept for an hour. Then it lists
  /// again.
  private func mends(by number: Int, in state: State) -> [State] {
    var (refused, mended) = (state, state)
    mended.mend()
    if objects, state.hasSign || state.isPruning, rule != .mendingWaitsForSleepers {
      refused.writers[number] = Writer(step: .refused)
      return [refused]
    }
    guard state.isPruning, rule != .mendingNeedsTheRight else { return [mended] }
    refused.writers[number] = Writer(step: .refused)
    if rule != .mendingRemovesExpiredLeases { mended.prune.hasLease = false }
    return [refused, mended]
  }

  /// A reader finds the old snapshot, and takes a lease, before or after it reads the snapshot's
  /// trees. Then it lists the index and the snapshots, for the first time or again, relies on the
  /// snapshot if it still exists, and ends. Packs in the index at that time must stay until then.
  func stepsOfReader(in state: State) -> [State] {
    guard hasReader else { return [] }
    var changed = state
    switch state.reader {
    case .idle where state.hasOldSnapshot: changed.reader = .early
    case .early: changed.reader = .leased
    case .leased where state.hasOldSnapshot || rule == .readersListAgain:
      changed.reader = .opened
    case .leased, .opened: changed.reader = .done
    default: return []
    }
    return [changed]
  }
}

// The prune.
extension PruneModel {
  func stepsOfPrune(in state: State) -> [State] {
    var next: [State] = []
    func step(_ change: (inout State) -> Void) {
      var changed = state
      change(&changed)
      next.append(changed)
    }
    switch state.prune.step {
    // It writes and removes objects through its lease, so it ends if another program removed the
    // lease.
    case .marked, .planned, .copied, .checkedAgain, .indexWritten:
      if state.prune.hasLease {
        next += stepsWithLease(in: state) + stepsOfFallingAsleep(in: state)
      }
    case .idle:
      if state.hasSign, !state.hasSleeper {
        // A day has passed.
        step { $0.hasSign = false }
      }
      // The clock may have let any lease expire before, in any combination.
      for gone in 0..<8 {
        step { state in
          for number in 0..<2 where gone >> number & 1 == 1 {
            // The remains of a prune that has been dead for a day.
            if !state.writers[number].hasLease { state.writers[number].hasPending = false }
            state.writers[number].hasLease = false
          }
          if gone >> 2 == 1 { state.removal.hasLeft = false }
          if state.damage == .damaged, !state.hasSign { state.mend() }
          (state.prune.isNeeded, state.prune.hasLease) = (isNeeded(in: state), true)
          if condemnsUnindexed { state.prune.listed = state.packs }
          state.prune.step = .listed
        }
      }
    case .listed:
      step { state in
        if objects, state.damaged != 0, state.hasSign, rule != .mendingWaitsForSleepers {
          state.prune = Prune(step: .dead, runs: state.prune.runs)
          return
        }
        state.prune.view = state.indexed
        state.prune.objects = state.condemned.objects & ~state.damaged
        state.prune.condemned = state.condemned.packs(of: state.prune.objects)
        Self.mark(&state)
        state.prune.step = state.prune.objects != 0 ? .condemned : .marked
      }
    case .condemned:
      step { state in
        take(state.prune.objects, in: &state)
        state.prune.step = state.prune.due == 0 ? ended(state) : .leasesChecked
      }
    case .leasesChecked:
      step { state in
        if rule != .sweepListsSnapshotsAfterLeases, isNeeded(in: state), !state.prune.isNeeded {
          (state.prune.isNeeded, state.prune.isLost) = (true, true)
        }
        state.prune.step = .listedAgain
      }
    case .listedAgain:
      step { state in
        state.prune.view |= state.indexed
        if state.prune.isLost { Self.mark(&state) }
        if rule != .sweepListsLeasesAgain {
          let all = rule == .secondLookDropsOnly ? state.prune.objects : state.prune.due
          take(all, in: &state)
        }
        state.prune.step = state.prune.due == 0 ? ended(state) : .checkedAgain
      }
    case .done, .dead:
      if state.prune.runs < 1 { step { $0.prune = Prune(runs: $0.prune.runs + 1) } }
    }
    if state.isPruning { step { $0.prune = Prune(step: .dead, runs: $0.prune.runs) } }
    return next
  }

  /// Whether the listed snapshots, or the pending ones, need the blob.
  private func isNeeded(in state: State) -> Bool {
    state.isListed || state.isPending && rule != .pendingIsNeeded
  }

  private func stepsWithLease(in state: State) -> [State] {
    var changed = state
    switch state.prune.step {
    case .marked: return plans(in: state)
    case .planned, .copied: condemn(&changed)
    case .checkedAgain: decide(&changed)
    default:
      let removed = state.prune.sweeps & ~state.indexed & state.packs
      changed.packs &= ~removed
      changed.removedUnindexed |= removed & state.prune.listed & ~state.prune.view
      changed.prune.condemned &= ~state.condemned.packs(of: state.prune.due)
      changed.prune.objects &= ~state.prune.due
      changed.end(state.prune.due)
      (changed.prune.due, changed.prune.sweeps) = (0, 0)
      changed.prune.marks &= changed.packs
      changed.prune.step = state.prune.hasPlanned ? .done : .marked
    }
    return [changed]
  }

  /// Marks one copy of the blob if it is needed: in a pack that is not condemned if there is one.
  private static func mark(_ state: inout State) {
    guard state.prune.isNeeded else { return }
    let existing = state.prune.view & state.packs
    let stays = existing & ~state.prune.condemned
    let best = stays != 0 ? stays : existing
    state.prune.isLost = best == 0
    if best != 0 { state.prune.marks |= 1 << UInt8(best.trailingZeroBitCount) }
  }

  /// The step after a sweep that has to wait.
  private func ended(_ state: State) -> PruneStep { state.prune.hasPlanned ? .done : .marked }

  /// Makes those of the given objects due that every program with a lease has seen.
  private func take(_ objects: UInt8, in state: inout State) {
    let isBlocked =
      state.removal.hasLease
      || ([.leased, .opened].contains(state.reader) && rule != .readersHaveLeases)
    state.prune.due = isBlocked ? 0 : objects
    if rule != .sweepWaitsForEarlierLeases {
      for number in Writers.indices where state.writers[number].hasLease {
        state.prune.due &= state.writers[number].seen
      }
    }
    state.prune.sweeps = state.condemned.packs(of: state.prune.due)
  }

  /// Either removes packs without a mark only, or copies the blob of one with a mark as well.
  private func plans(in state: State) -> [State] {
    var planned = state
    planned.prune.hasPlanned = true
    planned.prune.step = .planned
    var copying = planned
    let reliable = state.prune.marks & state.packs & ~state.prune.condemned
    guard reliable != 0, state.packs & 8 == 0 else { return [planned] }
    copying.packs |= 8
    copying.indexed |= 8
    copying.prune.step = .copied
    return [planned, copying]
  }

  private func condemn(_ state: inout State) {
    let known = state.prune.view & state.packs & state.indexed & ~state.prune.condemned
    // While the blob is lost, a pack that no index names may contain it.
    let isLost = state.prune.isNeeded && state.prune.isLost
    let unindexed = isLost ? 0 : state.prune.listed & state.packs & ~state.prune.view
    let usual = state.prune.step == .copied ? known : known & ~state.prune.marks
    let packs = usual | unindexed & ~state.prune.condemned
    guard packs != 0 else {
      state.prune.step = .done
      return
    }
    state.condemned[Int(state.number)] = packs
    state.number += 1
    state.prune.objects |= state.number
    state.prune.condemned |= packs
    state.prune.step = .condemned
  }

  /// A condemned pack stays if it has a mark and no other usable pack has the blob. Otherwise the
  /// copy is marked, and the index is written without the pack.
  private func decide(_ state: inout State) {
    let others = state.prune.view & state.packs & ~state.prune.condemned
    let marked = state.prune.sweeps & state.prune.marks
    if marked != 0, others == 0, state.hasSign, rule != .keptPacksWaitForSleepers {
      (state.prune.due, state.prune.sweeps) = (0, 0)
      state.prune.step = state.prune.hasPlanned ? .done : .marked
      return
    }
    if marked != 0 {
      if others == 0 {
        state.prune.sweeps &= ~marked
      } else if rule != .neededCopiesAreMarked {
        state.prune.marks |= 1 << UInt8(others.trailingZeroBitCount)
      }
    }
    state.indexed &= ~state.prune.sweeps
    state.prune.step = .indexWritten
  }
}

extension PruneModel.State {
  /// Removes the damaged condemned object.
  fileprivate mutating func mend() { end(damaged) }

  /// Removes condemned objects, a damaged one as well.
  fileprivate mutating func end(_ objects: UInt8) {
    condemned.remove(objects)
    if damaged & objects != 0 { (damage, damaged) = (.mended, 0) }
  }
}
