import Foundation
import SystemIO
import TestSupport
import Testing

/// The independent reader `Tools/recover.py`, which shares no code with the program.
enum Recover {
  static let script = Shared.packageRoot.appendingPathComponent("Tools/recover.py").path

  /// Runs recover.py in the directory of a test.
  static func run(
    _ cli: CommandLine, _ arguments: [String], under wrapper: [String] = [], script: String = script
  ) throws -> Program.Outcome {
    let key =
      TestEncryption.environment["SANDBOXCTL_IDENTITY_FILE"].map { ["--identity", $0] } ?? []
    let words = wrapper + ["python3", "-B", script] + key + arguments
    return try Program.run(
      words[0], Array(words.dropFirst()), environment: cli.environment, cleanEnvironment: true,
      in: cli.directory.url, timeout: 1800)
  }

  /// Runs recover.py with arguments without spaces; it must succeed without messages.
  @discardableResult
  static func succeed(
    _ cli: CommandLine, _ line: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> String {
    let outcome = try run(cli, line.split(separator: " ").map(String.init))
    #expect(
      outcome.code == 0 && outcome.errors.isEmpty, "recover.py \(line): \(outcome.errors)",
      sourceLocation: sourceLocation)
    return outcome.output
  }
}
