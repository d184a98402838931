internal import SandboxModel

extension CompiledPolicy {
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
    let scopes: [CompiledStep.Scope] =
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
    return query.marks.filter { place, marks in
      marks.contains(MarkSet(marker: marker))
        && (place == depth || (place < depth && markers[marker].isInherited))
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
}
