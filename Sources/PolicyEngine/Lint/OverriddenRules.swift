internal import SandboxModel

/// Finds rules without effect, because a later rule of the same list sets the same values for
/// everything that they match. Every reported rule is without effect. Rules that several later
/// rules override only jointly are not found, and only the first rules of lists with very many
/// globs are checked.
struct OverriddenRules {
  /// The maximum number of comparisons of a name with a glob for one list: a few seconds.
  private static let budget = 4_000_000

  private(set) var issues: [PolicyIssue] = []

  init(_ document: PolicyDocument) {
    for list in document.ruleLists where list.count > 1 { check(list) }
  }

  private mutating func check(_ list: [Rule]) {
    let operations = list.map {
      Operation(
        $0.settings, $0.platform, condition: EntryCondition($0.conditions), classes: [:])
    }
    var trie = PatternTrie()
    for (index, rule) in list.enumerated() {
      trie.insert(rule.pattern, kind: .data, scope: .all, step: index, siblings: 0)
    }
    guard let root = trie.root(.data, .all) else { return }
    let limit = Self.budget / max(trie.globs.count, 1)
    for (index, rule) in list.prefix(limit).enumerated() {
      // A rule that matches everything this one matches also matches any single path of it.
      guard let path = rule.pattern.samples(depth: 1).first else { continue }
      let others = trie.steps(matching: path, from: [root]) { _ in 0 }
      let later = others.first { other in
        other > index && operations[other].sets(allOf: operations[index])
          && list[other].covers(rule)
      }
      if let later { add(rule, list[later]) }
    }
  }

  private mutating func add(_ rule: Rule, _ later: Rule) {
    issues.append(
      PolicyIssue(
        .overridden, at: rule.location,
        "the rule '\(rule.id)' has no effect: '\(later.id)' in line \(later.location.line) always "
          + "overrides it",
        expected: "the general rule before the specific one"))
  }
}

extension Operation {
  /// Whether the operation sets every value that another one sets.
  fileprivate func sets(allOf other: Operation) -> Bool {
    keep.fields.isSuperset(of: other.keep.fields)
      && platform.fields.isSuperset(of: other.platform.fields)
  }
}

extension Rule {
  /// Whether the rule matches every entry that another rule matches.
  fileprivate func covers(_ other: Rule) -> Bool {
    kinds.isSuperset(of: other.kinds) && versions.covers(other.versions)
      && conditions.cover(other.conditions)
      && (conditions.siblings.isEmpty || pattern == other.pattern)
      && pattern.includes(other.pattern)
  }
}
