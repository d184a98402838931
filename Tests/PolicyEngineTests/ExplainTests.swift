import SandboxModel
import Testing

@testable import PolicyEngine

struct ExplainTests {
  private func library() -> PolicyLibrary {
    let base = """
      policy: base
      schema: 1
      layout: flatpak
      classes: {cache: {backup: never}}
      rules:
        - {id: all, match: '**', class: cache, why: it is, source: a guide}
        - {id: big, match: '**', backup: when-changed, when: {larger-than: 1K, type: file}}
        - {id: data, match: data/**, class: user-data, platform: {backup: never}}
      apps:
        org.x: {rules: [{id: mine, match: data/x, restore: skip}]}
      markers:
        - {id: no, xattr: a, inherit: directory, then: {backup: never, restore: skip}}
        - {id: tag, file: TAG, inherit: directory, then: {class: cache, backup: never}}
        - {id: brash, xattr: b, then: {class: cache, backup: {cloud: never}}}

      """
    let site = "overlay: all\nschema: 1\nrules:\n  - {id: keep, match: data/x, backup: always}\n"
    return PolicyLibrary([
      PolicySource(name: "base.yaml", text: base, origin: .builtin),
      PolicySource(name: "site.yaml", text: site, origin: .system),
    ])
  }

  @Test func stepsAreListedInOrderWithTheirLocations() throws {
    let policy = try library().compile(
      PolicyRequest(layout: .flatpak, patterns: [.include("data")]))
    let query = policy.query("data/x", app: "org.x", marks: [1: ["no", "tag"], 2: ["brash"]])
    let explanation = policy.explain(query)
    #expect(
      explanation.steps.map { "\($0.layer) \($0.kind.rawValue) \($0.id)" } == [
        "base start data", "base rule all", "base rule big", "base rule data", "base app mine",
        "base marker no", "base marker tag", "base marker brash", "site.yaml rule keep",
        "--exclude, --include pattern include-1",
      ])
    #expect(explanation.steps.map { $0.location?.line } == [nil, 6, 7, 8, 10, 12, 13, 14, 4, 1])
    #expect(
      explanation.steps.map(\.outcome) == [
        .applied, .applied, .notMet("type is file, larger than 1024 bytes"), .applied, .applied,
        .applied, .refused(.userData), .limited(.userData), .applied, .applied,
      ])
    #expect(explanation.steps[1].why == "it is")
    #expect(explanation.steps[1].source == "a guide")
    #expect(explanation.steps[4].keep.map(\.description) == ["restore: skip"])
    #expect(explanation.steps[7].keep.map(\.description) == ["backup: {cloud: never}"])
    #expect(explanation.steps[3].platform.map(\.description).contains("backup: never"))
    #expect(explanation.steps[8].origin == .system)
  }

  @Test func aKeptEntryNamesTheOverruledMark() throws {
    let policy = try library().compile(PolicyRequest(layout: .flatpak))
    let marked = policy.explain(policy.query("data/x", marks: [1: ["no"]]))
    #expect(marked.verdicts.keep.backup.mode() == .always)
    #expect(
      marked.overruledMarks == [
        Explanation.OverruledMark(
          mark: "no", rule: "keep", location: PolicyLocation(file: "site.yaml", line: 4, column: 5))
      ])
    #expect(policy.explain(policy.query("data/y", marks: [1: ["no"]])).overruledMarks == [])
    #expect(policy.explain(policy.query("data/x")).overruledMarks == [])
    let brash = policy.explain(
      policy.query("data/x", marks: [2: ["brash"]]), for: Destination(isCloud: true))
    #expect(brash.overruledMarks.map(\.mark) == ["brash"])
  }

  @Test func aTagInUserDataIsReportedAsRefused() throws {
    let policy = try library().compile(PolicyRequest(layout: .flatpak))
    let explanation = policy.explain(policy.query("data/y", marks: [1: ["tag"]]))
    #expect(explanation.steps.last?.outcome == .refused(.userData))
    #expect(explanation.verdicts.keep.backup.mode() == .always)
  }
}
