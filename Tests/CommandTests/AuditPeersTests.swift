import Foundation
import SystemIO
import TestSupport
import Testing

/// The logs of `audit --format sarif`, compared with the standard's schema and read by another
/// program, sarif-tools.
@Suite(.enabled(if: Peers.areInstalled)) struct AuditPeersTests {
  private let cli: CommandLine
  private let log: String

  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("sample device")
    log = try cli.succeed("audit --root device --format sarif")
  }

  @Test func logIsValid() throws {
    let valid = try validate(log)
    #expect(valid.code == 0 && valid.output.isEmpty, "\(valid.errors)\(valid.output)")
    // The validator works.
    let wrong = try validate(log.replacing("\"results\"", with: "\"findings\""))
    #expect(wrong.code == 0 && wrong.output.contains("findings"))
  }

  @Test func anotherProgramReadsTheLog() throws {
    try cli.directory.write(log, at: "audit.sarif")
    let outcome = try Program.run(
      Peers.python.path, ["-B", program("read_sarif.py"), "audit.sarif"], in: cli.directory.url)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let findings = try cli.jsonLines("audit --root device --json").dropLast()
    for level in ["error", "warning", "note"] {
      let count = findings.count { $0["level"] as? String == level }
      #expect(outcome.output.contains("\(level): \(count)\n"), "\(level)")
    }
    #expect(!outcome.output.contains("error: 0"))
  }

  private func validate(_ log: String) throws -> Program.Outcome {
    let environment = Peers.python.deletingLastPathComponent().deletingLastPathComponent()
    return try Program.run(
      "/usr/bin/python3", ["-B", program("validate_sarif.py"), environment.path],
      input: Array(log.utf8))
  }

  private func program(_ name: String) -> String {
    Shared.packageRoot.appendingPathComponent("Tests/CommandTests/Programs/\(name)").path
  }
}
