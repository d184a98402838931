package import SandboxModel

/// Classifies the entries of containers by a compiled policy. Not thread-safe.
///
/// A walk starts with `root`, follows each name with `descend`, and requests the verdicts on an
/// entry with `verdicts`. States are created on first use and cached, so the cost of a known entry
/// is proportional to the length of its name, without allocations. The number of states depends on
/// the policy's patterns and hardly on the tree; `compact` limits it for policies crafted to create
/// many.
package struct Classifier: ~Copyable {
  /// The policy.
  package let policy: CompiledPolicy
  /// The reference time for ages, in seconds since 1970.
  package let scanStart: Int64

  /// A position in a container, as far as the policy distinguishes positions. Valid only for the
  /// classifier that created it.
  package struct State: Sendable, Hashable {
    let index: UInt32
  }

  /// The size of the cached states, in bytes, above which `needsCompaction` is true; typical
  /// policies use a few hundred KiB.
  package var compactionThreshold = 32 << 20

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
  let names: NameFilter
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
  package init(_ policy: CompiledPolicy, scanStart: Int64 = 0) {
    self.policy = policy
    self.scanStart = scanStart
    names = NameFilter(policy)
    globs = GlobFilter(policy.trie.globs)
  }

  /// The number of cached states.
  package var stateCount: Int { records.count }

  /// Returns the state of a container's root.
  ///
  /// - Parameters:
  ///   - app: The bundle identifier of the app that owns the container, for rules of single apps.
  ///   - group: The group identifier, for rules of single groups.
  package mutating func root(
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
  package mutating func descend(_ state: State, _ name: Span<UInt8>) -> State {
    let record = records[Int(state.index)]
    if record.literalLengths >> UInt64(min(name.count, 63)) & 1 == 1,
      let literal = policy.trie.literals.find(name)
    {
      let symbol = TransitionTable.literal(literal)
      if let known = transitions.find(state.index, symbol) { return State(index: known) }
      return take(from: state, symbol: symbol, name: name)
    }
    if record.hasGlobs {
      let symbol = globs?.matches(name, among: record.liveGlobs) ?? wideSymbol(state, name)
      if symbol != 0 {
        if let known = transitions.find(state.index, symbol) { return State(index: known) }
        return take(from: state, symbol: symbol, name: name)
      }
    }
    if record.otherwise != StateRecord.unknown { return State(index: record.otherwise) }
    return take(from: state, symbol: 0, name: name)
  }

  /// Whether the verdicts on a file in this state depend on it belonging to a database, so that the
  /// caller must find out.
  package func asksForDatabases(_ state: State) -> Bool {
    records[Int(state.index)].asksForDatabases
  }

  /// Returns the verdicts on an entry.
  package func verdicts(_ state: State, _ facts: EntryFacts) -> Verdicts {
    let slot = Int(state.index) * StateRecord.types + facts.type.index
    var verdicts = table[slot]
    let record = records[Int(state.index)]
    if record.hasRemaining { applyRemaining(record, facts, to: &verdicts) }
    return verdicts
  }
}

/// The key of a root state, which several containers can share.
struct RootKey: Hashable, Sendable {
  let kind: ContainerKind
  let app: String?
  let group: String?
}
