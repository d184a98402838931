import SandboxModel
import Testing

@testable import PolicyEngine

struct PatternPropertyTests {
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
          "seed \(seed): \(text) on \(PolicyIssue.text(of: path))")
      }
    }
  }

  @Test(arguments: [UInt64](1...8))
  func anIncludedPatternMatchesNoOtherPath(seed: UInt64) throws {
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
          "seed \(seed): \(outer) includes \(inner), not \(PolicyIssue.text(of: path))")
      }
    }
    #expect(inclusions > 10)
  }

  @Test(arguments: [UInt64](1...8))
  func commonPathsMatchBothPatterns(seed: UInt64) throws {
    var make = RandomPatterns(seed: seed)
    for _ in 0..<100 {
      let (one, others) = (make.pattern(), (0..<4).map { _ in make.pattern() })
      var trie = PatternTrie()
      for (index, other) in others.enumerated() {
        let pattern = try Pattern(parsing: other)
        trie.insert(pattern, kind: .data, scope: .all, step: index, siblings: 0)
      }
      trie.finish(
        others.map { _ in
          Operation(Settings(), .same, condition: Operation.Condition(), classes: [:])
        })
      var common = LossCheck.CommonPaths(
        try Pattern(parsing: one), trie, steps: 0..<others.count, limit: 64, budget: 100_000)
      common.run(try #require(trie.root(.data, .all)))
      for path in common.found {
        let isCommon =
          ReferencePattern.matches(one, path)
          && others.contains { ReferencePattern.matches($0, path) }
        #expect(isCommon, "seed \(seed): \(one), \(others) on \(PolicyIssue.text(of: path))")
      }
      guard common.found.isEmpty else { continue }
      for _ in 0..<50 {
        let path = make.path()
        let isCommon =
          ReferencePattern.matches(one, path)
          && others.contains { ReferencePattern.matches($0, path) }
        #expect(!isCommon, "seed \(seed): \(one), \(others) on \(PolicyIssue.text(of: path))")
      }
    }
  }
}
