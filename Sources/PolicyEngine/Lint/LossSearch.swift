internal import SandboxModel

/// Searches for a path that a rule without a class matches and that has a precious class.
///
/// Only rules after the last one that gives a class to everything this rule matches can have given
/// a precious class. Their patterns are intersected with that of the rule, and each resulting path
/// is evaluated as the engine would.
struct LossSearch {
  private let policy: CompiledPolicy
  /// The rules that give precious classes, by the index of their step.
  private let givers: PatternTrie
  /// The number of steps left for all rules together; the limit corresponds to a few seconds.
  private var budget: Int

  /// The maximum number of paths tried for a rule and a container kind.
  private static let pathsForRule = 64

  /// The result of a search.
  enum Outcome {
    /// No data is lost.
    case none
    /// Data at this path, with this class, is lost.
    case path([[UInt8]], DataClass)
    /// Undecided: the policy has too many such rules.
    case doubt
  }

  init(_ policy: CompiledPolicy, budget: Int = 5_000_000) {
    self.policy = policy
    self.budget = budget
    var givers = PatternTrie()
    for (index, step) in policy.steps.enumerated() {
      guard let rule = step.rule, step.operation.keep.fields.contains(.dataClass),
        step.operation.keep.verdict.dataClass.isPrecious
      else { continue }
      for kind in rule.kinds {
        givers.insert(rule.pattern, kind: kind, scope: step.scope, step: index, siblings: 0)
      }
    }
    givers.finish(policy.operations)
    self.givers = givers
  }

  mutating func find(_ rule: Rule, _ index: Int) -> Outcome {
    let scope = policy.steps[index].scope
    let kinds = policy.layout.map { Set($0.containerKinds) } ?? Set(ContainerKind.allCases)
    for kind in rule.kinds.intersection(kinds).sorted() {
      for path in [2, 1, 0].flatMap(rule.pattern.samples) {
        if let lost = lostClass(at: path, kind: kind, scope: scope, after: rule, index: index) {
          return .path(path, lost)
        }
      }
      let cover = cover(of: rule, at: index, kind: kind, scope: scope)
      for root in Set([.all, scope]).compactMap({ givers.root(kind, $0) }) {
        var common = CommonPathsInTrie(
          rule.pattern, givers, steps: (cover + 1)..<max(index, cover + 1),
          limit: Self.pathsForRule, budget: budget)
        common.run(root)
        budget = common.budget
        for path in common.found {
          if let lost = lostClass(at: path, kind: kind, scope: scope, after: rule, index: index) {
            return .path(path, lost)
          }
        }
        if budget == 0 { return .doubt }
      }
    }
    return .none
  }

  /// Returns the last earlier rule that gives a class to everything that a rule matches, or -1 if
  /// there is none.
  private func cover(
    of rule: Rule, at index: Int, kind: ContainerKind, scope: CompiledStep.Scope
  ) -> Int {
    guard let path = rule.pattern.samples(depth: 1).first else { return -1 }
    let candidates = policy.rules(matching: path, kind, scope, siblings: 0)
    return candidates.last { step in
      guard step < index, let earlier = policy.steps[step].rule else { return false }
      return policy.operations[step].keep.fields.contains(.dataClass)
        && earlier.conditions == Rule.Conditions() && earlier.versions.covers(rule.versions)
        && earlier.pattern.includes(rule.pattern)
    } ?? -1
  }

  /// Returns the class of the data at a path that is lost after a rule, or nil if no possible entry
  /// is lost.
  private func lostClass(
    at path: [[UInt8]], kind: ContainerKind, scope: CompiledStep.Scope, after rule: Rule,
    index: Int
  ) -> DataClass? {
    for siblings in Set([UInt64.max, policy.siblings(of: rule)]) {
      let steps = policy.rules(matching: path, kind, scope, siblings: siblings)
      guard steps.contains(index) else { continue }
      for facts in rule.possibleFacts {
        var verdicts = policy.start(kind)
        for step in steps where step <= index {
          let operation = policy.operations[step]
          if operation.condition.holds(facts, scanStart: 0) {
            operation.apply(to: &verdicts, belowCache: false)
          }
        }
        if verdicts.keep.losesSomething { return verdicts.keep.dataClass }
      }
    }
    return nil
  }
}

extension CompiledPolicy {
  /// Returns the rules that match a path if every directory on it contains the siblings.
  fileprivate func rules(
    matching path: [[UInt8]], _ kind: ContainerKind, _ scope: CompiledStep.Scope, siblings: UInt64
  ) -> [Int] {
    let roots = Set([.all, scope]).compactMap { trie.root(kind, $0) }
    return trie.steps(matching: path, from: roots) { _ in siblings }
  }

  fileprivate func siblings(of rule: Rule) -> UInt64 {
    var mask: UInt64 = 0
    for (index, name) in siblingNames.enumerated()
    where rule.conditions.siblings.contains(where: { Array($0.utf8) == name }) {
      mask |= 1 << UInt64(index)
    }
    return mask
  }
}

extension Rule {
  /// Entries that satisfy the rule's conditions: of each type, with the smallest and the largest
  /// size.
  fileprivate var possibleFacts: [EntryFacts] {
    let condition = EntryCondition(conditions)
    let age = max(condition.olderThan + 1, 0)
    let sizes = [max(condition.largerThan + 1, 0), Int64.max]
    return EntryType.allCases.flatMap { type in
      sizes.map { EntryFacts(type, size: $0, modified: -age) }
    }.filter { condition.holds($0, scanStart: 0) }
  }
}
