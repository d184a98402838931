import SystemIO
import TestSupport
import Testing

/// A corpus of apps that others made: 660 MB with all that backups lose.
@Suite(.serialized, .enabled(if: Shared.has("bench/make_corpus.py")))
struct CorpusTests {
  @Test func aDeviceComesBackLessWhatIsNeverBackedUp() throws {
    let cli = try CommandLine()
    try Self.makeCorpus(cli, at: "device", seed: Seeded.fresh().seed)
    _ = try cli.succeed("init repo --plain")
    let report = try cli.json("backup --root device --repo repo --json")
    #expect((report["unreadable"] as? [Any])?.isEmpty == true)
    #expect((report["plan"] as? [String: Any])?["policy"] as? String == "ios")
    for pack in try cli.packs() { try Archive.check(pack) }
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: "device", back: "back")
  }

  @Test func aFolderComesBackWhole() throws {
    let cli = try CommandLine()
    try Self.makeCorpus(cli, at: "corpus", seed: Seeded.fresh().seed)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root corpus --repo repo")
    for pack in try cli.packs() { try Archive.check(pack) }
    _ = try cli.succeed("restore latest:folders/corpus --to back --repo repo")
    try TreeComparison.expectSame(cli.folder, "corpus", "back")
    try cli.folder.folder.removeTree("back")
    try Recover.succeed(cli, "repo verify --read-data")
    try Recover.succeed(cli, "repo restore latest:folders/corpus --to back")
    try TreeComparison.expectSame(cli.folder, "corpus", "back")
    let again = try cli.json("backup --layout folder --root corpus --repo repo --json")
    #expect(again["stored_bytes"] as? Int == 0)
  }

  private static func makeCorpus(_ cli: CommandLine, at name: String, seed: UInt64) throws {
    let script = Shared.path("bench/make_corpus.py")
    let outcome = try Program.run(
      "python3",
      ["-B", script, name, "--profile", "apps", "--seed", "\(seed)", "--scale", "0.2"],
      in: cli.folder.url)
    #expect(outcome.code == 0, "make_corpus.py: \(outcome.errors)")
  }
}
