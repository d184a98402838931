/// The rules by which one program at a time gets the right to remove objects, in a store with
/// rename (docs/repository-format.md, "Removing objects"), as a model whose states are all visited:
/// every interleaving of the steps of three programs, each of which may be killed, or sleep for an
/// hour, at any step. Some may be of an earlier version, which creates the directory, names itself
/// in it, and removes its content before it removes the directory.
///
/// A program that sleeps has lost its lease, so that it can remove nothing (`PruneModel`): another
/// program takes over its right, as from a killed one.
package struct RightModel {
  /// The rules of the format; a test drops one.
  package enum Rule: CaseIterable, Sendable {
    case directoryIsMadeElsewhere, releaseRenamesFirst, ownersAreListed
  }

  /// Whether each program is of an earlier version.
  let isEarlier: [Bool]
  let rule: Rule?

  /// Creates a model of three programs, in which one rule is dropped.
  package init(earlier: Int = 0, without rule: Rule? = nil) {
    isEarlier = (0..<3).map { $0 < earlier }
    self.rule = rule
  }

  /// The result of an exploration.
  package struct Result {
    package var states = 0
    /// Descriptions of states that the rules must exclude: two programs that both consider
    /// themselves the owner, and a right without an owner that no program is about to change.
    package var violations: [String] = []
    /// The states in which a program holds the right, in which one holds it after another one was
    /// killed with it, and in which a program has lost it.
    package var held = 0
    package var takenOver = 0
    package var lost = 0
    /// The states in which a program of an earlier version was killed and left a right without an
    /// owner.
    package var blocked = 0
  }

  enum Step: UInt8 {
    case idle, free, created, heard, named, made, placed, holding, released, emptied
    /// It has found a right to take over, and has renamed it.
    case found, moved
    case done
  }

  /// A directory of the right: the programs that have a file in it, and whether it has a heartbeat.
  struct Right: Hashable {
    var owners: UInt8 = 0
    var isAlive = false
  }

  struct Program: Hashable {
    var step = Step.idle
    var isKilled = false
    var hasSlept = false
    /// Its directory under a private name.
    var aside: Right?
    /// The owners of the right that it takes over.
    var stale: UInt8 = 0
    var hasTakenOver = false
  }

  struct State: Hashable {
    var right: Right?
    var programs = [Program](repeating: Program(), count: 3)
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
    let holders = state.programs.indices.filter { number in
      state.programs[number].step == .holding && state.owns(number)
    }
    if holders.count > 1 { result.violations.append("two programs have the right: \(state)") }
    if !holders.isEmpty { result.held += 1 }
    if holders.contains(where: { state.programs[$0].hasTakenOver }) { result.takenOver += 1 }
    if state.programs.indices.contains(where: { number in
      state.programs[number].step == .holding && !state.owns(number)
    }) {
      result.lost += 1
    }
    guard let right = state.right, right.owners == 0 else { return }
    if !isEarlier.contains(true) {
      result.violations.append("a right has no owner: \(state)")
    } else if !isBeingChanged(state) {
      result.blocked += 1
    }
  }

  /// Whether a program that has not been killed is between two steps that change the right.
  private func isBeingChanged(_ state: State) -> Bool {
    state.programs.contains { program in
      !program.isKilled && ![.idle, .free, .done].contains(program.step)
    }
  }

  private func successors(of state: State) -> [State] {
    state.programs.indices.flatMap { number -> [State] in
      let program = state.programs[number]
      if program.isKilled || program.step == .done { return [] }
      var (killed, asleep) = (state, state)
      killed.programs[number].isKilled = true
      asleep.programs[number].hasSlept = true
      // A prune removes the remains of its lease, and its private directory with them.
      asleep.programs[number].aside = nil
      return steps(of: number, in: state) + [killed] + (program.hasSlept ? [] : [asleep])
    }
  }
}

// MARK: - The steps

extension RightModel {
  private func steps(of number: Int, in state: State) -> [State] {
    var next = state
    let own = UInt8(1) << UInt8(number)
    switch state.programs[number].step {
    case .idle: look(number, &next)
    case .free:
      if isEarlier[number] || rule == .directoryIsMadeElsewhere {
        // It creates the directory if there is none.
        next.programs[number].step = state.right == nil ? .created : .done
        if state.right == nil { next.right = Right() }
      } else {
        next.programs[number].aside = Right(owners: own, isAlive: true)
        next.programs[number].step = .made
      }
    case .created: touch(number, &next, then: .heard) { $0.isAlive = true }
    case .heard: touch(number, &next, then: .named) { $0.owners |= own }
    case .made: place(number, &next)
    case .named, .placed:
      let isAlone = state.right?.owners == own
      let isDone = rule == .ownersAreListed ? state.owns(number) : isAlone
      next.programs[number].step = isDone ? .holding : .done
      if !isDone { next.right?.owners &= ~own }
      // The last one that gives up removes the directory.
      let isLeft = state.owns(number) && next.right?.owners == 0
      if !isDone, isLeft, !isEarlier[number] { next.right = nil }
    case .holding:
      next.programs[number].step = state.owns(number) ? .released : .done
    case .released: release(number, &next)
    case .emptied:
      if state.right?.owners == 0 { next.right = nil }
      next.programs[number].step = .done
    case .found:
      // Only one of two programs can rename it.
      next.programs[number].aside = state.right
      next.right = nil
      next.programs[number].step = state.right == nil ? .done : .moved
    case .moved:
      // It is removed in any case: if it is a different one by now, neither program has it.
      let isStale = state.programs[number].aside?.owners == state.programs[number].stale
      next.programs[number].aside = nil
      next.programs[number].step = isStale ? .free : .done
      next.programs[number].hasTakenOver = isStale
    case .done: return []
    }
    return [next]
  }

  /// Looks for the right: takes it if it is free, takes it over if its owner was killed or sleeps,
  /// and gives up otherwise.
  private func look(_ number: Int, _ state: inout State) {
    guard let right = state.right else {
      state.programs[number].step = .free
      return
    }
    let isStale = state.programs.indices.allSatisfy { other in
      let program = state.programs[other]
      let isGone = program.isKilled || program.hasSlept
      // Without an owner it is taken over after an hour: each other program sleeps or has ended.
      let concerns = right.owners == 0 ? other != number : right.owners >> UInt8(other) & 1 == 1
      return !concerns || isGone || right.owners == 0 && program.step == .done
    }
    state.programs[number].step = isStale ? .found : .done
    state.programs[number].stale = right.owners
  }

  /// Writes a file into the directory, whoever owns it by now; gives up if there is no directory.
  private func touch(
    _ number: Int, _ state: inout State, then step: Step, _ change: (inout Right) -> Void
  ) {
    guard var right = state.right else {
      state.programs[number].step = .done
      return
    }
    change(&right)
    state.right = right
    state.programs[number].step = step
  }

  /// Renames the private directory, which replaces only an empty one.
  private func place(_ number: Int, _ state: inout State) {
    let isFree = state.right.map { $0 == Right() } ?? true
    if let made = state.programs[number].aside, isFree {
      state.right = made
      state.programs[number].step = .placed
    } else {
      state.programs[number].step = .done
    }
    state.programs[number].aside = nil
  }

  /// Renames the directory, whoever owns it by now, and removes it under its private name; or
  /// removes its content first.
  private func release(_ number: Int, _ state: inout State) {
    if isEarlier[number] || rule == .releaseRenamesFirst {
      state.right?.owners &= ~(UInt8(1) << UInt8(number))
      state.programs[number].step = .emptied
    } else {
      state.right = nil
      state.programs[number].step = .done
    }
  }
}

extension RightModel.State {
  /// Whether a program finds its file in the directory of the right.
  fileprivate func owns(_ number: Int) -> Bool {
    right.map { $0.owners >> UInt8(number) & 1 == 1 } ?? false
  }
}
