internal import SandboxModel

extension LossCheck {
  /// Searches for a path that a rule without a class matches and that has a precious class.
  ///
  /// Only rules after the last one that gives a class to everything this rule matches can have
  /// given a precious class. Their patterns are intersected with that of the rule, and each
  /// resulting path is evaluated as the engine would.
  struct Search {
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
      case undecided
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
          var common = CommonPaths(
            rule.pattern, givers, steps: (cover + 1)..<max(index, cover + 1),
            limit: Self.pathsForRule, budget: budget)
          common.run(root)
          budget = common.budget
          for path in common.found {
            if let lost = lostClass(at: path, kind: kind, scope: scope, after: rule, index: index) {
              return .path(path, lost)
            }
          }
          if budget == 0 { return .undecided }
        }
      }
      return .none
    }

    /// Returns the last earlier rule that gives a class to everything that a rule matches, or -1 if
    /// there is none.
    private func cover(
      of rule: Rule, at index: Int, kind: ContainerKind, scope: CompiledPolicy.Scope
    ) -> Int {
      guard let path = rule.pattern.samples(depth: 1).first else { return -1 }
      let candidates = rules(matching: path, kind, scope, siblings: 0)
      return candidates.last { step in
        guard step < index, let earlier = policy.steps[step].rule else { return false }
        return policy.operations[step].keep.fields.contains(.dataClass)
          && earlier.conditions == Rule.Conditions() && earlier.versions.covers(rule.versions)
          && earlier.pattern.includes(rule.pattern)
      } ?? -1
    }

    /// Returns the class of the data at a path that is lost after a rule, or nil if no possible
    /// entry is lost.
    private func lostClass(
      at path: [[UInt8]], kind: ContainerKind, scope: CompiledPolicy.Scope, after rule: Rule,
      index: Int
    ) -> DataClass? {
      for siblings in Set([UInt64.max, siblings(of: rule)]) {
        let steps = rules(matching: path, kind, scope, siblings: siblings)
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

    /// Returns the rules that match a path if every directory on it contains the siblings.
    private func rules(
      matching path: [[UInt8]], _ kind: ContainerKind, _ scope: CompiledPolicy.Scope,
      siblings: UInt64
    ) -> [Int] {
      let roots = Set([.all, scope]).compactMap { policy.trie.root(kind, $0) }
      return policy.trie.steps(matching: path, from: roots) { _ in siblings }
    }

    private func siblings(of rule: Rule) -> UInt64 {
      var mask: UInt64 = 0
      for (index, name) in policy.siblingNames.enumerated()
      where rule.conditions.siblings.contains(where: { Array($0.utf8) == name }) {
        mask |= 1 << UInt64(index)
      }
      return mask
    }
  }
}

extension LossCheck {
  /// Finds paths that a pattern matches together with patterns of an automaton.
  ///
  /// It follows the pattern and the automaton in parallel and visits each pair of positions once,
  /// so it can miss additional ways in which two patterns meet.
  struct CommonPaths {
    private let pattern: Pattern
    private let trie: PatternTrie
    /// The steps of the rules to consider.
    private let steps: Range<Int>
    private let limit: Int
    private var path: [[UInt8]] = []
    private var seen: Set<Pair> = []
    /// The number of pairs that may still be visited.
    private(set) var budget: Int
    private(set) var found: [[[UInt8]]] = []

    private struct Pair: Hashable {
      let position: Int
      let node: UInt32
    }

    init(_ pattern: Pattern, _ trie: PatternTrie, steps: Range<Int>, limit: Int, budget: Int) {
      self.pattern = pattern
      self.trie = trie
      self.steps = steps
      self.limit = limit
      self.budget = budget
    }

    /// Searches from a root of the automaton.
    mutating func run(_ root: Int) { if !steps.isEmpty { visit(0, UInt32(root)) } }

    private mutating func visit(_ position: Int, _ node: UInt32) {
      guard budget > 0, found.count < limit,
        seen.insert(Pair(position: position, node: node)).inserted
      else { return }
      budget -= 1
      let here = trie.nodes[Int(node)]
      record(here, position)
      guard Int(here.lastStep) > steps.lowerBound else { return }
      if let depth = here.anyDepth { visit(position, depth) }
      guard position < pattern.components.count else { return }
      switch pattern.components[position] {
      case .anyDepth:
        visit(position + 1, node)
        for edge in here.literals {
          descend(trie.literals.name(edge.literal), position: position, node: edge.node)
        }
        for edge in here.globs {
          if let name = trie.globs[Int(edge.glob)].sample(filling: Pattern.Name.filler) {
            descend(name, position: position, node: edge.node)
          }
        }
      case .name(let component): follow(component, from: here, node: node, position: position)
      }
    }

    /// Follows a component of the pattern along the edges that can match the same name.
    private mutating func follow(
      _ component: Pattern.Name, from here: PatternTrie.Node, node: UInt32, position: Int
    ) {
      if here.loops, let name = component.samples.first {
        descend(name, position: position + 1, node: node)
      }
      for name in component.literals {
        guard let literal = trie.literals.find(name.span) else { continue }
        for target in here.targets(of: literal) {
          descend(name, position: position + 1, node: target)
        }
      }
      if !component.globs.isEmpty {
        for edge in here.literals {
          let name = trie.literals.name(edge.literal)
          if component.matches(name) { descend(name, position: position + 1, node: edge.node) }
        }
      }
      for edge in here.globs {
        let other = Pattern.Name(literals: [], globs: [trie.globs[Int(edge.glob)]])
        for name in component.commonNames(with: other).prefix(2) {
          descend(name, position: position + 1, node: edge.node)
        }
      }
    }

    private mutating func descend(_ name: [UInt8], position: Int, node: UInt32) {
      path.append(name)
      visit(position, node)
      path.removeLast()
    }

    /// Records the path if both the pattern and a rule match here.
    private mutating func record(_ here: PatternTrie.Node, _ position: Int) {
      let rest = Pattern(text: "", components: Array(pattern.components[position...]))
      for accepted in here.accepted where steps.contains(Int(accepted.step)) {
        if rest.components.allSatisfy(\.isAnyDepth) {
          found.append(path)
        } else if accepted.isSticky {
          found += rest.samples(depth: 0).prefix(limit).map { path + $0 }
        }
      }
    }
  }
}

extension Rule {
  /// Entries that satisfy the rule's conditions: of each type, with the smallest and the largest
  /// size.
  fileprivate var possibleFacts: [EntryFacts] {
    let condition = Operation.Condition(conditions)
    let age = max(condition.olderThan + 1, 0)
    let sizes = [max(condition.largerThan + 1, 0), Int64.max]
    return EntryType.allCases.flatMap { type in
      sizes.map { EntryFacts(type, size: $0, modified: -age) }
    }.filter { condition.holds($0, scanStart: 0) }
  }
}
