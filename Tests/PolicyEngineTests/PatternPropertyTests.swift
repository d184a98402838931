import Testing

@testable import PolicyEngine

@Suite struct PatternPropertyTests {
  @Test(arguments: [UInt64](1...8))
  func matchingEqualsTheReference(seed: UInt64) throws {
    var make = RandomPatterns(seed: seed)
    for _ in 0..<500 {
      let text = make.pattern()
      let pattern = try Pattern(parsing: text)
      for _ in 0..<10 {
        let path = make.path()
        #expect(
          pattern.matches(path) == ReferencePattern.matches(text, path),
          "seed \(seed): \(text) on \(PathText.text(path))")
      }
    }
  }

  @Test(arguments: [UInt64](1...8))
  func whatIncludesAnotherMeansAllItsPaths(seed: UInt64) throws {
    var make = RandomPatterns(seed: seed)
    var inclusions = 0
    for _ in 0..<400 {
      let (outer, inner) = (make.pattern(), make.pattern())
      guard try Pattern(parsing: outer).includes(Pattern(parsing: inner)) else { continue }
      inclusions += 1
      for _ in 0..<50 {
        let path = make.path()
        guard ReferencePattern.matches(inner, path) else { continue }
        #expect(
          ReferencePattern.matches(outer, path),
          "seed \(seed): \(outer) includes \(inner), not \(PathText.text(path))")
      }
    }
    #expect(inclusions > 10)
  }

  @Test(arguments: [UInt64](1...8))
  func commonPathsAreCommon(seed: UInt64) throws {
    var make = RandomPatterns(seed: seed)
    for _ in 0..<400 {
      let (one, other) = (make.pattern(), make.pattern())
      let common = try Pattern(parsing: one).commonPaths(with: Pattern(parsing: other), limit: 8)
      for path in common {
        #expect(ReferencePattern.matches(one, path) && ReferencePattern.matches(other, path))
      }
      guard common.isEmpty else { continue }
      for _ in 0..<50 {
        let path = make.path()
        let both = ReferencePattern.matches(one, path) && ReferencePattern.matches(other, path)
        #expect(!both, "seed \(seed): \(one) and \(other) on \(PathText.text(path))")
      }
    }
  }
}
