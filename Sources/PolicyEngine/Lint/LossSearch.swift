internal import SandboxModel

/// Looks for a path that a rule of no class means and whose class is precious there.
///
/// Only rules behind the last one that gives everything a class that this rule means can have given
/// a precious one. Their patterns are fitted together with the rule's, and each path that comes out
/// is judged as the engine would judge it.
struct LossSearch {
  private let policy: CompiledPolicy
  /// The rules that give precious classes, each at its place among the policy's steps.
  private let givers: PatternTrie
  /// How many steps may yet be taken for all rules together: seconds at worst.
  private var budget: Int

  /// How many paths are tried for a rule and a kind of container.
  private static let pathsForRule = 64

  /// What is found.
  enum Outcome {
    /// Nothing is lost.
    case none
    /// This path is, which is of that class.
    case path([[UInt8]], DataClass)
    /// The policy has too many such rules to say.
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
        if let lost = lostClass(path, kind, scope, rule, index) { return .path(path, lost) }
      }
      let cover = cover(rule, index, kind, scope)
      for root in Set([.all, scope]).compactMap({ givers.root(kind, $0) }) {
        var common = CommonPathsInTrie(
          rule.pattern, givers, steps: (cover + 1)..<max(index, cover + 1),
          limit: Self.pathsForRule, budget: budget)
        common.run(root)
        budget = common.budget
        for path in common.found {
          if let lost = lostClass(path, kind, scope, rule, index) { return .path(path, lost) }
        }
        if budget == 0 { return .doubt }
      }
    }
    return .none
  }

  /// The last earlier rule that gives a class to everything that a rule means; -1 for none.
  private func cover(
    _ rule: Rule, _ index: Int, _ kind: ContainerKind, _ scope: CompiledStep.Scope
  ) -> Int {
    guard let path = rule.pattern.samples(depth: 1).first else { return -1 }
    let candidates = policy.rules(matching: path, kind, scope, siblings: 0)
    return candidates.last { step in
      guard step < index, let earlier = policy.steps[step].rule else { return false }
      return policy.operations[step].keep.fields.contains(.dataClass)
        && earlier.conditions == Conditions() && earlier.versions.covers(rule.versions)
        && earlier.pattern.includes(rule.pattern)
    } ?? -1
  }

  /// The class of a path that is lost after a rule, when it is; for any entry that it may be.
  private func lostClass(
    _ path: [[UInt8]], _ kind: ContainerKind, _ scope: CompiledStep.Scope, _ rule: Rule,
    _ index: Int
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
  /// The rules that mean a path, when every directory on the way holds the siblings.
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
  /// Entries for which the rule's conditions hold: of each type, as small and as large as may be.
  fileprivate var possibleFacts: [EntryFacts] {
    let condition = EntryCondition(conditions)
    let age = max(condition.olderThan + 1, 0)
    let sizes = [max(condition.largerThan + 1, 0), Int64.max]
    return EntryType.allCases.flatMap { type in
      sizes.map { EntryFacts(type, size: $0, modified: -age) }
    }.filter { condition.holds($0, scanStart: 0) }
  }
}
