import Testing

@testable import PolicyEngine

/// Rules that make irreplaceable data purgeable or discardable need a reason.
struct LintLossTests {
  @Test func rulesThatSetAPreciousClassNeedAReason() {
    expectIssue(
      policy("¶{id: a, match: a/**, class: user-data, purge: anytime}"), .loss,
      problem: "after the rule 'a', user-data is purgeable", expected: "allow-loss")
    expectIssue(
      policy("¶{id: a, match: a/**, class: inbox, update: discard}"), .loss,
      problem: "inbox is discarded on update", expected: "allow-loss")
    expectIssue(
      policy("¶{id: a, match: a/**, class: unknown, purge: {order: 3}}"), .loss,
      problem: "unknown is purgeable", expected: "a class that may be lost")
  }

  @Test func rulesWithoutAClassOnPreciousDataNeedAReason() {
    expectIssue(
      policy("¶{id: a, match: a/**, purge: anytime}"), .loss,
      problem: "after the rule 'a', unknown (such as 'a/", expected: "allow-loss")
    expectIssue(
      policy(
        "{id: c, match: a/**, class: cache}", "{id: d, match: 'a/*/keep/**', class: user-data}",
        "¶{id: p, match: 'a/[a-m]*/**', purge: anytime}"), .loss,
      problem: "user-data (such as 'a/", expected: "allow-loss")
    expectIssue(
      policy("{id: c, match: a/**, class: cache}", "¶{id: p, match: '{a,b}/**', update: discard}"),
      .loss, problem: "unknown (such as 'b", expected: "allow-loss")
    expectIssue(
      policy(
        "{id: c, match: '**', class: cache, when: {type: file}}",
        "¶{id: p, match: 'a/**', purge: anytime}"),
      .loss, problem: "unknown", expected: "allow-loss")
    expectIssue(
      policy(
        "{id: c, match: '**/C/**', class: cache, when: {sibling: S}}",
        "¶{id: p, match: '**/C/**', purge: anytime}"),
      .loss, problem: "unknown", expected: "allow-loss")
  }

  @Test func overlaysOnPreciousDataNeedAReason() {
    let head = "overlay: [flatpak]\nschema: 1\nrules:\n  - "
    let base =
      "policy: base\nschema: 1\nlayout: flatpak\nrules:\n"
      + "  - {id: d, in: data, match: data/**, class: user-data}\n"
      + "  - {id: c, in: data, match: cache/**, class: cache}\n"
    expectIssue(
      head + "¶{id: a, in: data, match: data/Games/**, purge: anytime}\n",
      .loss, problem: "user-data (such as 'data/Games", expected: "allow-loss",
      with: ["base.yaml": base])
    let sound =
      head + "{id: a, in: data, match: cache/x/**, purge: anytime}\n"
    #expect(library(["base.yaml": base, "o.yaml": sound]).lint() == [])
  }

  @Test func classesAndMarkersNeedAReason() {
    expectIssue(
      "policy: x\nschema: 1\nclasses:\n  ¶user-data: {purge: anytime}\n", .loss,
      problem: "the class user-data, user-data is purgeable", expected: "allow-loss")
    expectIssue(
      "policy: x\nschema: 1\nmarkers:\n  - ¶{id: m, file: TAG, then: {purge: anytime}}\n", .loss,
      problem: "the marker 'm' makes unknown below a cache purgeable", expected: "'class: cache'")
  }

  @Test func aReasonOfTheClassIsEnough() {
    let text = policy(
      "{id: a, match: a/**, class: user-data}",
      head: "classes: {user-data: {purge: anytime, allow-loss: 'a scratch device'}}\n")
    #expect(library(["p.yaml": text]).lint() == [])
  }

  @Test(arguments: [
    "{id: a, match: a/**, class: user-data, purge: anytime, allow-loss: 'the user asked for it'}",
    "{id: a, match: a/**, purge: anytime, allow-loss: 'the user asked for it'}",
    "{id: a, match: a/**, class: cache, purge: anytime, update: discard}",
    "{id: a, match: a/**, class: user-data, backup: never}",
    "{id: a, match: a/**, class: user-data, platform: {update: discard}}",
    "{id: a, match: a/**, purge: never, update: may-vanish}",
  ])
  func rulesWithoutLossNeedNoReason(rule: String) {
    #expect(library(["p.yaml": policy(rule)]).lint() == [])
  }

  @Test func aClassOfAnEarlierRuleCounts() {
    let rules = policy(
      "{id: a, match: a/**, class: cache}", "{id: b, match: 'a/b*/**', purge: {order: 5}}",
      "{id: c, match: '**', purge: anytime, when: {type: special}, allow-loss: 'no data'}")
    #expect(library(["p.yaml": rules]).lint() == [])
  }
}
