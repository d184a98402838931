import SandboxModel
import Testing

@testable import PolicyEngine

struct ConditionTests {
  @Test func typesRestrictARule() throws {
    let policy = try compile(
      policy(
        "{id: a, match: '**', class: cache, when: {type: special}}",
        "{id: b, match: f/**, class: support, when: {type: file}}",
        "{id: c, match: d/**, class: preferences, when: {type: [database, symlink]}}"))
    #expect(policy.keep("x", facts: EntryFacts(.special)).dataClass == .cache)
    #expect(policy.keep("x", facts: EntryFacts(.file)).dataClass == .unknown)
    #expect(policy.keep("f/x", facts: EntryFacts(.file)).dataClass == .support)
    #expect(
      policy.keep("f/x", facts: EntryFacts(.database)).dataClass == .support, "a database is a file"
    )
    #expect(policy.keep("f/x", facts: EntryFacts(.directory)).dataClass == .unknown)
    #expect(policy.keep("d/x", facts: EntryFacts(.database)).dataClass == .preferences)
    #expect(policy.keep("d/x", facts: EntryFacts(.symlink)).dataClass == .preferences)
    #expect(policy.keep("d/x", facts: EntryFacts(.file)).dataClass == .unknown)
  }

  @Test func laterRulesOverrideASizeRule() throws {
    let policy = try compile(
      policy(
        "{id: a, match: '**', backup: never, when: {larger-than: 1K}}",
        "{id: b, match: keep/**, backup: always}", "{id: c, match: '**/x', restore: skip}"))
    #expect(policy.keep("a", facts: EntryFacts(.file, size: 1024)).backup.mode() == .always)
    #expect(policy.keep("a", facts: EntryFacts(.file, size: 1025)).backup.mode() == .never)
    #expect(policy.keep("a", facts: EntryFacts(.directory, size: 4096)).backup.mode() == .always)
    #expect(policy.keep("keep/x", facts: EntryFacts(.file, size: 4096)).backup.mode() == .always)
    #expect(policy.keep("keep/x", facts: EntryFacts(.file, size: 4096)).restore == .skip)
    #expect(policy.keep("x", facts: EntryFacts(.file, size: 4096)).backup.mode() == .never)
    #expect(policy.keep("x", facts: EntryFacts(.file, size: 4096)).restore == .skip)
  }

  @Test func agesAreMeasuredAtTheStartOfTheScan() throws {
    let policy = try compile(
      policy(
        "{id: a, match: '**', class: cache}",
        "{id: b, match: '**', purge: anytime, when: {older-than: 30d}}",
        "{id: c, match: '**', purge: never, when: {newer-than: 1d}}"))
    let start: Int64 = 1_000_000_000
    func purge(_ age: Int64?) -> PurgeDisposition {
      let facts = EntryFacts(.file, modified: age.map { start - $0 })
      return policy.verdicts("x", facts: facts, scanStart: start).keep.purge
    }
    #expect(purge(30 * 86_400 + 1) == .anytime)
    #expect(purge(30 * 86_400) == policy.classes[.cache]?.purge)
    #expect(purge(86_399) == .never)
    #expect(purge(86_400) == policy.classes[.cache]?.purge)
    #expect(purge(-5) == .never, "changed after the scan's start")
    #expect(purge(nil) == policy.classes[.cache]?.purge)
    let extreme = EntryFacts(.file, modified: Int64.min)
    #expect(
      policy.verdicts("x", facts: extreme, scanStart: start).keep.purge
        == policy.classes[.cache]?.purge)
  }

  @Test func siblingsAreBesideTheNamedDirectory() throws {
    let policy = try compile(
      policy(
        "{id: a, match: '**/{Cache,GPUCache}/**', class: cache, when: {sibling: Local State}}",
        "{id: b, match: data/*.tmp, class: temporary, when: {sibling: [lock, 'é']}}"))
    func dataClass(_ path: String, _ siblings: [Int: [String]]) -> DataClass {
      policy.verdicts(path, siblings: siblings).keep.dataClass
    }
    #expect(dataClass("config/App/Cache", [2: ["Local State"]]) == .cache)
    #expect(dataClass("config/App/Cache/a/b", [2: ["Local State"]]) == .cache)
    #expect(dataClass("config/App/Cache/a/b", [1: ["Local State"]]) == .unknown)
    #expect(dataClass("config/App/Cache/a/b", [3: ["Local State"]]) == .unknown)
    #expect(dataClass("config/App/Cache/a/b", [:]) == .unknown)
    #expect(dataClass("config/App/Other/a", [2: ["Local State"]]) == .unknown)
    #expect(dataClass("data/a.tmp", [1: ["lock"]]) == .temporary)
    #expect(dataClass("data/a.tmp", [1: ["e\u{301}"]]) == .temporary)
    #expect(dataClass("data/a.tmp", [0: ["lock"]]) == .unknown)
  }

  @Test func theWalkLooksForSiblingsOnlyIfTheyMatter() throws {
    let policy = try compile(
      policy("{id: a, match: 'data/x/Cache/**', class: cache, when: {sibling: Local State}}"))
    var classifier = Classifier(policy)
    var state = classifier.root(.data)
    #expect(classifier.siblingNames(state) == [])
    state = classifier.descend(state, Array("data".utf8).span)
    state = classifier.descend(state, Array("x".utf8).span)
    #expect(classifier.siblingNames(state) == SiblingSet(sibling: 0))
    #expect(policy.siblingNames == [Array("Local State".utf8)])
    #expect(classifier.holding(state, []) == state)
    let inside = classifier.holding(state, SiblingSet(sibling: 0))
    #expect(
      classifier.verdicts(inside, EntryFacts(.directory))
        == classifier.verdicts(state, EntryFacts(.directory)))
    let cache = classifier.descend(inside, Array("Cache".utf8).span)
    #expect(classifier.verdicts(cache, EntryFacts(.directory)).keep.dataClass == .cache)
    #expect(classifier.siblingNames(cache) == [])
  }

  @Test func versionsRestrictARule() throws {
    let text = policy(
      "{id: a, match: '**', class: support, versions: '5.0.1..<6'}",
      "{id: b, match: '**', class: preferences, versions: '>=7'}")
    #expect(try compile(text, osVersion: "5").keep("x").dataClass == .unknown)
    #expect(try compile(text, osVersion: "5.5").keep("x").dataClass == .support)
    #expect(try compile(text, osVersion: "6.5").keep("x").dataClass == .unknown)
    #expect(try compile(text).keep("x").dataClass == .preferences)
  }
}
