import Foundation
import SystemIO
import TestSupport
import Testing

/// The stable codes of errors: command lines that fail with them, and their documentation.
struct ErrorCodeTests {
  /// A command line, the code of its error, and the exit status.
  typealias Row = (line: String, code: ErrorCode, status: Int)

  /// Failing runs on a sample device and its backup, which change nothing.
  private static let rows: [Row] = [
    ("frobnicate --json", .unknownCommand, 2),
    ("backup --frobnicate --json", .invalidArguments, 2),
    ("backup --repo repo --repo repo --json", .optionRepeated, 2),
    ("apps --root device --layout palm --json", .unknownLayout, 2),
    ("apps --profile nosuch --json", .unknownProfile, 2),
    ("apps --json", .noDevice, 1),
    ("apps --root full --json", .noDevice, 1), ("apps --root nowhere --json", .notFound, 1),
    ("install New.app --json", .deviceRequired, 2),
    ("init other --json", .optionRequired, 2),
    ("init full --plain --json", .notEmpty, 1),
    ("sample full --json", .notEmpty, 1),
    ("sample full --day 1 --json", .notASample, 1),
    ("sample other --day 99 --json", .invalidValue, 2),
    ("snapshots --repo nowhere --json", .noRepository, 10),
    ("ls latest --repo vacant --json", .snapshotNotFound, 1),
    ("ls ffffffff --repo repo --json", .snapshotNotFound, 1),
    ("ls yesterday --repo repo --json", .invalidValue, 2),
    ("ls latest:nobody/Documents --repo repo --json", .noApp, 1),
    ("ls latest:/etc/passwd --repo repo --json", .notInContainer, 1),
    ("versions / --repo repo --json", .invalidPath, 2),
    ("versions apps/org.example.notebook/data/none --repo repo --json", .pathNotInSnapshot, 1),
    ("find [ --repo repo --json", .invalidPattern, 2),
    ("check --read-data-subset 11/7 --repo repo --json", .invalidValue, 2),
    ("check --read-data --read-data-subset 10% --repo repo --json", .optionsConflict, 2),
    ("restore latest --repo repo --json", .targetRequired, 2),
    ("restore latest --to back --in-place --repo repo --json", .optionsConflict, 2),
    ("classify --root device nobody/Documents --json", .noApp, 1),
    ("classify --root device --stdin0 apps --json", .optionsConflict, 2),
    ("classify --root device --policy nosuch --json", .noPolicy, 2),
    ("classify --root device --policy site.yaml --json", .invalidPolicy, 1),
    ("classify --root device --exclude a//b --json", .invalidPattern, 2),
    ("classify --root device notebook/none --json", .notFound, 1),
    ("classify --root device --summary notebook/none --json", .notFound, 1),
    ("explain --root device /etc/passwd --json", .notInContainer, 1),
    ("explain --root device notebook/../x --json", .invalidPath, 2),
    ("explain --layout folder --root full none --json", .notInContainer, 1),
    ("interapp groups --layout folder --root full --json", .layoutUnsupported, 2),
    ("scenario run --filter nosuch --json", .notFound, 2),
    ("policy show nosuch --json", .noPolicy, 2),
    ("policy test bad.yaml --json", .invalidPolicy, 2),
    ("policy lint nowhere.yaml --json", .notFound, 1),
    ("scenario init --root device --to bad.yaml --json", .targetExists, 1),
    ("purge --root device --level critical --json", .terminalRequired, 2),
    ("purge --root device --level huge --json", .invalidValue, 2),
    ("purge --root device --interval 1m --json", .optionRequired, 2),
    ("purge --root device --free 1M --until-free 5 --json", .optionsConflict, 2),
    ("trash empty none --root device --json", .noTrashOperation, 1),
    ("schedule install --json", .optionRequired, 2),
    ("schedule install --cron --hourly --daily --json", .optionsConflict, 2),
    ("schedule install --cron --on-failure ( --json", .invalidShellText, 2),
  ]

  @Test func failuresHaveTheirCodes() throws {
    let cli = try Self.fixture()
    let documented = try Self.documented()
    for (line, code, status) in Self.rows {
      let failure = try failure(of: cli.run(line))
      #expect(failure["code"] as? String == code.rawValue, "\(line): \(failure)")
      #expect(failure["exit_status"] as? Int == status, "\(line): \(failure)")
      #expect(documented[code.rawValue]?.contains(status) == true, "\(code): \(status)")
    }
  }

  private static func fixture() throws -> CommandLine {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    for repository in ["repo", "vacant"] {
      _ = try cli.succeed("init \(repository) --plain --no-default")
    }
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    try cli.directory.write("mine", at: "full/mine")
    try cli.directory.write(
      "policy: bad\nschema: 1\nextends: [common]\nrules:\n  - {id: a, match: [x]}\n",
      at: "bad.yaml")
    try cli.directory.write(
      "overlay: all\nschema: 1\nrules:\n  - {id: one, match: Documents/**, clas: cache}\n",
      at: "site.yaml")
    return cli
  }

  /// Returns the failure that a run printed last; its exit status is that of the run.
  private func failure(of outcome: Program.Outcome) throws -> [String: Any] {
    let line = try #require(outcome.errors.split(separator: "\n").last)
    let failure = try CommandLine.object(line)
    #expect(failure["exit_status"] as? Int == Int(outcome.code), "\(failure)")
    return failure
  }

  private func expect(
    _ code: ErrorCode, _ status: Int, of outcome: Program.Outcome
  ) throws -> [String: Any] {
    let failure = try failure(of: outcome)
    #expect(failure["code"] as? String == code.rawValue, "\(failure)")
    #expect(failure["exit_status"] as? Int == status, "\(failure)")
    return failure
  }

  // MARK: - Repositories

  @Test(arguments: [
    (#""version": 1"#, #""version": 2"#, ErrorCode.unsupportedFormat, 1),
    (#""read": []"#, #""read": ["shards"]"#, .unknownFeature, 1), ("{", "[", .damaged, 13),
  ])
  func unusableSettingsHaveTheirCodes(
    _ part: String, other: String, code: ErrorCode, status: Int
  ) throws {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
    let file: ByteString = "repo/repository.json"
    let text = String(decoding: try cli.directory.read(file), as: UTF8.self)
    try #require(text.contains(part))
    try cli.directory.write(text.replacing(part, with: other, maxReplacements: 1), at: file)
    _ = try expect(code, status, of: cli.run("snapshots --repo repo --json"))
  }

  @Test func ambiguousSnapshotHasItsCode() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
    for digit in ["a", "b"] {
      let name = String(repeating: "0", count: 63) + digit
      try cli.directory.write("{}", at: ByteString("repo/snapshots/\(name).json"))
    }
    let failure = try expect(.snapshotAmbiguous, 1, of: cli.run("ls 0000 --repo repo --json"))
    #expect(failure["action"] as? String == "find the snapshot")
    #expect(failure["subject"] as? String == "0000")
  }

  // MARK: - The environment

  @Test func missingHomeHasCodes() throws {
    let cli = try CommandLine()
    let wrapper = ["env", "-u", "HOME"]
    _ = try expect(.environmentMissing, 2, of: cli.run("apps --json", under: wrapper))
    _ = try expect(.repositoryRequired, 2, of: cli.run("snapshots --json", under: wrapper))
  }

  @Test func invalidConfigurationHasItsCode() throws {
    let cli = try CommandLine()
    try cli.directory.write("frobnicate: 1\n", at: "home/.config/sandboxctl/config.yaml")
    let failure = try expect(.invalidConfiguration, 1, of: cli.run("apps --json"))
    #expect(failure["action"] as? String == "use the configuration")
    #expect((failure["subject"] as? String)?.hasSuffix("config.yaml:1:1") == true, "\(failure)")
  }

  @Test func argumentThatIsNotTextHasItsCode() throws {
    let cli = try CommandLine()
    let text = "exec \"$0\" backup --repo repo --json --tag $'\\xff'"
    _ = try expect(.invalidInput, 2, of: cli.run([], under: ["bash", "-c", text]))
  }

  @Test func failedSystemCallIsTheCause() throws {
    let cli = try CommandLine()
    _ = try Directory.make(path: cli.directory.path("closed"), permissions: 0o555)
    _ = try Program.run("chmod", ["a+rx", cli.directory.string])
    let failure = try expect(
      .permissionDenied, 1, of: cli.runAsNobody("init closed/repo --plain --no-default --json"))
    #expect(failure["action"] as? String == "create the repository")
    #expect(failure["subject"] as? String == "closed/repo")
    #expect(failure["reason"] as? String == "permission denied")
    let cause = try #require(failure["cause"] as? [String: Any])
    #expect(cause["code"] as? String == "permission_denied")
    #expect(cause["reason"] as? String == "permission denied")
  }

  @Test func policyErrorNamesTheLineOfTheMistake() throws {
    let cli = try Self.fixture()
    let failure = try expect(
      .invalidPattern, 2, of: cli.run("classify --root device --exclude a//b --json"))
    #expect(failure["action"] as? String == "use the policy 'ios'")
    #expect(failure["subject"] as? String == "--exclude:1:3")
    #expect(failure["reason"] as? String == "a component is empty in 'a//b'")
  }

  // MARK: - The documentation

  /// Returns the exit statuses of each code in the table of docs/json/README.md.
  private static func documented() throws -> [String: [Int]] {
    var statuses: [String: [Int]] = [:]
    for row in try table() { statuses[row.code] = row.statuses }
    return statuses
  }

  private static func table() throws -> [(code: String, statuses: [Int])] {
    let page = Shared.packageRoot.appendingPathComponent("docs/json/README.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let start = try #require(text.range(of: "| code | exit status | meaning |")).upperBound
    return text[start...].matches(of: /\n\| `(.+)` \| ([0-9, ]+) \| (.+) \|/).map { match in
      let statuses = match.output.2.split(separator: ",").compactMap {
        Int($0.trimmingCharacters(in: .whitespaces))
      }
      return (String(match.output.1), statuses)
    }
  }

  @Test func everyCodeIsDocumentedOnce() throws {
    let table = try Self.table()
    #expect(table.map(\.code) == ErrorCode.allCases.map(\.rawValue))
    for row in table {
      #expect(!row.statuses.isEmpty && row.statuses == row.statuses.sorted(), "\(row)")
      #expect(Set(row.statuses).isSubset(of: [1, 2, 10, 11, 12, 13, 130]), "\(row)")
    }
  }

  @Test func everyCodeIsInTheSchema() throws {
    let file = Shared.packageRoot.appendingPathComponent("docs/json/messages.schema.json")
    let schema = try CommandLine.object(try String(contentsOf: file, encoding: .utf8))
    let definitions = try #require(schema["$defs"] as? [String: Any])
    let code = try #require(definitions["code"] as? [String: Any])
    #expect(code["enum"] as? [String] == ErrorCode.allCases.map(\.rawValue))
  }

  @Test func codesAreInLowerSnakeCase() {
    for code in ErrorCode.allCases {
      #expect(code.rawValue.wholeMatch(of: /[a-z]+(_[a-z]+)*/) != nil, "\(code.rawValue)")
    }
  }
}
