import SystemIO
import TestSupport
import Testing

/// A mistake in a policy is reported with its file, line and column, and the command does nothing.
struct PolicyErrorTests {
  /// Three mistakes: an invalid key (line 4), an invalid value (5), an invalid pattern (6).
  private static let wrong = """
    overlay: all
    schema: 1
    rules:
      - {id: one, match: Documents/**, clas: cache}
      - {id: two, match: Library/**, class: treasure}
      - {id: three, match: /Library/**, class: cache}

    """

  @Test func noCommandRunsWithAnInvalidPolicy() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    try cli.directory.write(Self.wrong, at: "site.yaml")
    var transcript = Transcript(cli)
    for line in [
      "backup --root device --repo repo --policy site.yaml",
      "classify --root device --policy site.yaml",
      "explain --root device apps/org.example.notebook/data/tmp --policy site.yaml",
    ] {
      let outcome = try transcript.run(line, exits: 1)
      #expect(outcome.output.isEmpty)
      #expect(outcome.errors.contains("site.yaml:4:"))
    }
    try transcript.expectSnapshot("errors-policy")
    #expect(try cli.snapshots().isEmpty)
    #expect(try cli.packs().isEmpty)
  }

  @Test func invalidUserPolicyStopsEveryCommand() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    try cli.directory.write(Self.wrong, at: "home/.config/sandboxctl/policies/site.yaml")
    let outcome = try cli.run("classify --root device")
    #expect(outcome.code == 1)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.contains("policies/site.yaml:4:"))
  }

  @Test func lintReportsEachMistakeWithItsPosition() throws {
    let cli = try CommandLine()
    try cli.directory.write(Self.wrong, at: "site.yaml")
    try cli.directory.write("rules: [\n", at: "broken.yaml")
    try cli.directory.write([0xff, 0xfe, 0x00], at: "binary.yaml")
    try cli.directory.write("", at: "empty.yaml")
    try cli.directory.write(
      "overlay: all\nschema: 1\nrules:\n  - {id: one, match: tmp/**, class: cache}\n",
      at: "good.yaml")
    var transcript = Transcript(cli)
    let outcome = try transcript.run("policy lint site.yaml", exits: 5)
    for location in ["site.yaml:4:36: ", "site.yaml:5:41: ", "site.yaml:6:24: "] {
      #expect((outcome.output + outcome.errors).contains(location), "\(location)")
    }
    try transcript.run("policy lint broken.yaml", exits: 5)
    try transcript.run("policy lint binary.yaml", exits: 5)
    try transcript.run("policy lint empty.yaml", exits: 5)
    try transcript.run("policy lint good.yaml", exits: 0)
    try transcript.run("policy lint nowhere.yaml", exits: 1)
    try transcript.run("policy lint .", exits: 1)
    try transcript.expectSnapshot("errors-lint")
  }

  @Test func lintAnswersInJSON() throws {
    let cli = try CommandLine()
    try cli.directory.write(Self.wrong, at: "site.yaml")
    let outcome = try cli.run("policy lint --json site.yaml")
    #expect(outcome.code == 5)
    #expect(outcome.errors.isEmpty)
    let issues = try outcome.output.split(separator: "\n").map { try CommandLine.object($0) }
    #expect(issues.compactMap { $0["line"] as? Int } == [4, 5, 6])
    #expect(issues.compactMap { $0["column"] as? Int } == [36, 41, 24])
    #expect(issues.allSatisfy { ($0["problem"] as? String)?.isEmpty == false })
  }

  @Test func failingExampleIsNamed() throws {
    let cli = try CommandLine()
    try cli.directory.write(
      """
      overlay: all
      schema: 1
      rules:
        - {id: one, match: tmp/**, class: cache}
      examples:
        - {in: data, path: tmp/x, class: cache}
        - {in: data, path: tmp/y, class: user-data}

      """, at: "site.yaml")
    var transcript = Transcript(cli)
    let outcome = try transcript.run("policy test site.yaml", exits: 5)
    #expect((outcome.output + outcome.errors).contains("site.yaml:7:"))
    #expect(!(outcome.output + outcome.errors).contains("site.yaml:6:"))
    try transcript.expectSnapshot("errors-policy-test")
  }

  @Test func oversizedPolicyIsRefused() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let line = Array(
      "# a comment as long as a line of a policy may well be, and longer still\n".utf8)
    let head = Array("overlay: all\nschema: 1\nrules: []\n".utf8)
    let count = 10_485_760 / line.count + 1
    try cli.directory.write(
      head + Array(repeatElement(line, count: count).joined()), at: "big.yaml")
    var transcript = Transcript(cli)
    try transcript.run("policy lint big.yaml", exits: 5)
    try transcript.run("classify --root device --policy big.yaml", exits: 1)
    try transcript.expectSnapshot("errors-policy-size")
  }
}
