import SandboxModel
import Testing

@testable import PolicyEngine

/// The key `protection` of rules: layering, explanation, examples and errors.
struct ProtectionTests {
  private func protection(_ path: String, _ policy: CompiledPolicy) -> ProtectionClass? {
    var classifier = Classifier(policy)
    let verdicts = classifier.verdicts(EntryQuery(.data, path: path))
    #expect(verdicts.keep.protection == verdicts.platform.protection)
    return verdicts.keep.protection
  }

  @Test func theLastRuleThatSetsItApplies() throws {
    let policy = try compile(
      policy(
        "{id: all, match: '**', protection: until-first-unlock}",
        "{id: documents, match: Documents/**, protection: complete}",
        "{id: mail, match: Documents/mail/*, protection: complete-unless-open}",
        "{id: free, match: '**/*.log', protection: none}"))
    #expect(protection("Library/x", policy) == .untilFirstUnlock)
    #expect(protection("Documents/x", policy) == .complete)
    #expect(protection("Documents/mail/1", policy) == .completeUnlessOpen)
    #expect(protection("Documents/mail/1.log", policy) == .unprotected)
  }

  @Test func withoutARuleNothingIsKnown() throws {
    let policy = try compile(policy("{id: a, match: Documents/**, class: user-data}"))
    #expect(protection("Documents/x", policy) == nil)
    #expect(protection("x", policy) == nil)
  }

  @Test func aDataClassLeavesItUnchanged() throws {
    let policy = try compile(
      policy(
        "{id: secret, match: Library/Caches/secret/**, protection: complete}",
        "{id: caches, match: Library/Caches/**, class: cache}",
        "{id: kept, match: Library/Caches/secret/kept/**, class: user-data, backup: always}"))
    #expect(protection("Library/Caches/secret/x", policy) == .complete)
    #expect(protection("Library/Caches/secret/kept/x", policy) == .complete)
    #expect(protection("Library/Caches/x", policy) == nil)
  }

  @Test func anExplanationNamesTheRule() throws {
    let policy = try compile(
      policy("{id: secret, match: Documents/**, protection: complete, why: the user's letters}"))
    let explanation = policy.explain(EntryQuery(.data, path: "Documents/x"))
    let step = try #require(explanation.steps.last)
    #expect(step.id == "secret")
    #expect(step.keep.map(\.description) == ["protection: complete"])
    #expect(explanation.verdicts.keep.protection == .complete)
  }

  @Test func examplesCheckIt() {
    let head = "policy: p\nschema: 1\nrules: [{id: a, match: a/**, protection: complete}]\n"
    #expect(issues(head + "examples: [{in: data, path: a/x, protection: complete}]\n").isEmpty)
    #expect(
      issues(head + "examples: [{in: data, path: a/x, protection: none}]\n").map(\.description)
        .contains { $0.contains("protection: complete") && $0.contains("protection: none") })
    #expect(
      issues(head + "examples: [{in: data, path: b, protection: none}]\n").map(\.description)
        .contains { $0.contains("protection: no class") })
  }

  @Test(arguments: [
    "rules: [{id: a, match: a, protection: NSFileProtectionComplete}]\n",
    "rules: [{id: a, match: a, protection: [complete]}]\n",
    "rules: [{id: a, match: a, class: cache, platform: {protection: none}}]\n",
    "classes: {cache: {protection: complete}}\n",
    "markers: [{id: a, xattr: b, then: {protection: complete}}]\n",
    "rules: [{id: a, match: a, purge: anytime, protection: none, when: {older-than: 3d}}]\n",
  ])
  func mistakesAreRefused(text: String) {
    #expect(!issues("policy: p\nschema: 1\n" + text).isEmpty)
  }

  @Test func aRuleThatIsAlwaysOverriddenIsReported() {
    let found = issues(
      "policy: p\nschema: 1\nrules:\n- {id: a, match: a/b, protection: complete}\n"
        + "- {id: b, match: a/**, protection: none}\n")
    #expect(found.map(\.description).contains { $0.contains("has no effect") })
    let kept = issues(
      "policy: p\nschema: 1\nrules:\n- {id: a, match: a/b, protection: complete}\n"
        + "- {id: b, match: a/**, class: cache}\n")
    #expect(kept.isEmpty)
  }

  @Test func theClassesAreThoseOfBackups() {
    #expect(ProtectionClass.allCases.map(\.number) == [1, 2, 3, 4])
    #expect(ProtectionClass.allCases.map(\.letter) == ["A", "B", "C", "D"])
    for protection in ProtectionClass.allCases {
      #expect(ProtectionClass(attribute: Array("\(protection.number)".utf8)) == protection)
    }
    for other in ["", "0", "5", "11", "1 ", "01", "A", "complete"] {
      #expect(ProtectionClass(attribute: Array(other.utf8)) == nil)
    }
  }

  /// Returns the issues in a policy file.
  private func issues(_ text: String) -> [PolicyIssue] {
    library(["p.yaml": text]).lint()
  }
}
