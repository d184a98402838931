public import SandboxModel

extension CompiledPolicy {
  /// Whether an `Explanation.Step` of this policy can have the identifier: that of a rule, a marker
  /// or a container kind.
  public func hasRule(_ id: String) -> Bool {
    ContainerKind(rawValue: id) != nil || steps.contains { $0.id == id }
  }

  /// Explains the verdicts on an entry.
  ///
  /// - Parameters:
  ///   - scanStart: The reference time for ages, in seconds since 1970.
  ///   - destination: The destination of the backup, for `overruledMarks`.
  public func explain(
    _ query: EntryQuery, scanStart: Int64 = 0, for destination: Destination = Destination()
  ) -> Explanation {
    var explainer = Explainer(self, query, scanStart: scanStart)
    explainer.run()
    return Explanation(
      query: query, steps: explainer.steps, verdicts: explainer.verdicts,
      overruledMarks: explainer.overruledMarks(for: destination))
  }

  /// Returns the rule or mark that excluded an entry from the backup, or nil if none did.
  public func rule(reportingOmissions query: EntryQuery) -> String? {
    explain(query).steps.last { step in
      guard step.keep.contains(where: { $0.key == "backup" || $0.key == "class" }) else {
        return false
      }
      switch step.outcome {
      case .applied, .limited: return true
      case .refused, .notMet: return false
      }
    }?.id
  }

  /// The rule or marker that decided whether an entry may be purged.
  public struct PurgeDecision: Sendable, Hashable {
    /// The identifier of the rule or marker, or the container kind if none matched.
    public let rule: String
    /// The position, or nil for the container's initial verdict.
    public let location: PolicyLocation?
    /// The reason given in the policy.
    public let why: String?
    /// Whether the policy permits the loss of precious data with `allow-loss`.
    public let allowsLoss: Bool
  }

  /// Returns the last rule or marker that set whether an entry may be purged.
  public func purgeDecision(on query: EntryQuery, scanStart: Int64 = 0) -> PurgeDecision {
    let explanation = explain(query, scanStart: scanStart)
    let matched = matching(query, depth: query.path.count)
    // The first step is the container's initial verdict; the others are the matching steps in
    // order.
    let last = explanation.steps.indices.last { index in
      let step = explanation.steps[index]
      return step.outcome == .applied && step.keep.contains { $0.key == "purge" }
    }
    let index = last ?? 0
    let rule = index == 0 ? nil : steps[matched[index - 1]].rule
    let dataClass = explanation.verdicts.keep.dataClass
    return PurgeDecision(
      rule: explanation.steps[index].id, location: explanation.steps[index].location,
      why: explanation.steps[index].why,
      allowsLoss: rule?.allowLoss != nil || lossyClasses.contains(dataClass))
  }

  /// Returns the directories that rules name by the components before the first wildcard. A purge
  /// does not delete them.
  public func namedDirectories(_ kind: ContainerKind) -> Set<[[UInt8]]> {
    Set(
      steps.compactMap(\.rule).filter { $0.kinds.contains(kind) }.map(\.pattern.fixedPrefix))
  }

  /// Returns the directories whose content rules name, without single files that rules name.
  public func namedParents(_ kind: ContainerKind) -> Set<[[UInt8]]> {
    Set(
      steps.compactMap(\.rule).filter { $0.kinds.contains(kind) }.map(\.pattern)
        .filter { $0.fixedPrefix.count < $0.components.count }.map(\.fixedPrefix))
  }

  /// Returns the initial verdicts of everything in a container kind.
  func start(_ kind: ContainerKind) -> Verdicts {
    starts[ContainerKind.allCases.firstIndex(of: kind) ?? 0]
  }

  /// Returns the rules and markers that apply to a query's entry, or to the directory above it at a
  /// depth, in order.
  func matching(_ query: EntryQuery, depth: Int) -> [Int] {
    (matchingRules(query, depth: depth) + activeMarks(query, depth: depth)).sorted()
  }

  private func matchingRules(_ query: EntryQuery, depth: Int) -> [Int] {
    let scopes: [Scope] =
      [.all] + (query.app.map { [.app($0)] } ?? []) + (query.group.map { [.group($0)] } ?? [])
    return trie.steps(
      matching: Array(query.path.prefix(depth)),
      from: scopes.compactMap { trie.root(query.kind, $0) }
    ) { query.siblings[$0]?.rawValue ?? 0 }
  }

  /// Returns the steps of the markers on an entry and of those inherited from parent directories.
  private func activeMarks(_ query: EntryQuery, depth: Int) -> [Int] {
    markers.indices.filter { !bearers(of: $0, query, depth: depth).isEmpty }
      .map { markerSteps[$0] }
  }

  /// Returns the depths of the entries that carry a mark in effect at a depth, in ascending order.
  func bearers(of marker: Int, _ query: EntryQuery, depth: Int) -> [Int] {
    guard markers[marker].kinds.contains(query.kind) else { return [] }
    return query.marks.filter { level, marks in
      marks.contains(MarkSet(marker: marker))
        && (level == depth || (level < depth && markers[marker].isInherited))
    }.keys.sorted()
  }

  /// Whether the rules alone, without markers, give the directory at a depth the class cache.
  func isCache(_ query: EntryQuery, depth: Int) -> Bool {
    var verdicts = start(query.kind)
    for step in matchingRules(query, depth: depth) {
      let operation = operations[step]
      guard operation.condition.holds(EntryFacts(.directory), scanStart: 0) else { continue }
      operation.apply(to: &verdicts, belowCache: false)
    }
    return verdicts.keep.dataClass == .cache
  }

  /// Applies the steps one by one and records the effect of each; slower and simpler than
  /// `Classifier`.
  private struct Explainer {
    private let policy: CompiledPolicy
    private let query: EntryQuery
    private let scanStart: Int64
    private var isBelowCache = false
    private(set) var verdicts: Verdicts
    private(set) var steps: [Explanation.Step] = []
    /// The backup disposition after each of `steps`.
    private var backups: [BackupDisposition] = []

    init(_ policy: CompiledPolicy, _ query: EntryQuery, scanStart: Int64) {
      self.policy = policy
      self.query = query
      self.scanStart = scanStart
      verdicts = policy.start(query.kind)
    }

    mutating func run() {
      isBelowCache = (0..<query.path.count).contains { policy.isCache(query, depth: $0) }
      add(start)
      for step in policy.matching(query, depth: query.path.count) { apply(step) }
    }

    private mutating func apply(_ index: Int) {
      let step = policy.steps[index]
      let operation = step.operation
      guard operation.condition.holds(query.facts, scanStart: scanStart) else {
        let text = step.rule?.conditions.description ?? ""
        add(described(step, outcome: .notMet(text), keep: .nothing, platform: .nothing))
        return
      }
      let before = verdicts.keep.dataClass
      operation.apply(to: &verdicts, belowCache: isBelowCache)
      switch operation.reach(before, belowCache: isBelowCache) {
      case .full:
        add(described(step, outcome: .applied, keep: operation.keep, platform: operation.platform))
      case .limited:
        let outcome: Explanation.Outcome =
          operation.keep == operation.limitedKeep ? .applied : .limited(before)
        add(
          described(
            step, outcome: outcome, keep: operation.limitedKeep, platform: operation.limitedPlatform
          ))
      case .none:
        add(described(step, outcome: .refused(before), keep: .nothing, platform: .nothing))
      }
    }

    private mutating func add(_ step: Explanation.Step) {
      steps.append(step)
      backups.append(verdicts.keep.backup)
    }

    private var start: Explanation.Step {
      let assignment = Assignment(fields: .all, verdict: verdicts.keep)
      return Explanation.Step(
        kind: .start, id: query.kind.rawValue, location: nil, layer: policy.name, origin: .builtin,
        part: .chain, bearers: [], outcome: .applied, keep: assignment.changes,
        platform: assignment.changes,
        why: "data that no rule matches is unknown", source: nil)
    }

    private func described(
      _ step: CompiledPolicy.Step, outcome: Explanation.Outcome, keep: Assignment,
      platform: Assignment
    ) -> Explanation.Step {
      let layer = policy.layers[step.layer]
      return Explanation.Step(
        kind: step.kind(in: layer), id: step.id, location: step.location, layer: layer.name,
        origin: layer.origin, part: layer.part, bearers: bearers(of: step), outcome: outcome,
        keep: keep.changes,
        platform: platform.changes, why: step.rule?.why ?? step.marker?.why,
        source: step.rule?.source ?? step.marker?.source)
    }

    private func bearers(of step: CompiledPolicy.Step) -> [Int] {
      guard let marker = step.marker, let index = policy.markers.firstIndex(of: marker) else {
        return []
      }
      return policy.bearers(of: index, query, depth: query.path.count)
    }

    /// Returns the marks that excluded the entry before a later rule included it again.
    func overruledMarks(for destination: Destination) -> [Explanation.OverruledMark] {
      guard let last = backups.last, last.mode(for: destination) != .never else { return [] }
      let keeper = backups.lastIndex { $0.mode(for: destination) == .never }.map { $0 + 1 }
      guard let keeper, steps.indices.contains(keeper) else { return [] }
      return steps.indices[..<keeper].compactMap { index in
        guard steps[index].kind == .marker, backups[index].mode(for: destination) == .never,
          steps[index].keep.contains(where: { $0.key == "backup" })
        else { return nil }
        return Explanation.OverruledMark(
          mark: steps[index].id, rule: steps[keeper].id, location: steps[keeper].location)
      }
    }
  }
}

extension CompiledPolicy.Step {
  fileprivate func kind(in layer: CompiledPolicy.Layer) -> Explanation.Kind {
    if marker != nil { return .marker }
    if layer.part == .patterns { return .pattern }
    return switch scope {
    case .all: .rule
    case .app: .app
    case .group: .group
    }
  }
}

extension Assignment {
  /// The values that are set, by policy key.
  fileprivate var changes: [Explanation.Change] {
    var changes: [Explanation.Change] = []
    func add(_ key: String, _ value: String) {
      changes.append(Explanation.Change(key: key, value: value))
    }
    if fields.contains(.dataClass) { add("class", verdict.dataClass.rawValue) }
    if fields.contains(.backupStandard) {
      add("backup", verdict.backup.description)
    } else {
      if fields.contains(.backupCloud) {
        add("backup", "{cloud: \(verdict.backup.cloud.rawValue)}")
      }
      if fields.contains(.backupUnencrypted) {
        add("backup", "{unencrypted: \(verdict.backup.unencrypted.rawValue)}")
      }
    }
    if fields.contains(.update) { add("update", verdict.update.rawValue) }
    if fields.contains(.purge) { add("purge", verdict.purge.description) }
    if fields.contains(.restore) { add("restore", verdict.restore.rawValue) }
    if fields.contains(.protection), let protection = verdict.protection {
      add("protection", protection.rawValue)
    }
    return changes
  }
}
