extension Pattern {
  /// Whether each path of the other pattern is one of this one's.
  ///
  /// A yes is certain; a no may be wrong for patterns of many wildcards.
  public func includes(_ other: Pattern) -> Bool {
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

  /// Paths that the pattern means, each alternative in one of them at least, stars filled in with
  /// what hardly any other pattern names; `depth` components for each `**`.
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
