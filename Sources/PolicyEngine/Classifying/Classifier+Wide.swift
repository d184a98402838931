extension Classifier {
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
  package var needsCompaction: Bool { weight > compactionThreshold }

  /// Discards all states except those in `states`, which receive new values.
  package mutating func compact(keeping states: inout [State]) {
    let kept = states.map { keys[Int($0.index)] }
    (records, keys, table, remaining) = ([], [], [], [])
    (indices, roots, wideSymbols, weight) = ([:], [:], [:], 0)
    transitions.removeAll()
    marked.removeAll()
    held.removeAll()
    states = kept.map { State(index: intern($0)) }
  }
}
