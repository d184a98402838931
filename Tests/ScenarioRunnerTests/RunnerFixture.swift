import BuiltinPolicies
import InterApp
import PolicyEngine
import SandboxModel
import ScenarioRunner
import SystemIO
import TestSupport
import Testing

@testable import Scenario

/// Scenarios that the test creates, and a runner with its own directory.
struct RunnerFixture {
  let directory: TemporaryDirectory
  /// The file name in results; the lines of its steps are numbered from 1.
  static let file = "test.yaml"
  static let notebook: ByteString = "apps/org.example.notebook/data"
  static let notes = "apps/org.example.notebook/data/Documents/Notes/**"

  init() throws { directory = try TemporaryDirectory("scenario") }

  /// The options of a run in the fixture's directory.
  var options: ScenarioOptions {
    var options = ScenarioOptions(
      program: "test",
      declarations: { device in
        InterAppModel(
          AppCatalog(reading: device),
          types: try TypeTable(reading: BuiltinPolicies.interAppTypes, name: "types.yaml"),
          schemes: try SystemSchemes(
            reading: BuiltinPolicies.interAppSchemes, name: "schemes.yaml"),
          version: nil)
      },
      compile: { layout, version in
        let library = PolicyLibrary(
          BuiltinPolicies.files.map {
            PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin)
          })
        return try library.compile(
          PolicyRequest(policy: nil, layout: layout, osVersion: version, patterns: []))
      })
    options.temporary = directory.path
    return options
  }

  /// Returns a document with steps.
  static func document(
    _ steps: [ScenarioStep], device: ScenarioDocument.Device = .sample(day: 0),
    versions: [String] = ["now"]
  ) -> ScenarioDocument {
    ScenarioDocument(
      name: "test", description: nil, sources: [], device: device,
      versions: versions.compactMap { ScenarioDocument.Version($0) }, steps: steps,
      location: PolicyLocation(file: file, line: 1, column: 1))
  }

  /// Returns a step. With `failure`, the step is expected to fail.
  static func step(
    _ action: ScenarioAction, failure: ErrorCode? = nil, versions: OSVersion.Range = .all,
    line: Int = 7
  ) -> ScenarioStep {
    ScenarioStep(
      action: action, versions: versions, failure: failure,
      location: PolicyLocation(file: file, line: line, column: 3))
  }

  /// Returns a step with an expectation for the entries that match.
  static func expect(
    _ pattern: String, _ assertions: ScenarioExpectation.Assertion..., line: Int = 9
  ) throws -> ScenarioStep {
    let location = PolicyLocation(file: file, line: line, column: 5)
    let expectation = ScenarioExpectation(
      patterns: [try Pattern(parsing: pattern)], exceptions: [],
      assertions: assertions.map { .init(assertion: $0, location: location) }, versions: .all,
      location: location)
    return step(.expect([expectation]), line: line)
  }

  static func write(_ path: ByteString, _ text: String) throws -> ScenarioStep {
    step(
      .write(
        .init(path: try LogicalPath(notebook.appending(path)), content: .text(text), mode: nil)))
  }

  /// Runs a document and returns the results.
  func run(
    _ document: ScenarioDocument, _ adapt: (inout ScenarioOptions) -> Void = { _ in }
  ) throws -> [ScenarioResult] {
    var options = options
    adapt(&options)
    return try ScenarioRunner(options).run(document.versions.map { .init(document, $0) })
  }

  /// Runs steps on the sample device, expects that they pass, and checks that no copy remains.
  func pass(_ steps: ScenarioStep..., versions: [String] = ["now"]) throws {
    for result in try run(Self.document(steps, versions: versions)) {
      #expect(result.outcome == .passed, "\(result.version)")
    }
    #expect(try directory.directory.names().isEmpty)
  }
}

extension ScenarioExpectation.Values {
  /// The values of a verdict that decides about backups.
  static func backup(_ mode: BackupDisposition.Mode) -> Self {
    Self(dataClass: nil, backup: mode, update: nil, purge: nil, restore: nil)
  }
}
