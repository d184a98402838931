/// What a pattern says of one path component: one of some names, or of some globs.
struct PatternComponent: Hashable, Sendable {
  /// Names, byte for byte.
  let literals: [[UInt8]]
  /// Globs.
  let globs: [Glob]

  func matches(_ name: Span<UInt8>) -> Bool {
    for literal in literals where name.isEqual(to: literal.span) { return true }
    for glob in globs where glob.matches(name) { return true }
    return false
  }

  func matches(_ name: [UInt8]) -> Bool { matches(name.span) }

  /// Whether each name of the other component is one of this one's; a yes is certain.
  func includes(_ other: PatternComponent) -> Bool {
    other.literals.allSatisfy { matches($0) }
      && other.globs.allSatisfy { glob in globs.contains { $0.includes(glob) } }
  }

  /// Whether every name is one of this component's; a yes is certain.
  var includesEverything: Bool { globs.contains { $0.includes(Glob.anyName) } }

  /// Names that the component means, each star filled in with what hardly any other pattern names.
  var samples: [[UInt8]] {
    literals + globs.compactMap { $0.sample(filling: Self.filler) }
      + globs.compactMap { $0.sample(filling: []) }
  }

  /// Names that both components mean, one for each way that is found; none only when there are
  /// none.
  func commonNames(with other: PatternComponent) -> [[UInt8]] {
    var names = samples.filter(other.matches) + other.samples.filter(matches)
    for glob in globs {
      for otherGlob in other.globs {
        if let name = glob.commonName(with: otherGlob) { names.append(name) }
      }
    }
    return names
  }

  /// A name that policies do not speak of.
  static let filler = Array("zqx".utf8)
}

extension Span<UInt8> {
  @inline(__always)
  func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in 0..<count where self[index] != other[index] { return false }
    return true
  }
}
