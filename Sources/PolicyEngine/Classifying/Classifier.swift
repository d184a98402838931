public import SandboxModel

/// Classifies the entries of containers by a compiled policy; for one thread.
///
/// A walk starts with `root`, goes down with `descend`, one name at a time, and asks `verdicts` for
/// an entry. The states are made when they are first reached and remembered; after that an entry
/// costs its own name's bytes, and nothing is allocated. How many states there are depends on the
/// policy's patterns and hardly on the tree; `compact` bounds them for policies made to have many.
public struct Classifier: ~Copyable {
  /// The policy.
  public let policy: CompiledPolicy
  /// The time to which ages count, in seconds since 1970.
  public let scanStart: Int64

  /// A place in a container, as far as the policy tells places apart. It belongs to the classifier
  /// that gave it out.
  public struct State: Sendable, Hashable {
    let index: UInt32
  }

  /// The bytes that states may take before `needsCompaction` says so; those of a policy that is not
  /// made to have many take some hundred KiB.
  public var comfortableWeight = 32 << 20

  var records: [StateRecord] = []
  /// What states are made of; the same places as `records`.
  var keys: [StateKey] = []
  var indices: [StateKey: UInt32] = [:]
  /// Five verdicts for each state, by the entry's type, as far as the type decides.
  var table: [Verdicts] = []
  /// The steps with conditions on size or age that come after those of `table`.
  var remaining: [UInt32] = []
  var transitions = TransitionTable()
  /// Where marks lead from states, and names that directories hold: the bits are the symbols.
  var marked = TransitionTable()
  var held = TransitionTable()
  var roots: [RootKey: UInt32] = [:]
  let names: NameFilter
  /// The globs of the policy, when they are few enough for a bit each.
  let globs: GlobFilter?
  /// About how many bytes all states take.
  var weight = 0
  var wideMatches: [UInt32] = []
  var wideSymbols: [[UInt32]: UInt64] = [:]

  /// Makes a classifier.
  ///
  /// - Parameter scanStart: When the scan began, in seconds since 1970; only rules with
  ///   `older-than` or `newer-than` ask for it.
  public init(_ policy: CompiledPolicy, scanStart: Int64 = 0) {
    self.policy = policy
    self.scanStart = scanStart
    names = NameFilter(policy)
    globs = GlobFilter(policy.trie.globs)
  }

  /// How many states are remembered.
  public var stateCount: Int { records.count }

  /// The state of a container's root.
  ///
  /// - Parameters:
  ///   - app: The bundle identifier of the app whose container it is, for rules of single apps.
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

  /// The state of an entry of a directory, by its name.
  public mutating func descend(_ state: State, _ name: Span<UInt8>) -> State {
    let record = records[Int(state.index)]
    if record.literalLengths >> UInt64(min(name.count, 63)) & 1 == 1,
      let literal = policy.trie.literals.find(name)
    {
      let symbol = TransitionTable.literal(literal)
      if let known = transitions.find(state.index, symbol) { return State(index: known) }
      return take(state, symbol, name)
    }
    if record.hasGlobs {
      let symbol = globs?.matches(name, among: record.liveGlobs) ?? wideSymbol(state, name)
      if symbol != 0 {
        if let known = transitions.find(state.index, symbol) { return State(index: known) }
        return take(state, symbol, name)
      }
    }
    if record.otherwise != StateRecord.unknown { return State(index: record.otherwise) }
    return take(state, 0, name)
  }

  /// Whether the verdicts on a file at a state are others when it is a database's: whether that must
  /// be found out.
  public func asksForDatabases(_ state: State) -> Bool {
    records[Int(state.index)].asksForDatabases
  }

  /// The verdicts on an entry.
  public func verdicts(_ state: State, _ facts: EntryFacts) -> Verdicts {
    let slot = Int(state.index) * StateRecord.types + facts.type.index
    var verdicts = table[slot]
    let record = records[Int(state.index)]
    if record.hasRemaining { applyRemaining(record, facts, to: &verdicts) }
    return verdicts
  }
}

/// Which containers share a root's state.
struct RootKey: Hashable, Sendable {
  let kind: ContainerKind
  let app: String?
  let group: String?
}
