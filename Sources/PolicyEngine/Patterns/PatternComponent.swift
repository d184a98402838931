/// A path component of a pattern: one of several names or globs.
struct PatternComponent: Hashable, Sendable {
  /// The names, matched byte for byte.
  let literals: [[UInt8]]
  /// The globs.
  let globs: [Glob]

  func matches(_ name: Span<UInt8>) -> Bool {
    for literal in literals where name.isEqual(to: literal.span) { return true }
    for glob in globs where glob.matches(name) { return true }
    return false
  }

  func matches(_ name: [UInt8]) -> Bool { matches(name.span) }

  /// Whether this component matches every name that the other one matches. True is definite.
  func includes(_ other: PatternComponent) -> Bool {
    other.literals.allSatisfy { matches($0) }
      && other.globs.allSatisfy { glob in globs.contains { $0.includes(glob) } }
  }

  /// Whether this component matches every name. True is definite.
  var includesEverything: Bool { globs.contains { $0.includes(Glob.anyName) } }

  /// Names that the component matches, with stars replaced by a name that hardly any other pattern
  /// matches.
  var samples: [[UInt8]] {
    literals + globs.compactMap { $0.sample(filling: Self.filler) }
      + globs.compactMap { $0.sample(filling: []) }
  }

  /// Returns names that both components match, one for each combination; empty only if there are
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

  /// A name that does not occur in policies.
  static let filler = Array("zqx".utf8)
}

extension Span<UInt8> {
  @inline(__always)
  package func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in 0..<count where self[index] != other[index] { return false }
    return true
  }
}
