import PolicyEngine
import SandboxModel
import SystemIO
import Testing

@testable import Scenario

/// The first scenario for a device.
struct DraftTests {
  private func draft(
    _ paths: [String], links: [ByteString] = [], _ apps: [String]
  ) -> ScenarioDraft {
    let kept = Verdict(
      .userData, backup: BackupDisposition(.always), update: .preserve, purge: .never,
      restore: .restore)
    return ScenarioDraft(
      root: "/device", layout: .coreSimulator,
      entries: (paths.map { (ByteString($0), .file) } + links.map { ($0, .link) }).map {
        (path: ByteString, kind: ScenarioEntry.Kind) in
        ScenarioEntry(path: path, kind: kind, verdicts: Verdicts(keep: kept, platform: kept))
      }, apps: apps.compactMap { BundleIdentifier(ByteString($0)) })
  }

  private func document(_ draft: ScenarioDraft) throws -> ScenarioDocument {
    let (document, issues) = ScenarioDocument.read(
      PolicySource(name: "draft.yaml", text: draft.text, origin: .commandLine))
    #expect(issues.isEmpty, "\(issues.prefix(3))")
    return try #require(document)
  }

  /// A device can have more apps than a scenario may have steps, and more data than it may have
  /// patterns.
  @Test(arguments: [(3, 1), (700, 1), (300, 4)])
  func aDraftKeepsTheLimits(apps: Int, parts: Int) throws {
    let names = (0..<apps).map { "com.example.a\($0)" }
    let draft = draft(
      names.flatMap { name in (0..<parts).map { "apps/\(name)/data/part-\($0)/x" } }, names)
    let document = try document(draft)
    let updates = document.steps.filter { $0.action.kind == .update }
    #expect(updates.count + draft.omitted.count == apps)
    #expect(draft.omitted.isEmpty == (apps == 3) && !updates.isEmpty)
  }

  @Test func aNameIsAPatternThatMatchesOnlyItself() throws {
    let names = ["a*\u{301}", "b[c]", "d?", "e,f{g}", "h\\i"]
    let paths = names.map { "apps/com.example.a/data/\($0)/x" }
    let document = try document(draft(paths, ["com.example.a"]))
    #expect(document.expectations.count == 3 * names.count)
    for path in paths {
      #expect(document.expectations.filter { $0.matches(ByteString(path)) }.count == 3, "\(path)")
    }
    let other = ByteString("apps/com.example.a/data/a-\u{301}/x")
    #expect(!document.expectations.contains { $0.matches(other) })
  }

  /// The targets of links change, also of those whose names are not UTF-8.
  @Test func aLinkIsNotExpectedToKeepItsTarget() throws {
    let data = ByteString("apps/com.example.a/data/Documents")
    let links = [data.appending("l?nk"), data.appending(ByteString([0x61, 0xFF, 0x2A]))]
    let document = try document(
      draft(["apps/com.example.a/data/Documents/x"], links: links, ["com.example.a"]))
    #expect(document.expectations.count == 3)
    for expectation in document.expectations {
      #expect(expectation.matches(data.appending("x")))
      #expect(!links.contains { expectation.matches($0) })
    }
  }
}
