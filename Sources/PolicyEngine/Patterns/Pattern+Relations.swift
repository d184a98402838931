extension Pattern {
  /// Whether this pattern matches every path that the other pattern matches.
  ///
  /// True is definite; false can be wrong for patterns with many wildcards.
  package func includes(_ other: Pattern) -> Bool {
    WildcardRelation(
      outer: components.count, isOuterStar: { components[$0].isAnyDepth },
      inner: other.components.count, isInnerStar: { other.components[$0].isAnyDepth },
      covers: { outer, inner in
        guard let mine = components[outer].name, let theirs = other.components[inner].name else {
          return false
        }
        return mine.includes(theirs)
      },
      coversAny: { components[$0].name?.includesEverything == true }
    ).includes()
  }

  /// Returns paths that the pattern matches. Each alternative occurs in at least one of them, stars
  /// are replaced by a name that hardly any other pattern matches, and `**` by `depth` components.
  func samples(depth: Int) -> [[[UInt8]]] {
    let filler = Array(repeating: PatternComponent.filler, count: depth)
    let choices: [[[UInt8]]?] = components.map { $0.name?.samples }
    guard !choices.contains([]) else { return [] }
    let count = choices.compactMap { $0?.count }.max() ?? 1
    return (0..<count).map { choice in
      var path: [[UInt8]] = []
      for names in choices {
        if let names { path.append(names[choice % names.count]) } else { path += filler }
      }
      return path
    }
  }
}
