internal import SandboxModel

extension Classifier {
  /// Returns the key of the state of a container's root.
  func rootKey(_ root: RootKey) -> StateKey {
    var key = StateKey()
    key.kind = UInt8(ContainerKind.allCases.firstIndex(of: root.kind) ?? 0)
    let scopes: [CompiledStep.Scope] =
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
  mutating func take(from state: State, symbol: UInt64, name: Span<UInt8>) -> State {
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
    next.marks = key.marks & names.inherited
    next.rules = key.rules.filter { $0 & 1 == 1 }
    next.isBelowCache = key.isBelowCache || (names.asksForCaches && isCache(key))
    let literal = policy.trie.literals.find(name)
    for node in key.nodes {
      let place = policy.trie.nodes[Int(node)]
      if place.loops { next.nodes.append(node) }
      if let literal {
        for target in place.targets(of: literal) { reach(target, siblings: key.siblings, &next) }
      }
      for edge in place.globs where policy.trie.globs[Int(edge.glob)].matches(name) {
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
    }
    key.rules = rules.reversed()
    key.nodes = Set(key.nodes).filter { policy.trie.nodes[Int($0)].lastStep > lowest }.sorted()
    return key
  }

  /// The values that later rules set unconditionally.
  private struct Covered {
    private var keep: Assignment.Fields = []
    private var platform: Assignment.Fields = []

    var isEverything: Bool { keep == .all && platform == .all }

    func covers(_ operation: Operation) -> Bool {
      keep.isSuperset(of: operation.keep.fields)
        && platform.isSuperset(of: operation.platform.fields)
    }

    mutating func insert(_ operation: Operation) {
      keep.formUnion(operation.keep.fields)
      platform.formUnion(operation.platform.fields)
    }
  }
}
