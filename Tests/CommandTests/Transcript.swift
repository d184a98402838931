import Foundation
import TestSupport
import Testing

/// A transcript of commands: each with its output, its messages (lines with a leading bar) and its
/// exit status, without values that change from run to run.
struct Transcript {
  private let cli: CommandLine
  private var text = ""

  init(_ cli: CommandLine) { self.cli = cli }

  /// Runs a command with an expected exit status and records its output.
  @discardableResult
  mutating func run(
    _ line: String, exits code: Int32, asNobody: Bool = false,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Program.Outcome {
    let outcome = try asNobody ? cli.runAsNobody(line) : cli.run(line)
    #expect(outcome.code == code, "\(line): \(outcome.errors)", sourceLocation: sourceLocation)
    if !outcome.errors.isEmpty {
      let starts = code == 0 ? ["note: ", "sandboxctl: warning: "] : ["sandboxctl: "]
      let isNamed = starts.contains { outcome.errors.hasPrefix($0) }
      #expect(isNamed, "\(line): \(outcome.errors)", sourceLocation: sourceLocation)
    }
    note(line, outcome)
    return outcome
  }

  /// Runs a command and records its JSON output, one member a line, without machine-dependent
  /// members.
  mutating func runForJSON(_ line: String, without members: Set<String>) throws {
    let object = try cli.json(line).filter { !members.contains($0.key) }
    text += "$ sandboxctl \(line)\n"
    for (key, value) in object.sorted(by: { $0.key < $1.key }) {
      let data = try JSONSerialization.data(
        withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed, .withoutEscapingSlashes])
      text += "\(key): \(String(decoding: data, as: UTF8.self))\n"
    }
    text += "\n"
  }

  /// Records the output of a command.
  mutating func note(_ line: String, _ outcome: Program.Outcome) {
    text += "$ sandboxctl \(line)\n" + outcome.output
    for said in outcome.errors.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      text += "| \(said)\n"
    }
    text += "[\(outcome.code)]\n\n"
  }

  /// Compares the transcript with the recorded file of that name.
  func expectSnapshot(
    _ name: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try TextSnapshot.expect(Self.masked(text, cli), is: name, sourceLocation: sourceLocation)
  }

  private static func masked(_ text: String, _ cli: CommandLine) -> String {
    text.replacingOccurrences(of: cli.directory.string, with: "<folder>")
      .replacing(/[0-9a-f]{2}\/[0-9a-f]{64}/, with: "<id>")
      .replacing(/[0-9a-f]{64}/, with: "<id>")
      .replacing(
        /\b(?=[0-9a-f]*[0-9])([0-9a-f]{32}|[0-9a-f]{16}|[0-9a-f]{8})\b/, with: "<short-id>"
      )
      .replacing(/(builtin:[a-z]+\.yaml):[0-9]+:[0-9]+/) { "\($0.output.1):<line>" }
      .replacing(
        /in ((under )?[0-9]+(\.[0-9])? s|[0-9]+ (min [0-9]+ s|h [0-9]+ min))\b/,
        with: "in <duration>"
      )
      .replacing(/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}/, with: "<time>")
  }
}
