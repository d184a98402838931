import SandboxModel
import TestSupport
import Testing

@testable import PolicyEngine

/// Policies far larger than real ones.
struct ScaleTests {
  @Test func tenThousandRulesTakeBoundedTime() throws {
    let rules = (0..<10_000).map { index in
      "  - {id: r\(index), match: 'Library/Caches/app\(index)/**', class: cache, "
        + "purge: {order: \(index % 900)}}\n"
    }
    let text = "policy: x\nschema: 1\nlayout: coresimulator\nrules:\n" + rules.joined()
    let library = library(["big.yaml": text])
    var issues: [PolicyIssue] = []
    let checking = processorSeconds { issues = library.lint() }
    #expect(issues == [])
    #expect(checking < 20)
    var compiled: CompiledPolicy?
    let compiling = try processorSeconds {
      compiled = try library.compile(PolicyRequest(policy: "x"))
    }
    #expect(compiling < 10)
    let policy = try #require(compiled)
    var classifier = Classifier(policy)
    for index in stride(from: 0, to: 10_000, by: 97) {
      let verdict = classifier.verdicts(EntryQuery(.data, path: "Library/Caches/app\(index)/a"))
        .keep
      #expect(verdict.purge.terms?.order == UInt16(index % 900))
    }
  }

  @Test func manyGlobsTakeBoundedMemory() throws {
    let rules = (0..<300).map {
      "{id: r\($0), match: '**/*x\($0)x*/**', class: cache, purge: {order: \($0)}}"
    }
    let text = "policy: x\nschema: 1\nrules:\n" + rules.map { "  - \($0)\n" }.joined()
    let policy = try library(["p.yaml": text]).compile(PolicyRequest(policy: "x"))
    var classifier = Classifier(policy)
    for index in 0..<300 {
      let query = EntryQuery(.data, path: "a/bx\(index)xc/d")
      #expect(classifier.verdicts(query).keep.purge.terms?.order == UInt16(index))
      #expect(policy.explain(query).verdicts == classifier.verdicts(query))
    }
    #expect(
      classifier.verdicts(EntryQuery(.data, path: "x7x/x250x/x9x")).keep.purge.terms?.order == 250)
  }

  @Test func statesAreDroppedOnRequest() throws {
    let rules = (0..<12).map { "  - {id: r\($0), match: '**/a\($0)/**/b\($0)', class: support}\n" }
    let text = "policy: x\nschema: 1\nrules:\n" + rules.joined()
    let policy = try library(["p.yaml": text]).compile(PolicyRequest(policy: "x"))
    var classifier = Classifier(policy)
    var random = SeededRandom(seed: 5)
    var held: [(Classifier.State, EntryQuery)] = []
    for _ in 0..<2_000 {
      let path = (0..<8).map { _ in "a\(random.below(12))" }.joined(separator: "/")
      let query = EntryQuery(.data, path: path)
      held.append((classifier.state(query), query))
    }
    let before = classifier.stateCount
    #expect(before > 1_000)
    let needsCompaction = classifier.needsCompaction
    #expect(!needsCompaction)
    var states = Array(held.prefix(10).map(\.0))
    classifier.compact(keeping: &states)
    #expect(classifier.stateCount <= 10)
    for (state, query) in zip(states, held.map(\.1)) {
      for index in 0..<12 {
        let name = Array("b\(index)".utf8)
        let found = classifier.verdicts(classifier.descend(state, name.span), EntryFacts(.file))
        var whole = query
        whole.path.append(name)
        #expect(found == policy.explain(whole).verdicts)
      }
    }
  }

  @Test func tooManyTransitionsAreDropped() {
    var table = Classifier.TransitionTable()
    for index in 0..<UInt32(Classifier.TransitionTable.capacity) {
      table.insert(index, 7, target: index &+ 1)
    }
    #expect(table.count == Classifier.TransitionTable.capacity)
    #expect(table.find(99, 7) == 100)
    #expect(table.find(99, 8) == nil)
    table.insert(1, 9, target: 5)
    #expect(table.count == 1)
    #expect(table.find(99, 7) == nil)
    #expect(table.find(1, 9) == 5)
  }

  @Test func nestingIsLimited() {
    let text = "policy: x\nschema: 1\nrules: " + String(repeating: "[", count: 5_000)
    let issues = library(["deep.yaml": text]).lint()
    #expect(issues.map(\.kind) == [.unreadable])
  }
}
