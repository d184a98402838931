import SandboxModel
import Testing

@testable import PolicyEngine

/// No entry is lost by a rule that lint accepts.
struct LossPropertyTests {
  @Test(arguments: [UInt64](200...259))
  func everyLossIsReported(seed: UInt64) throws {
    let made = RandomPolicy(seed: seed)
    var random = made.random
    let library = made.library
    let named = Set(
      (library.lint("base") + library.lint("top")).filter { $0.kind == .loss }.map(\.location))
    let policy = try library.compile(PolicyRequest(policy: "top"))
    for _ in 0..<200 {
      var paths = RandomPatterns(seed: random.next())
      let query = EntryQuery(
        .data, app: random.pick([nil, "app.one"]), path: paths.path(),
        facts: EntryFacts(
          random.pick(EntryType.allCases), size: Int64(random.below(200)), modified: 0))
      var verdicts = policy.start(.data)
      for index in policy.matching(query, depth: query.path.count) {
        let step = policy.steps[index]
        guard step.operation.condition.holds(query.facts, scanStart: 5_000) else { continue }
        step.operation.apply(to: &verdicts, belowCache: false)
        let purges = step.rule?.settings.purge.map { $0 != .never } ?? false
        let discards = step.rule?.settings.update == .discard
        guard verdicts.keep.losesSomething, purges || discards,
          policy.layers[step.layer].part != .overlay
        else { continue }
        #expect(
          named.contains(step.location),
          "seed \(seed): \(step.id) loses \(PolicyIssue.text(of: query.path))")
      }
    }
  }

  @Test func anUnfinishedSearchReportsDoubt() throws {
    let rules =
      ["{id: c, match: '**', class: cache}"]
      + (0..<50).map { "{id: u\($0), match: a\($0)/b, class: user-data}" }
      + ["{id: p, match: '**/c', purge: anytime}"]
    let text = "policy: x\nschema: 1\nrules:\n" + rules.map { "  - \($0)\n" }.joined()
    let policy = try library(["p.yaml": text]).compile(PolicyRequest(policy: "x"))
    let rule = try #require(policy.steps.last?.rule)
    var search = LossCheck.Search(policy)
    guard case .none = search.find(rule, policy.steps.count - 1) else {
      Issue.record("the search reports a loss that does not exist")
      return
    }
    var hasty = LossCheck.Search(policy, budget: 10)
    guard case .undecided = hasty.find(rule, policy.steps.count - 1) else {
      Issue.record("ten steps were enough for an answer")
      return
    }
  }
}
