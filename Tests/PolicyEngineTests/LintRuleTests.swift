import Testing

@testable import PolicyEngine

/// Issues with rules that are grammatically valid.
struct LintRuleTests {
  @Test func invalidPatternsAreReportedWithTheCharacter() {
    expectIssue(
      policy("{id: a, match: a/b¶**, class: cache}"), .pattern, problem: "`**` next to",
      expected: "as a whole component")
    expectIssue(
      policy("{id: a, match: \"a/¶[b\", class: cache}"), .pattern, problem: "`[` without `]`",
      expected: "`\\[`")
    expectIssue(
      policy("{id: a, match: ¶/a, class: cache}"), .pattern, problem: "begins with a slash",
      expected: "relative to the container's root")
    expectIssue(
      policy("{id: a, match: a/¶../b, class: cache}"), .pattern, problem: "`..`",
      expected: "without it")
    expectIssue(
      policy("{id: a, match: ¶\"a\\\\\", class: cache}"), .pattern, problem: "at the end",
      expected: "`\\\\`")
    expectIssue(
      "policy: x\nschema: 1\nquotas:\n  - {match: a/¶/b, per: app, size: 3M}\n", .pattern,
      problem: "a component is empty", expected: "one slash")
  }

  @Test func patternsThatCannotMatchInTheLayoutAreReported() {
    let ios = "layout: coresimulator\n"
    expectIssue(
      policy("{id: a, match: ¶Documants/**, class: cache}", head: ios), .unmatchable,
      problem: "'Documants/**' cannot match", expected: "Documents, Library, tmp")
    expectIssue(
      policy("{id: a, match: ¶documents/**, class: cache}", head: ios), .unmatchable,
      problem: "cannot match", expected: "Documents")
    expectIssue(
      policy("{id: a, match: ¶'{Docs,Lib}/**', class: cache}", head: ios), .unmatchable,
      problem: "cannot match", expected: "Documents")
    expectIssue(
      policy("{id: a, in: bundle, match: ¶Info.plist, class: bundle}", head: ios), .unmatchable,
      problem: "cannot match", expected: "iTunesMetadata.plist")
    expectIssue(
      policy("{id: a, match: ¶Cache/**, class: cache, in: data}", head: "layout: flatpak\n"),
      .unmatchable, problem: "cannot match", expected: "data, config, cache")
    expectIssue(
      policy("{id: a, match: ¶x/**, class: cache}", head: "layout: folder\n"), .unmatchable,
      problem: "containers that the layout does not have: data, extension", expected: "folder")
    expectIssue(
      "overlay: [flatpak, coresimulator]\nschema: 1\nrules:\n"
        + "  - {id: a, in: data, match: ¶Kache/**, class: cache}\n", .unmatchable,
      problem: "cannot match", expected: "Documents")
  }

  @Test(arguments: [
    "{id: a, match: documents/**, ignore-case: true, class: support}",
    "{id: a, match: '{Docs,Library}/**', class: support}",
    "{id: a, match: .hidden/**, class: support}", "{id: a, match: '*/x', class: support}",
    "{id: a, match: '**/x', class: support}", "{id: a, in: bundle, match: X.app/**, class: bundle}",
    "{id: a, in: group, match: anything/**, class: support}",
    "{id: a, in: [data, group], match: anything/**, class: support}",
  ])
  func patternsThatMayMatchInTheLayoutAreAccepted(rule: String) {
    #expect(library(["p.yaml": policy(rule, head: "layout: coresimulator\n")]).lint() == [])
  }

  @Test func rulesOfOneAppMayNameAnything() {
    let text =
      "policy: x\nschema: 1\nlayout: coresimulator\napps:\n  org.example:\n    rules:\n"
      + "      - {id: a, match: Invented/**, class: cache}\n"
    #expect(library(["p.yaml": text]).lint() == [])
  }

  @Test func rulesWithoutEffectAreReported() {
    expectIssue(
      policy(
        "¶{id: a, match: Library/Caches/**, class: cache}",
        "{id: b, match: Library/**, class: support}"
      ), .overridden, problem: "'a' has no effect: 'b' in line 5",
      expected: "the general rule before")
    expectIssue(
      policy(
        "¶{id: a, match: a, backup: never}", "{id: b, match: '*', backup: always, restore: skip}"),
      .overridden, problem: "'a' has no effect", expected: "general")
    expectIssue(
      policy(
        "¶{id: a, match: a/**, class: cache, when: {type: file, larger-than: 2M}}",
        "{id: b, match: a/**, class: support, when: {type: [file, symlink], larger-than: 1M}}"),
      .overridden, problem: "'a' has no effect", expected: "general")
    expectIssue(
      "policy: x\nschema: 1\napps:\n  org.example:\n    rules:\n"
        + "      - ¶{id: a, match: x/y, class: cache}\n"
        + "      - {id: b, match: x/**, class: support}\n",
      .overridden, problem: "'a' has no effect", expected: "general")
  }

  @Test(arguments: [
    ("{id: a, match: a/**, class: cache}", "{id: b, match: a/b/**, class: support}"),
    ("{id: a, match: a/**, class: cache}", "{id: b, match: a/**, backup: never}"),
    ("{id: a, match: a, backup: never, restore: skip}", "{id: b, match: a, backup: always}"),
    ("{id: a, in: [data, group], match: a, class: cache}", "{id: b, match: a, class: support}"),
    ("{id: a, match: a, class: cache}", "{id: b, match: a, class: support, versions: '>=5'}"),
    ("{id: a, match: a, class: cache}", "{id: b, match: a, class: support, when: {type: file}}"),
    ("{id: a, match: a, class: cache}", "{id: b, match: a, class: support, when: {sibling: s}}"),
    ("{id: a, match: a, class: cache}", "{id: b, match: a, class: support, platform: unchanged}"),
    (
      "{id: a, match: a, backup: {cloud: never}}", "{id: b, match: a, backup: {unencrypted: never}}"
    ),
  ])
  func rulesWithSomeEffectAreAccepted(first: String, second: String) {
    #expect(library(["p.yaml": policy(first, second)]).lint() == [])
  }

  @Test func duplicateIdentifiersAreReported() {
    expectIssue(
      policy("{id: a, match: a, class: cache}", "{id: ¶a, match: b, class: cache}"), .duplicate,
      problem: "the id 'a' is already used in line 4", expected: "another id")
    expectIssue(
      policy("{id: a, match: a, class: cache}")
        + "markers:\n  - {id: ¶a, xattr: x, then: {backup: never}}\n",
      .duplicate, problem: "already used", expected: "another id")
    expectIssue(
      "policy: x\nschema: 1\nquotas:\n  - {match: a/**, per: app, size: 3M}\n"
        + "  - {match: ¶a/**, per: app, size: 4M}\n",
      .duplicate, problem: "occurs twice", expected: "once")
    let level =
      "{level: low, when-free-below: {percent: 3}, reclaim-to: {percent: 5}, "
      + "orders: [], min-age: 0d}"
    expectIssue(
      "policy: x\nschema: 1\npressure:\n  - \(level)\n  - ¶\(level)\n", .duplicate,
      problem: "the level 'low' occurs twice", expected: "once")
    expectIssue(
      "¶policy: x\nschema: 1\n", .duplicate, problem: "'x' is already in a.yaml",
      expected: "another name", with: ["a.yaml": "policy: x\nschema: 1\n"])
  }

  @Test func agesOnBackupRulesAreReported() {
    expectIssue(
      policy("{id: a, match: a, backup: never, when: {¶older-than: 3d}}"), .condition,
      problem: "'older-than' in a rule that sets 'backup'", expected: "'purge' alone")
    expectIssue(
      policy("{id: a, match: a, class: cache, purge: anytime, when: {¶newer-than: 3d}}"),
      .condition, problem: "'newer-than' in a rule that sets 'class'", expected: "'purge' alone")
    expectIssue(
      policy("{id: a, match: '**', class: cache, when: {type: file}}")
        + "  - {id: b, match: a, update: preserve, when: {¶older-than: 3d}}\n",
      .condition, problem: "sets 'update'", expected: "'purge' alone")
    #expect(
      library([
        "p.yaml": policy(
          "{id: c, match: '**', class: cache}",
          "{id: a, match: a, purge: anytime, when: {older-than: 3d}}")
      ]).lint() == [])
  }

  @Test func siblingsWithoutANamedEntryAreReported() {
    expectIssue(
      policy("{id: a, match: ¶'**', class: cache, when: {sibling: x}}"), .condition,
      problem: "'sibling' with a pattern that names no entry", expected: "before `**`")
  }

  @Test func invalidSiblingNamesAreReported() {
    for sibling in ["/", "a/b", "a//", ".", "../"] {
      expectIssue(
        policy("{id: a, match: 'x/**', class: cache, when: {sibling: [s, ¶'\(sibling)']}}"),
        .condition, problem: "the sibling '\(sibling)' is not a name", expected: "'NAME/'")
    }
    #expect(
      library([
        "p.yaml": policy("{id: a, match: 'x/**', class: cache, when: {sibling: [s, d/]}}")
      ]).lint() == [])
  }
}
