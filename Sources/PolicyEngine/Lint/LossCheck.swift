internal import SandboxModel

/// Finds rules after which something that nobody can make again is purgeable or discarded.
///
/// A rule that sets a class is judged by itself. For one that does not, the class is what earlier
/// layers and rules gave: a path is looked for that the rule means and whose class is precious
/// there, by fitting the rule's pattern together with those of the rules that give such classes. So
/// each loss that is named is real, with a path to show for it.
struct LossCheck {
  private let policy: CompiledPolicy
  /// The classes that the file lets go for a reason that it gives.
  private let allowed: Set<DataClass>
  private(set) var issues: [PolicyIssue] = []
  /// The rules that give precious classes, by place among the policy's steps.
  private let givers: [Int]

  /// How many paths are tried for each pair of rules.
  private static let pathsForPair = 32

  init(_ document: PolicyDocument, _ policy: CompiledPolicy) {
    self.policy = policy
    allowed = Set(document.classes.filter { $0.value.allowLoss != nil }.keys)
    givers = policy.steps.indices.filter { index in
      let keep = policy.operations[index].keep
      return keep.fields.contains(.dataClass) && keep.verdict.dataClass.isPrecious
    }
    for (dataClass, entry) in document.classes where entry.allowLoss == nil {
      check(dataClass, entry)
    }
    for (index, step) in policy.steps.enumerated()
    where step.location.file == document.source.name {
      switch step.origin {
      case .rule(let rule): if rule.allowLoss == nil { check(rule, index) }
      case .marker(let marker): check(marker, index)
      }
    }
  }

  private mutating func check(_ dataClass: DataClass, _ entry: PolicyDocument.ClassSettings) {
    guard dataClass.isPrecious else { return }
    let isPurged = entry.settings.purge.map { $0 != .never } ?? false
    guard isPurged || entry.settings.update == .discard else { return }
    add(
      entry.location, "the class \(dataClass.rawValue)", isPurged: isPurged, dataClass, nil)
  }

  private mutating func check(_ marker: Marker, _ index: Int) {
    let assignment = policy.operations[index].keep
    guard assignment.fields.contains(.purge) else { return }
    var verdict = Verdict.silent()
    assignment.apply(to: &verdict)
    guard verdict.losesSomething else { return }
    issues.append(
      PolicyIssue(
        .loss, at: marker.location,
        "the marker '\(marker.id)' makes \(verdict.dataClass.rawValue) below a cache purgeable",
        expected: "'class: cache' beside 'purge'"))
  }

  private mutating func check(_ rule: Rule, _ index: Int) {
    let keep = policy.operations[index].keep
    if keep.fields.contains(.dataClass) {
      let saysIt = rule.settings.purge != nil || rule.settings.update != nil
      if keep.verdict.losesSomething, saysIt || !allowed.contains(keep.verdict.dataClass) {
        add(
          rule.location, "the rule '\(rule.id)'", isPurged: keep.verdict.purge != .never,
          keep.verdict.dataClass, nil)
      }
      return
    }
    let purges = keep.fields.contains(.purge) && keep.verdict.purge != .never
    let discards = keep.fields.contains(.update) && keep.verdict.update == .discard
    guard purges || discards, let loss = findLoss(rule, index) else { return }
    add(rule.location, "the rule '\(rule.id)'", isPurged: purges, loss.dataClass, loss.path)
  }

  private mutating func add(
    _ place: PolicyLocation, _ what: String, isPurged: Bool, _ dataClass: DataClass,
    _ path: [[UInt8]]?
  ) {
    let fate = isPurged ? "purgeable" : "discarded on update"
    let witness = path.map { " (such as '\(PathText.text($0))')" } ?? ""
    issues.append(
      PolicyIssue(
        .loss, at: place, "after \(what), \(dataClass.rawValue)\(witness) is \(fate)",
        expected: "a class that may be lost, such as cache, or 'allow-loss: REASON'"))
  }

  // MARK: - Paths

  private func findLoss(_ rule: Rule, _ index: Int) -> (path: [[UInt8]], dataClass: DataClass)? {
    let scope = policy.steps[index].scope
    let kinds = policy.layout.map { Set($0.containerKinds) } ?? Set(ContainerKind.allCases)
    for kind in rule.kinds.intersection(kinds).sorted() {
      for path in [2, 1, 0].flatMap(rule.pattern.samples) {
        if let dataClass = lossClass(path, kind, scope, rule, index) { return (path, dataClass) }
      }
      for giver in givers where giver < index {
        guard let other = policy.steps[giver].rule, other.kinds.contains(kind),
          policy.steps[giver].scope == .all || policy.steps[giver].scope == scope
        else { continue }
        let paths = rule.pattern.commonPaths(with: other.pattern, limit: Self.pathsForPair)
        for path in paths {
          if let dataClass = lossClass(path, kind, scope, rule, index) { return (path, dataClass) }
        }
      }
    }
    return nil
  }

  /// The class of a path that is lost after a rule, when it is; for any entry that it may be.
  private func lossClass(
    _ path: [[UInt8]], _ kind: ContainerKind, _ scope: CompiledStep.Scope, _ rule: Rule,
    _ index: Int
  ) -> DataClass? {
    let own = policy.siblings(of: rule)
    for siblings in Set([UInt64.max, own]) {
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
  /// The rules that mean a path, when every folder on the way holds the siblings.
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
