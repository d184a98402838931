internal import SandboxModel

extension Classifier {
  /// The data of a state that a classifier uses at each step.
  struct StateRecord: Sendable {
    /// A bit for each length of the names with transitions of their own; the last bit stands for
    /// all greater lengths.
    var literalLengths: UInt64 = 0
    /// The globs with transitions of their own, as a bit mask; unused if the policy has too many
    /// globs.
    var liveGlobs: UInt64 = 0
    /// The sibling names that rules test for in this directory.
    var siblings: UInt64 = 0
    /// The target state for every other name, once known.
    var otherwise = StateRecord.unknown
    /// The range of `Classifier.remaining` that belongs to this state.
    var remainingStart: UInt32 = 0
    var remainingCount: UInt32 = 0
    /// Whether a backup may include something below, as a bit for each view and destination.
    var keepsBelow: UInt8 = 0
    var hasGlobs = false
    /// Whether a directory above has the class cache by the rules alone.
    var isBelowCache = false
    /// Whether the verdicts on a file depend on it belonging to a database.
    var asksForDatabases = false

    var hasRemaining: Bool { remainingCount > 0 }

    /// Stands for an unknown state.
    static let unknown = UInt32.max
    /// The number of verdicts of a state.
    static let types = EntryType.allCases.count
  }

  /// The identity of a state: equal keys denote the same state.
  struct StateKey: Hashable, Sendable {
    /// The nodes of the automaton from which something can still match, in order.
    var nodes: [UInt32] = []
    /// The rules that match here, in order: twice the step, plus one if the rule also matches
    /// below.
    var rules: [UInt32] = []
    /// The marks in effect.
    var marks: UInt64 = 0
    /// The sibling names that the directory contains.
    var siblings: UInt64 = 0
    /// The index of the container kind.
    var kind: UInt8 = 0
    /// Whether a directory above has the class cache by the rules alone.
    var isBelowCache = false

    /// The approximate size of the state in a classifier, in bytes.
    var weight: Int {
      let fixed =
        StateRecord.types * MemoryLayout<Verdicts>.stride + MemoryLayout<StateRecord>.stride
        + 2 * MemoryLayout<StateKey>.stride
      return fixed + 64 + 4 * (nodes.capacity + rules.capacity)
    }
  }

  /// Returns the key of the state of a container's root.
  func rootKey(_ root: RootKey) -> StateKey {
    var key = StateKey()
    key.kind = UInt8(ContainerKind.allCases.firstIndex(of: root.kind) ?? 0)
    let scopes: [CompiledPolicy.Scope] =
      [.all] + (root.app.map { [.app($0)] } ?? []) + (root.group.map { [.group($0)] } ?? [])
    for scope in scopes {
      guard let node = policy.trie.root(root.kind, scope) else { continue }
      reach(UInt32(node), siblings: 0, &key)
    }
    return key
  }

  /// Adds a node and its `**` node to the key, and the rules that match there.
  private func reach(_ node: UInt32, siblings: UInt64, _ key: inout StateKey) {
    let reached = policy.trie.nodes[Int(node)]
    if reached.lastStep > 0 { key.nodes.append(node) }
    if let depth = reached.anyDepth { key.nodes.append(depth) }
    for accepted in reached.accepted
    where accepted.siblings == 0 || accepted.siblings & siblings != 0 {
      key.rules.append(accepted.step << 1 | (accepted.isSticky ? 1 : 0))
    }
  }

  /// Computes a transition that is not cached yet and caches it.
  mutating func transition(from state: State, symbol: UInt64, name: Span<UInt8>) -> State {
    let target = intern(successor(of: state, name))
    if symbol == 0 {
      records[Int(state.index)].otherwise = target
    } else {
      transitions.insert(state.index, symbol, target: target)
    }
    return State(index: target)
  }

  /// Returns the key of the state of a directory's entry.
  private func successor(of state: State, _ name: Span<UInt8>) -> StateKey {
    let key = keys[Int(state.index)]
    var next = StateKey()
    next.kind = key.kind
    next.marks = key.marks & markers.inherited
    next.rules = key.rules.filter { $0 & 1 == 1 }
    next.isBelowCache = key.isBelowCache || (markers.asksForCaches && isCache(key))
    let literal = policy.trie.literals.find(name)
    for node in key.nodes {
      let trieNode = policy.trie.nodes[Int(node)]
      if trieNode.loops { next.nodes.append(node) }
      if let literal {
        for target in trieNode.targets(of: literal) { reach(target, siblings: key.siblings, &next) }
      }
      for edge in trieNode.globs where policy.trie.globs[Int(edge.glob)].matches(name) {
        reach(edge.node, siblings: key.siblings, &next)
      }
    }
    return next
  }

  /// Whether the rules alone, without markers, give a directory in this state the class cache.
  private func isCache(_ key: StateKey) -> Bool {
    var verdicts = policy.starts[Int(key.kind)]
    for rule in key.rules {
      let operation = policy.operations[Int(rule >> 1)]
      guard operation.condition.types & EntryType.bit(.directory) != 0,
        !operation.condition.isDynamic
      else { continue }
      operation.apply(to: &verdicts, belowCache: false)
    }
    return verdicts.keep.dataClass == .cache
  }

  /// Returns the number of a state and creates the state if it is new.
  mutating func intern(_ made: StateKey) -> UInt32 {
    let key = pruned(made)
    if let known = indices[key] { return known }
    let (index, before) = (UInt32(records.count), remaining.count)
    indices[key] = index
    keys.append(key)
    records.append(record(key))
    weight += key.weight + 4 * (remaining.count - before)
    return index
  }

  /// Returns the key without elements that have no effect: rules whose values later rules always
  /// override, and nodes that lead only to such rules.
  private func pruned(_ made: StateKey) -> StateKey {
    var key = made
    var rules: [UInt32] = []
    var below = Covered()
    var here = Covered()
    var lowest: UInt32 = 0
    var lowestProtection: UInt32 = 0
    for rule in Set(key.rules).sorted(by: >) {
      let operation = policy.operations[Int(rule >> 1)]
      let isSticky = rule & 1 == 1
      if isSticky ? below.covers(operation) : here.covers(operation) { continue }
      rules.append(rule)
      guard operation.isUnconditional else { continue }
      here.insert(operation)
      guard isSticky else { continue }
      below.insert(operation)
      if below.isEverything, lowest == 0 { lowest = rule >> 1 + 1 }
      if below.isProtection, lowestProtection == 0 { lowestProtection = rule >> 1 + 1 }
    }
    key.rules = rules.reversed()
    key.nodes = Set(key.nodes).filter {
      let node = policy.trie.nodes[Int($0)]
      return node.lastStep > lowest || node.lastProtector > lowestProtection
    }.sorted()
    return key
  }

  /// The values that later rules set unconditionally.
  private struct Covered {
    private var keep: Assignment.Fields = []
    private var platform: Assignment.Fields = []

    /// Whether the class and all dispositions are set.
    var isEverything: Bool { keep.isSuperset(of: .all) && platform.isSuperset(of: .all) }
    /// Whether the class of data protection is set.
    var isProtection: Bool { keep.contains(.protection) && platform.contains(.protection) }

    func covers(_ operation: Operation) -> Bool {
      keep.isSuperset(of: operation.keep.fields)
        && platform.isSuperset(of: operation.platform.fields)
    }

    mutating func insert(_ operation: Operation) {
      keep.formUnion(operation.keep.fields)
      platform.formUnion(operation.platform.fields)
    }
  }

  /// Computes the record of a state: the data for each step of a walk, and the verdicts.
  mutating func record(_ key: StateKey) -> StateRecord {
    var record = StateRecord()
    for node in key.nodes {
      let trieNode = policy.trie.nodes[Int(node)]
      record.siblings |= trieNode.siblings
      record.hasGlobs = record.hasGlobs || !trieNode.globs.isEmpty
      for edge in trieNode.literals {
        let length = policy.trie.literals.length(edge.literal)
        record.literalLengths |= 1 << UInt64(min(length, 63))
      }
      if globs != nil {
        for edge in trieNode.globs { record.liveGlobs |= 1 << UInt64(edge.glob) }
      }
    }
    record.keepsBelow = keepsBelow(key)
    decide(key, &record)
    return record
  }

  /// Returns the steps that apply at a state, rules and markers, in order.
  private func steps(_ key: StateKey) -> [Int] {
    var steps = key.rules.map { Int($0 >> 1) }
    for (mark, step) in policy.markerSteps.enumerated() where key.marks >> UInt64(mark) & 1 == 1 {
      steps.append(step)
    }
    return steps.sorted()
  }

  /// Computes the verdicts for each entry type from the steps before the first one that depends on
  /// size or age, and records the remaining steps.
  private mutating func decide(_ key: StateKey, _ record: inout StateRecord) {
    let steps = steps(key)
    let known = steps.firstIndex { policy.operations[$0].condition.isDynamic } ?? steps.count
    for type in EntryType.allCases {
      var verdicts = policy.starts[Int(key.kind)]
      for step in steps[..<known]
      where policy.operations[step].condition.types & EntryType.bit(type) != 0 {
        policy.operations[step].apply(to: &verdicts, belowCache: key.isBelowCache)
      }
      table.append(verdicts)
    }
    let last = table.count - StateRecord.types
    let types = EntryType.bit(.file) | EntryType.bit(.database)
    record.asksForDatabases =
      table[last + EntryType.file.index] != table[last + EntryType.database.index]
      || steps[known...].contains {
        policy.operations[$0].condition.types & types != types
          && policy.operations[$0].condition.types & types != 0
      }
    record.remainingStart = UInt32(remaining.count)
    record.remainingCount = UInt32(steps.count - known)
    record.isBelowCache = key.isBelowCache
    remaining.append(contentsOf: steps[known...].map { UInt32($0) })
  }

  /// Applies the steps from the first one that depends on size or age.
  func applyRemaining(_ record: StateRecord, _ facts: EntryFacts, to verdicts: inout Verdicts) {
    let start = Int(record.remainingStart)
    for index in start..<(start + Int(record.remainingCount)) {
      let operation = policy.operations[Int(remaining[index])]
      guard operation.condition.holds(facts, scanStart: scanStart) else { continue }
      operation.apply(to: &verdicts, belowCache: record.isBelowCache)
    }
  }

  /// Returns a bit for each view and destination that tells whether a backup may include something
  /// below.
  private func keepsBelow(_ key: StateKey) -> UInt8 {
    var bits: UInt8 = 0
    for view in Verdicts.View.allCases {
      for destination in Destination.allCases {
        let question = PatternTrie.question(view, destination)
        if keepsBelow(key, in: view, for: destination) { bits |= 1 << UInt8(question) }
      }
    }
    return bits
  }

  /// Whether a backup may include something below a directory: false only if the steps that match
  /// everything below exclude it and no later step can include anything again.
  private func keepsBelow(
    _ key: StateKey, in view: Verdicts.View, for destination: Destination
  ) -> Bool {
    var verdict = policy.starts[Int(key.kind)][view]
    var setters = LastSetters()
    var doubtful: [Int] = []
    for step in stepsBelow(key) {
      let operation = policy.operations[step]
      guard let assignment = operation.certain(view) else {
        doubtful.append(step)
        continue
      }
      assignment.apply(to: &verdict)
      setters.record(assignment.fields, step)
    }
    guard verdict.backup.mode(for: destination) == .never else { return true }
    let first = setters.first(of: verdict.backup, for: destination)
    let question = PatternTrie.question(view, destination)
    if key.nodes.contains(where: { policy.trie.nodes[Int($0)].lastKeeper[question] > first }) {
      return true
    }
    return (doubtful + policy.markerSteps).contains { step in
      step >= first && policy.operations[step].mayKeep(view, destination)
    }
  }

  /// Returns the steps that apply at a state and to everything below it.
  private func stepsBelow(_ key: StateKey) -> [Int] {
    var below = key
    below.rules = key.rules.filter { $0 & 1 == 1 }
    below.marks &= markers.inherited
    return steps(below)
  }

  /// The last steps that set each value of the backup disposition, counted from 1.
  private struct LastSetters {
    private var standard = 0
    private var cloud = 0
    private var unencrypted = 0

    mutating func record(_ fields: Assignment.Fields, _ step: Int) {
      if fields.contains(.backupStandard) { standard = step + 1 }
      if fields.contains(.backupCloud) { cloud = step + 1 }
      if fields.contains(.backupUnencrypted) { unencrypted = step + 1 }
    }

    /// Returns the first step that a later step must override to include anything in a backup.
    func first(of backup: BackupDisposition, for destination: Destination) -> Int {
      var steps: [Int] = []
      if backup.standard == .never { steps.append(standard) }
      if destination.isCloud, backup.cloud == .never { steps.append(cloud) }
      if destination.isUnencrypted, backup.unencrypted == .never { steps.append(unencrypted) }
      return steps.min() ?? 0
    }
  }
}

extension Operation {
  /// Returns the values that the operation sets in a view for everything it matches, or nil if they
  /// depend on the entry.
  fileprivate func certain(_ view: Verdicts.View) -> Assignment? {
    switch authority {
    case .rule: condition.isEmpty ? (view == .keep ? keep : platform) : nil
    case .attribute:
      keep.fields.contains(.dataClass) ? nil : (view == .keep ? limitedKeep : limitedPlatform)
    case .file: nil
    }
  }

  /// Whether the operation can include an entry in a backup.
  fileprivate func mayKeep(_ view: Verdicts.View, _ destination: Destination) -> Bool {
    (view == .keep ? keep : platform).mayKeep(for: destination)
  }
}
