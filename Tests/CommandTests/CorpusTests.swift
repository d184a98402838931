import SystemIO
import TestSupport
import Testing

/// Corpora of the benchmarks with everything that backups tend to lose: one of apps with 66 MB (660
/// MB in complete runs), and small ones of many files, of databases and of media. The benchmarks'
/// `verify_tree.py` compares the results.
@Suite(.serialized, .enabled(if: Shared.has("bench/make_corpus.py")))
struct CorpusTests {
  /// A directory with the corpus of apps, created once.
  private static let apps = Result {
    let directory = try TemporaryDirectory.shared("corpus")
    try makeCorpus(
      in: directory, at: "apps", profile: "apps", scale: Sampling.isWhole ? 0.2 : 0.02,
      seed: Seeded.fresh("the corpus of apps").seed)
    return directory
  }

  @Test func deviceIsRestoredExceptExcludedData() throws {
    let cli = try CommandLine()
    try cli.directory.copy("apps", of: Self.apps.get(), to: "device")
    _ = try cli.succeed("init repo --plain")
    let report = try cli.json("backup --root device --repo repo --json")
    #expect((report["unreadable"] as? [Any])?.isEmpty == true)
    #expect((report["plan"] as? [String: Any])?["policy"] as? String == "ios")
    for pack in try cli.packs() { try Archive.check(pack) }
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: "device", back: "back")
  }

  @Test func directoryIsRestoredCompletely() throws {
    let cli = try CommandLine()
    try cli.directory.copy("apps", of: Self.apps.get(), to: "corpus")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root corpus --repo repo")
    for pack in try cli.packs() { try Archive.check(pack) }
    _ = try cli.succeed("restore latest:folders/corpus --to back --repo repo")
    try ChangeDetector.expectSame(cli.directory, "corpus", "back")
    try cli.directory.directory.removeTree("back")
    try Recover.succeed(cli, "repo verify --read-data")
    try Recover.succeed(cli, "repo restore latest:folders/corpus --to back")
    try ChangeDetector.expectSame(cli.directory, "corpus", "back")
    let again = try cli.json("backup --layout folder --root corpus --repo repo --json")
    #expect(again["stored_bytes"] as? Int == 0)
    try cli.directory.directory.removeTree("back")
    try Self.expectNextDay(cli, "apps", seed: 5)
  }

  @Test(arguments: [("many", 0.01), ("bigdb", 0.01), ("media", 0.005)])
  func smallCorpusIsRestoredEachDay(_ profile: String, _ scale: Double) throws {
    let cli = try CommandLine(inMemory: true)
    let seed = Seeded.fresh().seed
    try Self.makeCorpus(
      in: cli.directory, at: "corpus", profile: profile, scale: scale, seed: seed)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root corpus --repo repo")
    _ = try cli.succeed("restore latest:folders/corpus --to back --repo repo")
    try ChangeDetector.expectSame(cli.directory, "corpus", "back")
    try cli.directory.directory.removeTree("back")
    for day in 1...2 { try Self.expectNextDay(cli, profile, seed: seed &+ UInt64(day)) }
    _ = try cli.succeed("check --read-data --repo repo")
  }

  /// Changes the corpus like a day of use and backs it up, then restores it into a new directory
  /// and over the state of the previous day.
  private static func expectNextDay(_ cli: CommandLine, _ profile: String, seed: UInt64) throws {
    _ = try cli.succeed("restore latest:folders/corpus --to into --repo repo")
    try mutateCorpus(cli, profile, seed: seed % 1_000_000)
    let report = try cli.json("backup --layout folder --root corpus --repo repo --json")
    #expect((report["stored_bytes"] as? Int ?? 0) > 0)
    let merge = "--to into --repo repo --overwrite if-changed --delete --quiet"
    for line in ["--to back --repo repo", merge] {
      _ = try cli.succeed("restore latest:folders/corpus " + line)
    }
    for name: ByteString in ["back", "into"] {
      try ChangeDetector.expectSame(cli.directory, "corpus", name)
      try cli.directory.directory.removeTree(name)
    }
  }

  /// Changes the corpus. The script renames files at random and ends if a new name is longer than
  /// 255 bytes; in that case, it continues with another seed.
  private static func mutateCorpus(_ cli: CommandLine, _ profile: String, seed: UInt64) throws {
    let script = Shared.path("bench/mutate_corpus.py")
    for attempt in 0..<10 as Range<UInt64> {
      let outcome = try Program.run(
        "python3", ["-B", script, "corpus", "--profile", profile, "--seed", "\(seed + attempt)"],
        in: cli.directory.url)
      if outcome.errors.contains("File name too long") { continue }
      #expect(outcome.code == 0, "mutate_corpus.py: \(outcome.errors)")
      return
    }
    Issue.record("mutate_corpus.py: no seed from \(seed) makes valid names")
  }

  private static func makeCorpus(
    in directory: TemporaryDirectory, at name: String, profile: String, scale: Double, seed: UInt64
  ) throws {
    let script = Shared.path("bench/make_corpus.py")
    let outcome = try Program.run(
      "python3",
      ["-B", script, name, "--profile", profile, "--seed", "\(seed)", "--scale", "\(scale)"],
      in: directory.url)
    #expect(outcome.code == 0, "make_corpus.py: \(outcome.errors)")
  }
}
