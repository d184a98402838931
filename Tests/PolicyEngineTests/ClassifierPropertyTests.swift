import SandboxModel
import Testing

@testable import PolicyEngine

/// The automaton, the explanation and the simple reference agree for random entries and policies.
struct ClassifierPropertyTests {
  private static let scanStart: Int64 = 100_000

  @Test(arguments: [UInt64](1...40))
  func theAutomatonEqualsTheReference(seed: UInt64) throws {
    let made = RandomPolicy(seed: seed)
    var random = made.random
    let library = made.library
    let problems = library.documents.flatMap { library.ownIssues($0) }
    #expect(problems.map(\.description) == [], "seed \(seed)")
    let policy = try library.compile(PolicyRequest(policy: "top"))
    var classifier = Classifier(policy, scanStart: Self.scanStart)
    for round in 0..<150 {
      let entry = Entry(&random, made, policy)
      let found = classifier.verdicts(entry.query)
      let wanted = ReferenceDecider(
        policy: made, query: entry.query, marks: entry.marks, siblings: entry.siblings,
        scanStart: Self.scanStart
      ).verdicts()
      let what = "seed \(seed), round \(round), \(PolicyIssue.text(of: entry.query.path))"
      #expect(found.keep.words == wanted.keep, "\(what)")
      #expect(found.platform.words == wanted.platform, "\(what), platform")
      let explained = policy.explain(entry.query, scanStart: Self.scanStart)
      #expect(explained.verdicts == found, "\(what), explain")
    }
  }

  @Test func aDirectoryThatCannotReachAKeepRuleKeepsNothing() throws {
    var refusals = 0
    for seed in UInt64(100)..<180 {
      let made = RandomPolicy(seed: seed)
      var random = made.random
      let policy = try made.library.compile(PolicyRequest(policy: "top"))
      var classifier = Classifier(policy, scanStart: Self.scanStart)
      for _ in 0..<60 {
        let query = Entry(&random, made, policy).query
        let verdicts = classifier.verdicts(query)
        for depth in 0..<query.path.count {
          var above = query
          above.path = Array(query.path.prefix(depth))
          above.marks = query.marks.filter { $0.key <= depth }
          above.siblings = query.siblings.filter { $0.key < depth }
          let state = classifier.state(above)
          for view in Verdicts.View.allCases {
            for destination in Destination.allCases
            where !classifier.canReachKeep(state, for: destination, view: view) {
              refusals += 1
              #expect(
                verdicts[view].backup.mode(for: destination) == .never,
                "seed \(seed), \(PolicyIssue.text(of: query.path)) at \(depth)")
            }
          }
        }
      }
    }
    #expect(refusals > 500, "the test has enough cases")
  }

  @Test func anExcludedDirectoryIsEnteredOnlyForAKeepRule() throws {
    let policy = try compile(
      policy(
        "{id: c, match: Caches/**, class: cache, backup: never}",
        "{id: k, match: Caches/keep/**, backup: always}",
        "{id: t, match: tmp/**, backup: never}"))
    var classifier = Classifier(policy)
    func canReach(_ path: String) -> Bool {
      classifier.canReachKeep(classifier.state(EntryQuery(.data, path: path)))
    }
    #expect(canReach("Caches"))
    #expect(canReach("Caches/keep/a"))
    #expect(!canReach("Caches/other"))
    #expect(!canReach("tmp"))
    #expect(canReach(""))
  }

  @Test func walksAndWholePathsReachTheSameState() throws {
    let policy = try compile(policy("{id: a, match: 'a/*/c/**', class: support}"))
    var classifier = Classifier(policy)
    let root = classifier.root(.data)
    let whole = classifier.descend(root, path: Array("/a//b/c/d".utf8).span)
    #expect(whole == classifier.state(EntryQuery(.data, path: "a/b/c/d")))
    #expect(classifier.descend(root, path: [UInt8]().span) == root)
    #expect(classifier.verdicts(whole, EntryFacts(.file)).keep.dataClass == .support)
  }

  /// An entry with one of a few names. Some entries have marks and siblings.
  private struct Entry {
    var query: EntryQuery
    var marks: [Int: [String]] = [:]
    var siblings: [Int: [String]] = [:]

    init(_ random: inout SeededRandom, _ made: RandomPolicy, _ policy: CompiledPolicy) {
      var paths = RandomPatterns(seed: random.next())
      query = EntryQuery(
        random.chance(80) ? .data : .group, app: random.pick([nil, "app.one", "app.two"]),
        path: paths.path(),
        facts: EntryFacts(
          random.pick(EntryType.allCases), size: Int64(random.below(200)),
          modified: random.chance(80) ? scanStart - Int64(random.below(2_000)) : nil))
      let names = made.layers.flatMap(\.markers).map(\.id)
      for depth in 0...query.path.count {
        if !names.isEmpty, random.chance(20) { marks[depth] = [random.pick(names)] }
        if random.chance(40) { siblings[depth] = [random.pick(["s", "t"])] }
      }
      let whole = policy.query("", marks: marks, siblings: siblings)
      query.marks = whole.marks
      query.siblings = whole.siblings
    }
  }
}
