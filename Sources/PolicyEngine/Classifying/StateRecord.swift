/// The data of a state that a classifier uses at each step.
struct StateRecord: Sendable {
  /// A bit for each length of the names with transitions of their own; the last bit stands for all
  /// greater lengths.
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
  /// The rules that match here, in order: twice the step, plus one if the rule also matches below.
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
