/// What a classifier needs to know of a state at each step.
struct StateRecord: Sendable {
  /// A bit for each length of the names that lead elsewhere than others do; the last for all
  /// longer.
  var literalLengths: UInt64 = 0
  /// The globs that lead elsewhere, a bit each, when the policy's globs are few.
  var liveGlobs: UInt64 = 0
  /// The names that rules ask for in this directory.
  var siblings: UInt64 = 0
  /// Where every other name leads, once that is known.
  var otherwise = StateRecord.unknown
  /// The part of `Classifier.remaining` that is this state's.
  var remainingStart: UInt32 = 0
  var remainingCount: UInt32 = 0
  /// Whether something below may be kept, a bit for each view and destination.
  var keepsBelow: UInt8 = 0
  var hasGlobs = false
  /// Whether a directory above is a cache, by the rules.
  var isBelowCache = false
  /// Whether the verdicts on a file are others when it is a database's.
  var asksForDatabases = false

  var hasRemaining: Bool { remainingCount > 0 }

  /// No state.
  static let unknown = UInt32.max
  /// How many verdicts a state has.
  static let types = EntryType.allCases.count
}

/// What a state is: states of the same key are one.
struct StateKey: Hashable, Sendable {
  /// The nodes of the automaton from which something may still match, in order.
  var nodes: [UInt32] = []
  /// The rules that match here, in order: twice the step, and one if it matches below, too.
  var rules: [UInt32] = []
  /// The marks that count here.
  var marks: UInt64 = 0
  /// The names that the directory is known to hold.
  var siblings: UInt64 = 0
  /// The kind of container, by its place among all.
  var kind: UInt8 = 0
  /// Whether a directory above is a cache, by the rules.
  var isBelowCache = false

  /// About how many bytes a classifier needs for the state.
  var weight: Int {
    let fixed =
      StateRecord.types * MemoryLayout<Verdicts>.stride + MemoryLayout<StateRecord>.stride
      + 2 * MemoryLayout<StateKey>.stride
    return fixed + 64 + 4 * (nodes.capacity + rules.capacity)
  }
}
