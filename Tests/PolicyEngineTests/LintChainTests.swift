import SandboxModel
import Testing

@testable import PolicyEngine

/// Issues between files, and issues with examples.
struct LintChainTests {
  @Test func cyclesAreReportedWithTheirChain() {
    expectIssue(
      "policy: a\nschema: 1\nextends: [b]\n",
      .extends, problem: "the policies extend each other: a extends b extends c extends a",
      expected: "policies without a cycle", at: PolicyLocation(file: "c.yaml", line: 3, column: 11),
      with: [
        "b.yaml": "policy: b\nschema: 1\nextends: [c]\n",
        "c.yaml": "policy: c\nschema: 1\nextends: [a]\n",
      ])
    expectIssue(
      "policy: a\nschema: 1\nextends: ¶a\n", .extends, problem: "a extends a",
      expected: "policies without a cycle")
  }

  @Test func missingPoliciesAreReported() {
    expectIssue(
      "policy: a\nschema: 1\nextends: [¶aple]\n", .extends, problem: "there is no policy 'aple'",
      expected: "'apple'", with: ["apple.yaml": "policy: apple\nschema: 1\n"])
    expectIssue(
      "policy: a\nschema: 1\nlayout: flatpak\nextends: [¶b]\n", .extends,
      problem: "'b' is for the layout folder", expected: "a policy for flatpak",
      with: ["b.yaml": "policy: b\nschema: 1\nlayout: folder\n"])
  }

  @Test func failingExamplesAreReported() {
    let rules = policy(
      "{id: a, match: a/**, class: cache, purge: {order: 20}, platform: {backup: never}}")
    expectIssue(
      rules + "examples:\n  - {in: data, path: a/b, class: ¶support}\n", .example,
      problem: "data 'a/b' results in class: cache", expected: "class: support")
    expectIssue(
      rules + "examples:\n  - {in: data, path: a/b, backup: ¶never}\n", .example,
      problem: "results in backup: always", expected: "backup: never")
    expectIssue(
      rules + "examples:\n  - {in: data, path: a/b, purge: ¶{order: 10}}\n", .example,
      problem: "results in purge: {order: 20, when: under-pressure}",
      expected: "purge: {order: 10}")
    expectIssue(
      rules + "examples:\n  - {in: data, path: a/b, platform: {backup: ¶always}}\n", .example,
      problem: "results in platform backup: never", expected: "backup: always")
    expectIssue(
      rules + "examples:\n  - {in: data, path: a/b, backup: ¶{cloud: never}}\n", .example,
      problem: "backup: {cloud: always}", expected: "backup: {cloud: never}")
    expectIssue(
      rules + "examples:\n  - {in: group, path: a/b, restore: ¶skip, update: may-vanish}\n",
      .example, problem: "restore: restore", expected: "restore: skip")
  }

  @Test func invalidExamplesAreReported() {
    let head = "policy: x\nschema: 1\nexamples:\n  - "
    expectIssue(
      "policy: x\nschema: 1\nexamples:\n  - {in: data, path: ¶a//b, class: unknown}\n", .value,
      problem: "'a//b' is not a path", expected: "single slashes")
    expectIssue(
      head + "{in: data, path: a/b, marked: {¶b: m}, class: unknown}\n",
      .value, problem: "'b' is not part of the example's path", expected: "a directory above it")
    expectIssue(
      head + "¶{in: data, path: a/b, marked: {a: m}, class: unknown}\n",
      .value, problem: "there is no marker 'm'", expected: "a marker of the policy")
    expectIssue(
      "layout: folder\n" + head + "¶{in: data, path: a, class: unknown}\n",
      .value, problem: "the layout folder has no container 'data'", expected: "folder")
    expectIssue(
      "policy: x\nschema: 1\nexamples:\n  - ¶{in: data, path: a}\n", .key,
      problem: "an example sets nothing", expected: "class, backup")
  }

  @Test func examplesOfAnOverlayRunOverEachLayout() {
    let flatpak = "policy: f\nschema: 1\nlayout: flatpak\n"
    expectIssue(
      "overlay: [flatpak]\nschema: 1\nrules:\n"
        + "  - {id: a, in: data, match: data/x, class: support}\n"
        + "examples:\n  - {in: data, path: data/x, class: support}\n"
        + "  - {in: data, path: data/y, class: ¶support}\n",
      .example, problem: "class: unknown", expected: "class: support",
      with: ["f.yaml": flatpak])
  }

  @Test func testCountsExamples() {
    let text =
      policy("{id: a, match: a/**, class: cache}")
      + "examples:\n  - {in: data, path: a, class: cache}\n  - {in: data, path: b, class: cache}\n"
    let (count, failures) = library(["p.yaml": text]).test("p.yaml")
    #expect(count == 2)
    #expect(failures.map(\.kind) == [.example])
  }

  @Test func allIssuesAreReportedAtOnce() {
    let text = policy(
      "{id: a, match: a/**, clas: cache}", "{id: a, match: '[', class: cache}",
      "{id: b, match: b/**, purge: anytime}")
    let kinds = library(["p.yaml": text]).lint().map(\.kind)
    #expect(kinds == [.key, .duplicate, .pattern, .loss])
  }

  @Test func anInvalidPolicyIsNotCompiled() throws {
    let base = PolicySource(
      name: "f.yaml", text: "policy: f\nschema: 1\nlayout: flatpak\n", origin: .builtin)
    let overlay = PolicySource(
      name: "/etc/sandboxctl/policies/site.yaml",
      text: "overlay: all\nschema: 1\nrules:\n  - {id: a, match: '**', purge: anytime}\n",
      origin: .system)
    let library = PolicyLibrary([base, overlay])
    let error = #expect(throws: PolicyError.self) {
      try library.compile(PolicyRequest(layout: .flatpak))
    }
    #expect(error?.issues.map(\.kind) == [.loss])
    #expect(error?.description.contains("site.yaml:4:5") == true)
    #expect(
      error?.hint?.contains(
        "'sandboxctl policy lint /etc/sandboxctl/policies/site.yaml' lists") == true)
    let broken = PolicySource(name: "/etc/x.yaml", text: "a: [", origin: .system)
    #expect(throws: PolicyError.self) {
      try PolicyLibrary([base, broken]).compile(PolicyRequest(layout: .flatpak))
    }
  }

  @Test func aSecondPolicyWithTheSameNameIsReported() throws {
    let text = "policy: f\nschema: 1\nlayout: flatpak\n"
    let library = PolicyLibrary([
      PolicySource(name: "f.yaml", text: text, origin: .builtin),
      PolicySource(name: "/home/f.yaml", text: text, origin: .user),
    ])
    let error = #expect(throws: PolicyError.self) {
      try library.compile(PolicyRequest(layout: .flatpak))
    }
    #expect(error?.issues.map(\.kind) == [.duplicate])
    #expect(error?.issues.first?.location.file == "/home/f.yaml")
  }

  @Test func aFileReplacesThePolicyOfItsNameInTheCheck() {
    let base = PolicySource(
      name: "f", text: "policy: f\nschema: 1\nlayout: flatpak\n", origin: .builtin)
    let top = PolicySource(
      name: "g",
      text: "policy: g\nschema: 1\nextends: f\n"
        + "examples:\n  - {in: data, path: a, class: cache}\n", origin: .builtin)
    let draft = PolicySource(
      name: "draft.yaml",
      text: policy("{id: a, in: data, match: '**', class: cache}")
        .replacing("policy: test", with: "policy: f"), origin: .commandLine)
    #expect(PolicyLibrary([base, top]).lint().map(\.kind) == [.example])
    let library = PolicyLibrary([base, top], replacements: [draft])
    #expect(library.lint() == [])
    #expect(library.policy("f")?.source.name == "draft.yaml")
    #expect(library.policy("f")?.source.origin == .builtin)
  }

  @Test func anUnknownNameListsTheKnownOnes() {
    let library = library(["f.yaml": "policy: f\nschema: 1\nlayout: flatpak\n"])
    let error = #expect(throws: PolicyError.self) {
      try library.compile(PolicyRequest(policy: "g"))
    }
    #expect(error?.issues.first?.problem == "there is no policy 'g'")
    #expect(error?.issues.first?.expected == "one of f")
    #expect(error?.hint == "'sandboxctl policy list' lists the policies")
  }

  @Test func anUnknownNameMayBelongToABrokenFile() {
    let library = library(["f.yaml": "policy: f\nschema: 1\n", "g.yaml": "policy: g\nrul"])
    let error = #expect(throws: PolicyError.self) {
      try library.compile(PolicyRequest(policy: "h"))
    }
    #expect(error?.hint?.contains("'sandboxctl policy lint' every mistake") == true)
  }

  @Test func patternsOfTheCommandLineAreChecked() {
    let library = library(["f.yaml": "policy: f\nschema: 1\nlayout: flatpak\n"])
    let error = #expect(throws: PolicyError.self) {
      try library.compile(
        PolicyRequest(layout: .flatpak, patterns: [.exclude("a"), .include("b/[")]))
    }
    #expect(error?.issues.first?.location == PolicyLocation(file: "--include", line: 2, column: 3))
    #expect(error?.hint == "correct --include; sandboxctl-policy(5) describes patterns")
  }
}
