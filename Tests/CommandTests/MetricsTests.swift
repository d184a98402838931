import Foundation
import SystemIO
import TestSupport
import Testing

/// `backup --metrics`: a file that a strict reader of the exposition format accepts, for each kind
/// of run.
struct MetricsTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    try cli.directory.write("kept", at: "a \"tree\"\\n/kept")
    _ = try cli.succeed("init repo --plain --no-default")
  }

  private func backUp(_ words: String...) throws -> Program.Outcome {
    try cli.run(
      ["backup", "--layout", "folder", "--root", "a \"tree\"\\n", "--metrics", "out/b.prom"]
        + words)
  }

  private func metrics() throws -> ExpositionText {
    try ExpositionText(String(decoding: cli.directory.read("out/b.prom"), as: UTF8.self))
  }

  private func make(_ directory: ByteString) throws {
    _ = try Directory.make(path: cli.directory.path(directory))
  }

  @Test func runIsReported() throws {
    try make("out")
    let before = Date().timeIntervalSince1970 - 1
    let outcome = try backUp("--repo", "repo", "--quiet")
    #expect(outcome.code == 0 && outcome.output.isEmpty && outcome.errors.isEmpty)
    let first = try metrics()
    #expect(first.types.values.allSatisfy { $0 == "gauge" })
    #expect(first.samples.allSatisfy { $0.labels["host"] == Host.name })
    #expect(first.value("last_exit_code") == 0)
    let last = try #require(first.value("last_run_timestamp_seconds"))
    #expect(last >= before && last <= Date().timeIntervalSince1970 + 1)
    #expect(first.value("last_success_timestamp_seconds") == last)
    #expect(try #require(first.value("last_duration_seconds")) > 0)
    #expect(first.value("device_files") == 1)
    #expect(first.value("device_bytes") == 4)
    #expect(try #require(first.value("device_stored_bytes")) > 0)
    #expect(first.value("device_failures") == 0)
    let labels = try #require(first.samples.first { $0.name.hasSuffix("device_files") }).labels
    #expect(labels["layout"] == "folder")
    #expect(try #require(labels["root"]).hasSuffix("/a \"tree\"\\n"))
    let names = try Directory.open(path: cli.directory.path("out")).names()
    #expect(names == ["b.prom"])
    #expect(
      try Directory.open(path: cli.directory.path("out")).status("b.prom").permissions == 0o644)
  }

  @Test func failureKeepsTheTimeOfTheLastSuccess() throws {
    try make("out")
    _ = try backUp("--repo", "repo", "--quiet")
    let success = try #require(try metrics().value("last_success_timestamp_seconds"))
    #expect(try backUp("--repo", "nowhere").code == 10)
    let failed = try metrics()
    #expect(failed.value("last_exit_code") == 10)
    #expect(failed.value("last_success_timestamp_seconds") == success)
    #expect(try #require(failed.value("last_run_timestamp_seconds")) >= success)
    #expect(failed.value("device_files") == nil)
    #expect(try backUp("--repo", "repo", "--quiet", "--fail-if-unchanged").code == 4)
    let unchanged = try metrics()
    #expect(unchanged.value("last_exit_code") == 4)
    #expect(try #require(unchanged.value("last_success_timestamp_seconds")) >= success)
    #expect(unchanged.value("device_stored_bytes") == 0)
  }

  @Test func unwritableMetricsAreAWarning() throws {
    let absent = try backUp("--repo", "repo", "--quiet")
    #expect(absent.code == 0)
    #expect(absent.errors.contains("warning: cannot write the metrics"), "\(absent.errors)")
    try cli.directory.write("my letters", at: "out/b.prom")
    let other = try backUp("--repo", "repo", "--quiet")
    #expect(other.code == 0 && other.errors.contains("is not a file of these metrics"))
    #expect(try cli.directory.read("out/b.prom") == Array("my letters".utf8))
    #expect(try cli.snapshots().count == 2)
  }

  /// The other commands that a schedule runs.
  @Test func checkForgetAndPruneAreReported() throws {
    try make("out")
    for word in ["a", "b", "c"] {
      try cli.directory.write(word, at: "a \"tree\"\\n/kept")
      _ = try backUp("--repo", "repo", "--quiet")
    }
    func run(_ words: String, _ operation: String, exits code: Int32 = 0) throws -> ExpositionText {
      let outcome = try cli.run("\(words) --repo repo --quiet --metrics out/\(operation).prom")
      #expect(outcome.code == code, "\(words): \(outcome)")
      if code == 0 { #expect(outcome.output.isEmpty && outcome.errors.isEmpty, "\(outcome)") }
      var text = try ExpositionText(
        String(decoding: cli.directory.read(ByteString("out/\(operation).prom")), as: UTF8.self))
      text.operation = operation
      #expect(text.value("last_exit_code") == Double(code))
      return text
    }
    let check = try run("check --read-data-subset 50%", "check")
    #expect(check.value("snapshots") == 3 && check.value("damaged_objects") == 0)
    #expect(try #require(check.value("packs_read")) >= 1)
    #expect(check.value("last_success_timestamp_seconds") != nil)
    let forget = try run("forget --keep-last 1 --prune", "forget")
    #expect(forget.value("removed_snapshots") == 2 && forget.value("kept_snapshots") == 1)
    #expect(try #require(forget.value("prune_removed_packs")) > 0)
    let prune = try run("prune", "prune")
    #expect(prune.value("snapshots") == 1 && prune.value("removed_packs") == 0)
    // A failure keeps the time of the last success, and damage does not count as success.
    try cli.flip(byte: 20, of: cli.path(ofSnapshot: cli.snapshots()[0]))
    let damaged = try run("check", "check", exits: 13)
    #expect(damaged.value("damaged_objects") == 1)
    #expect(
      damaged.value("last_success_timestamp_seconds")
        == check.value("last_success_timestamp_seconds"))
    #expect(try run("forget", "forget", exits: 2).value("removed_snapshots") == nil)
    // The file of another command is not replaced, and a dry run writes none.
    let outcome = try cli.run("prune --repo repo --quiet --metrics out/check.prom")
    #expect(outcome.errors.contains("is not a file of these metrics"), "\(outcome)")
    _ = try cli.run("prune --dry-run --repo repo --quiet --metrics out/dry.prom")
    #expect(try !Directory.open(path: cli.directory.path("out")).names().contains("dry.prom"))
  }

  @Test func readerIsStrict() {
    for text in [
      "a 1", "# TYPE a gauge\na 1\n", "# HELP a x\n# TYPE a gauge\na one\n",
      "# HELP a x\n# TYPE a gauge\na{b=\"c} 1\n", "# HELP a x\n# TYPE a gauge\na{b=\"\\q\"} 1\n",
      "# HELP a x\n# TYPE a gauge\na 1\na 1\n", "# HELP a x\n# TYPE a much\na 1\n",
      "# HELP a x\n# TYPE a gauge\n9 1\n", "# HELP a x\n# TYPE a gauge\na{b=\"c\",b=\"d\"} 1\n",
    ] {
      #expect(throws: ExpositionText.Mistake.self, "\(text)") { try ExpositionText(text) }
    }
  }
}

/// A strict reader of Prometheus' text exposition format 0.0.4, like its textfile collector: HELP
/// and TYPE before a metric's samples, each sample once, valid names and labels, no timestamps.
struct ExpositionText {
  struct Sample {
    let name: String
    let labels: [String: String]
    let value: Double
  }

  struct Mistake: Error { let line: String }

  /// The command whose metrics these are.
  var operation = "backup"
  private(set) var types: [String: String] = [:]
  private(set) var samples: [Sample] = []
  private var helps: Set<String> = []
  private var seen: Set<String> = []

  init(_ text: String) throws {
    guard text.hasSuffix("\n") else { throw Mistake(line: "the end") }
    for line in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false) {
      try read(String(line))
    }
  }

  /// Returns the value of the only sample of one of our metrics.
  func value(_ name: String) -> Double? {
    let found = samples.filter { $0.name == "sandboxctl_\(operation)_\(name)" }
    return found.count == 1 ? found[0].value : nil
  }

  private mutating func read(_ line: String) throws {
    if let help = line.wholeMatch(of: /# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)/) {
      guard helps.insert(String(help.1)).inserted else { throw Mistake(line: line) }
    } else if let type = line.wholeMatch(
      of: /# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped)/)
    {
      let name = String(type.1)
      guard helps.contains(name), types[name] == nil, !samples.contains(where: { $0.name == name })
      else { throw Mistake(line: line) }
      types[name] = String(type.2)
    } else {
      try readSample(line)
    }
  }

  private mutating func readSample(_ line: String) throws {
    let form = /([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? ([^ ]+)/
    guard let match = line.wholeMatch(of: form), let value = Double(match.4),
      types[String(match.1)] != nil, seen.insert("\(match.1)\(match.2 ?? "")").inserted
    else { throw Mistake(line: line) }
    let labels = try Self.labels(match.3.map(String.init) ?? "", line)
    samples.append(Sample(name: String(match.1), labels: labels, value: value))
  }

  private static func labels(_ text: String, _ line: String) throws -> [String: String] {
    var labels: [String: String] = [:]
    var rest = text[...]
    while !rest.isEmpty {
      let form = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)/
      guard let match = rest.prefixMatch(of: form), labels[String(match.1)] == nil else {
        throw Mistake(line: line)
      }
      labels[String(match.1)] = String(match.2).replacingOccurrences(of: "\\\\", with: "\u{0}")
        .replacingOccurrences(of: "\\\"", with: "\"").replacingOccurrences(of: "\\n", with: "\n")
        .replacingOccurrences(of: "\u{0}", with: "\\")
      rest = rest[match.range.upperBound...]
    }
    return labels
  }
}
