import Foundation
import PolicyEngine
import TestSupport
import Testing

@testable import Scenario

/// The reader of scenarios.
struct ReadingTests {
  private func issues(_ steps: String) -> [PolicyIssue] {
    ScenarioDocument.read(source("scenario: x\nschema: 1\ndevice: {sample: 0}\n" + steps)).issues
  }

  private func source(_ text: String) -> PolicySource {
    PolicySource(name: "a.yaml", text: text, origin: .commandLine)
  }

  @Test func unknownStepIsNamedWithLineAndColumn() throws {
    let issue = try #require(issues("steps:\n  - bakup: {}\n").first)
    #expect(issue.location == PolicyLocation(file: "a.yaml", line: 5, column: 5))
    #expect(issue.problem.contains("'bakup'") && issue.expected.contains("'backup'"))
  }

  @Test(arguments: [
    "steps:\n  - purge: {level: extreme}\n",
    "steps:\n  - restore: {to: new-device, snapshot: never-made}\n",
    "steps:\n  - expect: [{match: apps/**, same-bytes: never-named}]\n",
    "steps:\n  - write: {path: ../outside, text: x}\n",
    "steps:\n  - write: {path: apps/a/data/x, size: 1TiB}\n",
    "steps:\n  - write: {path: apps/a/data/x, text: x, mode: \"999\"}\n",
    "steps:\n  - expect: [{match: \"a**\", exists: true}]\n",
    "steps:\n  - {recover: true, fails: no_such_code}\n",
  ])
  func mistakeIsRefusedInItsLine(_ steps: String) throws {
    #expect(try #require(issues(steps).first).location.line == 5)
  }

  /// A purge makes nothing durable, so it has no phases (sandboxctl-scenario(5)).
  @Test func aPurgeIsInterruptedAtACallOnly() throws {
    let step = "steps:\n  - interrupt:\n      step: {purge: {level: low}}\n      at: 1\n"
    for (unit, line, column) in [("", 7, 11), ("      of: phase\n", 8, 11)] {
      let issue = try #require(issues(step + unit).first)
      #expect(issue.location == PolicyLocation(file: "a.yaml", line: line, column: column))
      #expect(issue.problem == "a purge has no phases" && issue.expected.contains("of: call"))
    }
    #expect(issues(step + "      of: call\n").isEmpty)
    #expect(issues("steps:\n  - interrupt: {step: {offload: {app: a}}, at: 1}\n").isEmpty)
  }

  @Test func textThatIsNotAScenarioIsRefused() {
    for text in ["", "[", "\u{0}", "- a", "scenario: x", String(repeating: "[", count: 10_000)] {
      #expect(!ScenarioDocument.read(source(text)).issues.isEmpty)
    }
  }

  @Test func aFileThatIsTooLargeOrNotYAMLIsUnreadable() throws {
    let large = "scenario: x\n#" + String(repeating: "a", count: ScenarioDocument.maximumSize)
    let issue = try #require(ScenarioDocument.read(source(large)).issues.first)
    #expect(issue.problem == "the file is too large")
    #expect(issue.expected == "a scenario of at most \(ScenarioDocument.maximumSize) bytes")
    let other = try #require(ScenarioDocument.read(source("scenario: [\n")).issues.first)
    #expect(other.kind == .unreadable && other.expected == "YAML")
  }

  @Test func scenariosOfTheProgramAreValidAndHaveSources() throws {
    let directory = Shared.packageRoot.appendingPathComponent("policies/scenarios")
    let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
      .filter { $0.hasSuffix(".yaml") }
    #expect(files.count == 10)
    for file in files {
      let text = try String(contentsOf: directory.appendingPathComponent(file), encoding: .utf8)
      let (document, issues) = ScenarioDocument.read(source(text))
      #expect(issues.isEmpty, "\(issues)")
      let read = try #require(document)
      #expect(read.name + ".yaml" == file)
      #expect(!read.sources.isEmpty && read.versions.map(\.name) == ["5.0", "5.0.1", "5.1", "now"])
    }
  }
}
