public import SandboxModel

/// Classifies the entries of containers by a compiled policy. Not thread-safe.
///
/// A walk starts with `root`, follows each name with `descend`, and requests the verdicts on an
/// entry with `verdicts`. States are created on first use and cached, so the cost of a known entry
/// is proportional to the length of its name, without allocations. The number of states depends on
/// the policy's patterns and hardly on the tree; `compact` limits it for policies crafted to create
/// many.
public struct Classifier: ~Copyable {
  /// The policy.
  public let policy: CompiledPolicy
  /// The reference time for ages, in seconds since 1970.
  public let scanStart: Int64

  /// A position in a container, as far as the policy distinguishes positions. Valid only for the
  /// classifier that created it.
  public struct State: Sendable, Hashable {
    let index: UInt32
  }

  /// The size of the cached states, in bytes, above which `needsCompaction` is true; typical
  /// policies use a few hundred KiB.
  public var compactionThreshold = 32 << 20

  var records: [StateRecord] = []
  /// The keys of the states, parallel to `records`.
  var keys: [StateKey] = []
  var indices: [StateKey: UInt32] = [:]
  /// Five verdicts for each state, one for each entry type, without the effect of `remaining`.
  var table: [Verdicts] = []
  /// The steps from the first one that depends on size or age, for all states.
  var remaining: [UInt32] = []
  var transitions = TransitionTable()
  /// The transitions for marks, and those for sibling names; the bits serve as symbols.
  var marked = TransitionTable()
  var held = TransitionTable()
  var roots: [RootKey: UInt32] = [:]
  let markers: MarkerTable
  /// The policy's globs, or nil if there are too many for one bit each.
  let globs: GlobFilter?
  /// The approximate size of all states, in bytes.
  var weight = 0
  var wideMatches: [UInt32] = []
  var wideSymbols: [[UInt32]: UInt64] = [:]

  /// Creates a classifier.
  ///
  /// - Parameter scanStart: The start of the scan, in seconds since 1970; used only by rules with
  ///   `older-than` or `newer-than`.
  public init(_ policy: CompiledPolicy, scanStart: Int64 = 0) {
    self.policy = policy
    self.scanStart = scanStart
    markers = MarkerTable(policy)
    globs = GlobFilter(policy.trie.globs)
  }

  /// The number of cached states.
  public var stateCount: Int { records.count }

  /// Returns the state of a container's root.
  ///
  /// - Parameters:
  ///   - app: The bundle identifier of the app that owns the container, for rules of single apps.
  ///   - group: The group identifier, for rules of single groups.
  public mutating func root(
    _ kind: ContainerKind, app: String? = nil, group: String? = nil
  ) -> State {
    let app = app.flatMap { policy.trie.root(kind, .app($0)) == nil ? nil : $0 }
    let group = group.flatMap { policy.trie.root(kind, .group($0)) == nil ? nil : $0 }
    let key = RootKey(kind: kind, app: app, group: group)
    if let known = roots[key] { return State(index: known) }
    let index = intern(rootKey(key))
    roots[key] = index
    return State(index: index)
  }

  /// Returns the state of a directory's entry with the given name.
  public mutating func descend(_ state: State, _ name: Span<UInt8>) -> State {
    let record = records[Int(state.index)]
    if record.literalLengths >> UInt64(min(name.count, 63)) & 1 == 1,
      let literal = policy.trie.literals.find(name)
    {
      let symbol = TransitionTable.literal(literal)
      if let known = transitions.find(state.index, symbol) { return State(index: known) }
      return transition(from: state, symbol: symbol, name: name)
    }
    if record.hasGlobs {
      let symbol = globs?.matches(name, among: record.liveGlobs) ?? wideSymbol(state, name)
      if symbol != 0 {
        if let known = transitions.find(state.index, symbol) { return State(index: known) }
        return transition(from: state, symbol: symbol, name: name)
      }
    }
    if record.otherwise != StateRecord.unknown { return State(index: record.otherwise) }
    return transition(from: state, symbol: 0, name: name)
  }

  /// Whether the verdicts on a file in this state depend on it belonging to a database, so that the
  /// caller must find out.
  public func asksForDatabases(_ state: State) -> Bool {
    records[Int(state.index)].asksForDatabases
  }

  /// Returns the verdicts on an entry.
  public func verdicts(_ state: State, _ facts: EntryFacts) -> Verdicts {
    let slot = Int(state.index) * StateRecord.types + facts.type.index
    var verdicts = table[slot]
    let record = records[Int(state.index)]
    if record.hasRemaining { applyRemaining(record, facts, to: &verdicts) }
    return verdicts
  }
}

extension Classifier {
  /// Returns the state of a query's entry, starting at the container's root.
  public mutating func state(_ query: EntryQuery) -> State {
    var state = root(query.kind, app: query.app, group: query.group)
    for (depth, name) in query.path.enumerated() {
      if let marks = query.marks[depth] { state = marking(state, marks) }
      if let siblings = query.siblings[depth] { state = holding(state, siblings) }
      state = descend(state, name.span)
    }
    if let marks = query.marks[query.path.count] { state = marking(state, marks) }
    return state
  }

  /// Returns the verdicts on a query's entry.
  public mutating func verdicts(_ query: EntryQuery) -> Verdicts {
    verdicts(state(query), query.facts)
  }

  /// Returns the state at a path relative to a known state. Names are separated by slashes; empty
  /// names are ignored.
  public mutating func descend(_ state: State, path: Span<UInt8>) -> State {
    var state = state
    var start = 0
    for index in 0...path.count {
      guard index == path.count || path[index] == UInt8(ascii: "/") else { continue }
      if index > start { state = descend(state, path.extracting(start..<index)) }
      start = index + 1
    }
    return state
  }

  /// The key of a root state, which several containers can share.
  struct RootKey: Hashable, Sendable {
    let kind: ContainerKind
    let app: String?
    let group: String?
  }

  /// Returns the state of an entry that carries marks. Inherited marks also apply to everything
  /// below the entry.
  ///
  /// A marker file marks the directory that contains it and, with `inherit`, everything below. Mark
  /// the directory's state before descending from it.
  public mutating func marking(_ state: State, _ marks: MarkSet) -> State {
    var key = keys[Int(state.index)]
    let added = marks.rawValue & markers.marksByKind[Int(key.kind)]
    guard key.marks | added != key.marks else { return state }
    if let known = marked.find(state.index, added) { return State(index: known) }
    key.marks |= added
    let target = intern(key)
    marked.insert(state.index, added, target: target)
    return State(index: target)
  }

  /// Returns the marks that an extended attribute with this Linux name can stand for. The caller
  /// checks the value with `Marker.accepts`.
  public func attributeMarks(_ name: Span<UInt8>) -> MarkSet {
    for (attribute, marks) in markers.attributes where name.isEqual(to: attribute.span) {
      return marks
    }
    return []
  }

  /// Returns the sibling names that rules test for in this directory; usually empty.
  public func siblingNames(_ state: State) -> SiblingSet {
    SiblingSet(rawValue: records[Int(state.index)].siblings)
  }

  /// Returns the state of a directory that contains sibling names. It affects only the directory's
  /// entries, not the verdicts on the directory itself.
  public mutating func holding(_ state: State, _ siblings: SiblingSet) -> State {
    let present = siblings.rawValue & records[Int(state.index)].siblings
    guard present != 0 else { return state }
    if let known = held.find(state.index, present) { return State(index: known) }
    var key = keys[Int(state.index)]
    key.siblings = present
    let target = intern(key)
    held.insert(state.index, present, target: target)
    return State(index: target)
  }

  /// Whether a backup may include something below a directory, so that an excluded directory must
  /// be scanned. False is definite.
  public func canReachKeep(
    _ state: State, for destination: Destination = Destination(), view: Verdicts.View = .keep
  ) -> Bool {
    let question = PatternTrie.question(view, destination)
    return records[Int(state.index)].keepsBelow >> UInt8(question) & 1 == 1
  }

  /// Returns the symbol of a name if the policy has more globs than a symbol has bits: a number for
  /// each set of matching globs.
  mutating func wideSymbol(_ state: State, _ name: Span<UInt8>) -> UInt64 {
    wideMatches.removeAll(keepingCapacity: true)
    for node in keys[Int(state.index)].nodes {
      for edge in policy.trie.nodes[Int(node)].globs
      where policy.trie.globs[Int(edge.glob)].matches(name) {
        wideMatches.append(edge.glob)
      }
    }
    if wideMatches.isEmpty { return 0 }
    if let known = wideSymbols[wideMatches] { return known }
    let symbol = TransitionTable.wide | UInt64(wideSymbols.count)
    wideSymbols[wideMatches] = symbol
    weight += 64 + 4 * wideMatches.count
    return symbol
  }

  /// Whether the cached states exceed `compactionThreshold`, so that `compact` should be called.
  public var needsCompaction: Bool { weight > compactionThreshold }

  /// Discards all states except those in `states`, which receive new values.
  public mutating func compact(keeping states: inout [State]) {
    let kept = states.map { keys[Int($0.index)] }
    (records, keys, table, remaining) = ([], [], [], [])
    (indices, roots, wideSymbols, weight) = ([:], [:], [:], 0)
    transitions.removeAll()
    marked.removeAll()
    held.removeAll()
    states = kept.map { State(index: intern($0)) }
  }
}

/// A query for the verdicts on an entry, given by its full path.
public struct EntryQuery: Sendable, Hashable {
  /// The kind of container.
  public var kind: ContainerKind
  /// The bundle identifier of the app that owns the container.
  public var app: String?
  /// The group identifier, for a group container.
  public var group: String?
  /// The names from the container's root to the entry; empty for the root itself.
  public var path: [[UInt8]]
  /// The properties of the entry.
  public var facts: EntryFacts
  /// The marks on the entry and on its parent directories, by depth; 0 is the container's root.
  public var marks: [Int: MarkSet]
  /// The sibling names in the parent directories, by depth.
  public var siblings: [Int: SiblingSet]

  /// Creates a query.
  public init(
    _ kind: ContainerKind, app: String? = nil, group: String? = nil, path: [[UInt8]],
    facts: EntryFacts = EntryFacts(.file), marks: [Int: MarkSet] = [:],
    siblings: [Int: SiblingSet] = [:]
  ) {
    self.kind = kind
    self.app = app
    self.group = group
    self.path = path
    self.facts = facts
    self.marks = marks
    self.siblings = siblings
  }

  /// Creates a query from a path with its names separated by slashes.
  public init(
    _ kind: ContainerKind, app: String? = nil, group: String? = nil, path: String,
    facts: EntryFacts = EntryFacts(.file)
  ) {
    self.init(
      kind, app: app, group: group,
      path: path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }, facts: facts)
  }
}
