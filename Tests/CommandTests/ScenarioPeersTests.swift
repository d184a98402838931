import Foundation
import SystemIO
import TestSupport
import Testing

/// The reports of `scenario run`: JUnit XML compared with the schema of Jenkins' xUnit plugin, and
/// TAP read by another program, tap-py.
@Suite(.enabled(if: Peers.areInstalled)) struct ScenarioPeersTests {
  private let cli: CommandLine

  /// Four cases of each outcome, with names and messages that have to be escaped.
  init() throws {
    cli = try CommandLine(inMemory: true)
    let head = "schema: 1\ndevice: {sample: 0}\nversions: [\"5.0\", now]\nsteps:\n"
    let write = "  - write: {path: apps/org.example.notebook/data/Documents/x, text: y}\n"
    let absent =
      "  - expect: [{match: apps/org.example.notebook/data/Documents/x, exists: false}]\n"
    for (number, name) in ["]]> & \\\"<a>\\\" é\\u0007", "# SKIP \\n 1..9 #"].enumerated() {
      let start = "scenario: \"\(name)\"\n" + head
      try cli.directory.write(start + write, at: ByteString("passes-\(number).yaml"))
      try cli.directory.write(start + write + absent, at: ByteString("fails-\(number).yaml"))
      try cli.directory.write(
        start + "  - write: {path: apps/no.app/data/x, text: y}\n",
        at: ByteString("errs-\(number).yaml"))
      try cli.directory.write(
        start + write + "    versions: \"<5\"\n",
        at: ByteString("skips-\(number).yaml"))
    }
  }

  private static let files = ["passes", "fails", "errs", "skips"].flatMap { name in
    (0...1).map { "\(name)-\($0).yaml" }
  }.joined(separator: " ")

  @Test func junitIsValidByTheSchemaOfJenkins() throws {
    let outcome = try cli.run("scenario run \(Self.files) --junit results.xml")
    #expect(outcome.code == 5, "\(outcome.errors)")
    let report = try cli.directory.read("results.xml")
    #expect(try validate(report) == "error=4 failure=4 passed=4 skipped=4\n")
    // The validator works.
    let wrong = String(decoding: report, as: UTF8.self).replacing("failures=", with: "failed=")
    #expect(try validate(Array(wrong.utf8)).contains("failed"))
    _ = try cli.succeed("scenario run --only-version now --junit own.xml")
    #expect(try validate(cli.directory.read("own.xml")).contains("passed="))
  }

  @Test func anotherProgramReadsTAP() throws {
    let outcome = try cli.run("scenario run \(Self.files) --tap")
    #expect(outcome.code == 5, "\(outcome.errors)")
    let read = try Program.run(
      Peers.python.path, ["-B", program("read_tap.py")], input: Array(outcome.output.utf8))
    #expect(read.code == 0, "\(read.errors)")
    let lines = read.output.split(separator: "\n")
    #expect(lines.prefix(2) == ["version", "plan 16"])
    let results = lines.filter { $0.hasPrefix("test ") }
    #expect(results.count == 16 && !lines.contains("unknown"), "\(read.output)")
    for (index, line) in results.enumerated() {
      let words = ["ok run", "not ok run", "not ok run", "ok skipped"][index / 4]
      #expect(line.hasPrefix("test \(index + 1) \(words) "), "\(line)")
    }
  }

  private func validate(_ report: [UInt8]) throws -> String {
    let schema = Peers.python.deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("schemas/junit-10.xsd")
    let outcome = try Program.run(
      Peers.python.path, ["-B", program("validate_junit.py"), schema.path], input: report)
    #expect(outcome.code == 0, "\(outcome.errors)")
    return outcome.output
  }

  private func program(_ name: String) -> String {
    Shared.packageRoot.appendingPathComponent("Tests/CommandTests/Programs/\(name)").path
  }
}
