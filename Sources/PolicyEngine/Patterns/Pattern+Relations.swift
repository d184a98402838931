extension Pattern {
  /// Whether each path of the other pattern is one of this one's.
  ///
  /// A yes is certain; a no may be wrong for patterns of many wildcards.
  public func includes(_ other: Pattern) -> Bool {
    WildcardRelation.includes(
      outer: components.count, isOuterStar: { components[$0].isAnyDepth },
      inner: other.components.count, isInnerStar: { other.components[$0].isAnyDepth },
      covers: { outer, inner in
        guard let mine = components[outer].name, let theirs = other.components[inner].name else {
          return false
        }
        return mine.includes(theirs)
      },
      coversAny: { components[$0].name?.includesEverything == true })
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

  /// Paths that both patterns mean, one for each way in which they fit together, at most `limit`.
  func commonPaths(with other: Pattern, limit: Int) -> [[[UInt8]]] {
    var search = CommonPaths(self, other, limit: limit)
    search.run(0, 0)
    return search.found
  }
}

/// Finds the ways in which two patterns can mean the same path.
private struct CommonPaths {
  private let mine: [Pattern.Component]
  private let theirs: [Pattern.Component]
  private let limit: Int
  private var steps = 0
  private var path: [[UInt8]] = []
  private(set) var found: [[[UInt8]]] = []

  init(_ mine: Pattern, _ theirs: Pattern, limit: Int) {
    self.mine = mine.components
    self.theirs = theirs.components
    self.limit = limit
  }

  mutating func run(_ place: Int, _ other: Int) {
    steps += 1
    guard found.count < limit, steps < 2_000 else { return }
    if place == mine.count, other == theirs.count {
      found.append(path)
      return
    }
    let component = place < mine.count ? mine[place] : nil
    let otherComponent = other < theirs.count ? theirs[other] : nil
    switch (component, otherComponent) {
    case (.anyDepth?, .anyDepth?):
      take(PatternComponent.filler, place + 1, other + 1)
      run(place + 1, other)
      run(place, other + 1)
    case (.anyDepth?, .name(let name)?):
      for sample in name.samples { take(sample, place, other + 1) }
      run(place + 1, other)
    case (.name(let name)?, .anyDepth?):
      for sample in name.samples { take(sample, place + 1, other) }
      run(place, other + 1)
    case (.name(let name)?, .name(let otherName)?):
      for common in name.commonNames(with: otherName) { take(common, place + 1, other + 1) }
    case (.anyDepth?, nil): run(place + 1, other)
    case (nil, .anyDepth?): run(place, other + 1)
    case (nil, _), (_, nil): break
    }
  }

  private mutating func take(_ name: [UInt8], _ place: Int, _ other: Int) {
    path.append(name)
    run(place, other)
    path.removeLast()
  }
}
