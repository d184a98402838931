import ArchiveStore
import Foundation
import SystemIO
import TestSupport
import Testing

/// `forget --at-most`: the stamp of the last run with the same rules.
struct ForgetIntervalTests {
  private let cli: CommandLine
  private let line = "forget --keep-last 1 --repo repo --at-most "

  init() throws {
    cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("init repo --plain --no-default")
    try backUp(times: 2)
  }

  private func backUp(times count: Int) throws {
    for number in 0..<count {
      try cli.directory.write("text \(number) \(Host.randomHex(bytes: 4))", at: "tree/file")
      try cli.succeedInOrder("backup --layout folder --root tree --repo repo --quiet")
    }
  }

  /// The stamps of this host, by path.
  private func stamps() throws -> [ByteString] {
    let cache: ByteString = "home/.cache/sandboxctl"
    let files = FileManager.default
    let top = cli.directory.string + "/home/.cache/sandboxctl"
    return try files.contentsOfDirectory(atPath: top).flatMap { repository in
      try files.contentsOfDirectory(atPath: top + "/" + repository).filter {
        $0.wholeMatch(of: /forget-[0-9a-f]{64}/) != nil
      }.map { cache.appending(ByteString(repository)).appending(ByteString($0)) }
    }
  }

  private func date(_ stamp: ByteString, secondsFromNow offset: Int64) throws {
    let time = Timestamp(seconds: Host.now().seconds + offset)
    try cli.directory.write(#"{"version":1,"time":"\#(time.rfc3339)"}"#, at: stamp)
  }

  private func count() throws -> Int { try cli.snapshots().count }

  @Test func secondRunDoesNothing() throws {
    let first = try cli.succeed(line + "monthly")
    #expect(first.hasSuffix("removed 1 of 2 snapshots\n"))
    #expect(try stamps().count == 1)
    try backUp(times: 1)
    let second = try cli.run(line + "monthly")
    #expect(second.code == 0 && second.output.isEmpty && second.errors.isEmpty, "\(second)")
    let verbose = try cli.run(line + "monthly --dry-run")
    #expect(verbose.code == 0 && verbose.output.isEmpty)
    #expect(verbose.errors.contains("note: nothing to do: the last run was at "), "\(verbose)")
    #expect(try count() == 2)
    // Without the option it runs.
    _ = try cli.succeed("forget --keep-last 1 --repo repo")
    #expect(try count() == 1)
  }

  private static let day: Int64 = 86_400

  @Test(arguments: [
    (-40 * day, true), (-9 * day, true), (-2 * day, false), (-365 * day, true),
    // The clock was ahead when the stamp was written.
    (3600, true), (365 * day, true),
  ])
  func stampDecidesWhetherItIsDue(_ offset: Int64, _ isDue: Bool) throws {
    _ = try cli.succeed(line + "weekly")
    try backUp(times: 1)
    let stamp = try #require(try stamps().first)
    try date(stamp, secondsFromNow: offset)
    _ = try cli.succeed(line + "weekly --quiet")
    #expect(try count() == (isDue ? 1 : 2))
    // The run replaced the stamp.
    try backUp(times: 1)
    _ = try cli.succeed(line + "weekly --quiet")
    #expect(try count() == (isDue ? 2 : 3))
    #expect(try stamps() == [stamp])
  }

  @Test func unusableStampCountsAsNone() throws {
    _ = try cli.succeed(line + "weekly")
    let stamp = try #require(try stamps().first)
    for text in ["", "{}", #"{"version":2,"time":"2026-01-01T00:00:00Z"}"#, "\u{1}\u{2}"] {
      try backUp(times: 1)
      try cli.directory.write(text, at: stamp)
      _ = try cli.succeed(line + "weekly")
      #expect(try count() == 1, "\(text)")
    }
  }

  @Test func runsWithOtherRulesHaveTheirOwnStamp() throws {
    _ = try cli.succeed(line + "weekly --quiet")
    for options in [
      "--keep-daily 1", "--host \(Host.name)", "--tag ''", "--group-by device", "--allow-last",
      "--prune",
    ] {
      let words = (line + "weekly --json " + options).split(separator: " ").map(String.init)
        .map { $0 == "''" ? "" : $0 }
      #expect(try cli.run(words).output.contains("summary"), "\(options)")
      #expect(try cli.run(words).output.isEmpty, "\(options)")
    }
    #expect(try stamps().count == 7)
  }

  /// A run that failed, or that only showed the plan, does not defer the next one.
  @Test func onlyASuccessIsRecorded() throws {
    _ = try cli.succeed(line + "weekly --dry-run")
    #expect(try stamps().isEmpty)
    let file = "\(Self.other).json\(TestEncryption.suffix)"
    try cli.directory.write("damaged", at: ByteString("repo/snapshots/" + file))
    #expect(try cli.run(line + "weekly --prune").code == 13)
    #expect(try stamps().isEmpty)
    _ = try cli.succeed("forget \(Self.other) --force --at-most weekly --repo repo")
    #expect(try stamps().isEmpty, "the option does not apply to named snapshots")
    _ = try cli.succeed(line + "weekly --prune")
    #expect(try stamps().count == 1)
    let misuse = try cli.run("forget --at-most weekly --repo repo")
    #expect(misuse.code == 2 && misuse.errors.contains("no rule says which snapshots to keep"))
    #expect(try cli.run(line + "yearly").code == 2)
    #expect(try cli.run("forget --keep-last 1 --at-most weekly --repo none").code == 10)
  }

  private static let other = String(repeating: "0123", count: 16)

  /// The metrics of the last run stay if a run has nothing to do.
  @Test func metricsAreThoseOfTheLastRun() throws {
    _ = try cli.succeed(line + "weekly --metrics run.prom")
    let before = try cli.directory.read("run.prom")
    _ = try cli.succeed(line + "weekly --metrics run.prom")
    #expect(try cli.directory.read("run.prom") == before)
  }
}
