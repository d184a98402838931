import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands with objects of a repository that the user, or the credentials, may not read: an error
/// that names the object, the owner and the remedy, and no damage.
struct UnreadableObjectTests {
  /// A repository of nobody with two snapshots.
  private static func make() throws -> CommandLine {
    let cli = try CommandLine()
    _ = try Program.run("chmod", ["0777", cli.directory.string])
    _ = try Program.run("chown", ["65534:65534", "home"], in: cli.directory.url)
    var random = Seeded(11)
    for name in ["a", "b"] {
      try cli.directory.write(random.bytes(300_000), at: ByteString("tree/\(name)"))
      _ = try Program.run("chmod", ["-R", "a+rX", "tree"], in: cli.directory.url)
      if name == "a" { try succeed(cli, "init repo --plain --no-default") }
      try succeed(cli, "backup --layout folder --root tree --repo repo --quiet")
    }
    return cli
  }

  private static func succeed(_ cli: CommandLine, _ line: String) throws {
    let outcome = try cli.runAsNobody(line)
    guard outcome.code == 0 else {
      throw Program.Failure(description: "'\(line)' ended with \(outcome.code): \(outcome.errors)")
    }
  }

  /// Gives objects to root.
  private static func take(_ cli: CommandLine, _ directory: String) throws -> [String] {
    let place = cli.directory.string + "/repo/"
    let files = try FileManager.default.subpathsOfDirectory(atPath: place + directory)
      .map { "\(directory)/\($0)" }
      .filter { FileManager.default.contents(atPath: place + $0) != nil }
    for file in files { _ = try Program.run("chown", ["0:0", place + file]) }
    return files
  }

  private static let words =
    "permission denied: it belongs to 'root' (mode 0600), and this program runs as 'nobody'"
  private static let hint =
    "change the owner to that of the repository: sudo chown -R --reference=repo repo"

  @Test(.enabled(if: Host.userID == 0), arguments: ["packs", "index", "snapshots"])
  func aCheckReportsThemAndFindsNoDamage(directory: String) throws {
    let cli = try Self.make()
    let files = try Self.take(cli, directory)
    let outcome = try cli.runAsNobody("check --read-data --repo repo")
    #expect(outcome.code == 3, "\(outcome.output)\(outcome.errors)")
    for file in files {
      #expect(outcome.output.contains("unreadable \(file): \(Self.words)\n"), "\(outcome.output)")
    }
    #expect(outcome.output.hasSuffix("no damage found in what can be read\n"))
    #expect(!outcome.output.contains("damaged") && !outcome.output.contains("lost"))
    #expect(outcome.errors.contains("hint: \(Self.hint)\n"), "\(outcome.errors)")
    let json = try cli.runAsNobody("check --read-data --json --repo repo")
    let lines = try json.output.split(separator: "\n").map { try CommandLine.object($0) }
    #expect(json.code == 3 && lines.count == files.count + 1)
    #expect(lines.dropLast().allSatisfy { $0["hint"] as? String == Self.hint })
    let summary = try #require(lines.last?["summary"] as? [String: Any])
    #expect(summary["unreadable"] as? Int == files.count && summary["damaged"] as? Int == 0)
  }

  /// Nothing is reported as lost because an index object cannot be read.
  @Test(.enabled(if: Host.userID == 0)) func growthCountsNothingAsLost() throws {
    let cli = try Self.make()
    _ = try Self.take(cli, "index")
    _ = try Program.run("rm", ["-rf", "home/.cache"], in: cli.directory.url)
    let outcome = try cli.runAsNobody("stats --growth --repo repo")
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(outcome.errors.contains("are in no index object that can be read"))
    #expect(!outcome.errors.contains("no pack has"), "\(outcome.errors)")
  }

  /// The figures lack the objects that only an unreadable index object names.
  @Test(.enabled(if: Host.userID == 0)) func statisticsWithoutTheIndexAreUncertain() throws {
    let cli = try Self.make()
    let indexes = try Self.take(cli, "index")
    let known = try cli.runAsNobody("stats --repo repo")
    #expect(known.code == 0 && known.errors.isEmpty, "this host has copies: \(known.errors)")
    _ = try Program.run("rm", ["-rf", "home/.cache"], in: cli.directory.url)
    let outcome = try cli.runAsNobody("stats --repo repo")
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(outcome.errors.contains("warning: the figures are uncertain: blobs that only "))
    #expect(outcome.errors.contains(Self.words) && outcome.errors.contains(Self.hint))
    let json = try cli.runAsNobody("stats --json --repo repo")
    let object = try CommandLine.object(json.output)
    #expect(json.code == 3 && object["uncounted_indexes"] as? Int == indexes.count)
    let growth = try cli.runAsNobody("stats --growth --json --repo repo").output
    let last = try CommandLine.object(try #require(growth.split(separator: "\n").last))
    let summary = try #require(last["summary"] as? [String: Any])
    #expect(summary["uncounted_indexes"] as? Int == indexes.count)
    // For the others the result is complete, because the packs have their own tables.
    for line in [
      "ls latest:folders/tree", "find a", "versions folders/tree/a", "diff latest~1 latest",
      "stats latest",
    ] {
      let read = try cli.runAsNobody(line + " --repo repo")
      #expect(read.code == 0 && read.errors.contains(Self.words), "\(line): \(read.errors)")
      #expect(!read.output.isEmpty, "\(line)")
    }
  }

  @Test(.enabled(if: Host.userID == 0)) func commandsNameTheOwnerAndTheRemedy() throws {
    let cli = try Self.make()
    _ = try Self.take(cli, "packs")
    for line in [
      "restore latest --to again --repo repo", "dump latest:folders/tree/a --repo repo",
      "ls latest:folders/tree --repo repo", "mirror --to other --repo repo",
      "mirror --dry-run --to another --repo repo",
    ] {
      let outcome = try cli.runAsNobody(line)
      #expect(outcome.code == 1, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains(Self.words), "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("hint: \(Self.hint)"), "\(line): \(outcome.errors)")
    }
  }

  /// Without the trees, it is unknown which data is lost with a pack.
  @Test(.enabled(if: Host.userID == 0)) func aCheckClaimsNothingOfWhatItCannotRead() throws {
    let cli = try Self.make()
    let packs = try cli.packs("repo").map { (path: $0, size: try Self.size($0)) }
    let data = try #require(packs.first { $0.size > 200_000 })
    for pack in packs where pack.size < 200_000 {
      _ = try Program.run("chown", ["0:0", pack.path])
    }
    _ = try Program.run("rm", [data.path])
    let outcome = try cli.runAsNobody("check --repo repo")
    #expect(outcome.code == 13 && outcome.output.contains("uncertain everything"), "\(outcome)")
    #expect(outcome.output.contains("may be lost: unknown until these objects can be read\n"))
    #expect(
      outcome.output.hasSuffix("1 object damaged; nothing else is known to be lost\n"),
      "\(outcome.output)")
    let json = try cli.runAsNobody("check --json --repo repo")
    let lines = try json.output.split(separator: "\n").map { try CommandLine.object($0) }
    let uncertain = lines.filter { $0["finding"] as? String == "uncertain" }
    let summary = try #require(lines.last?["summary"] as? [String: Any])
    #expect(!uncertain.isEmpty && summary["uncertain"] as? Int == uncertain.count)
    #expect(uncertain.allSatisfy { ($0["snapshots"] as? [String])?.isEmpty == false })
  }

  private static func size(_ path: String) throws -> Int {
    try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
  }

  /// Two hosts that backed up at the same time stored the same content.
  @Test(.enabled(if: Host.userID == 0)) func aRestoreReadsAnotherCopy() throws {
    let cli = try CommandLine()
    let copy = { (line: String) in
      _ = try Program.run("sh", ["-c", line], in: cli.directory.url)
    }
    var random = Seeded(12)
    try copy("chmod 0777 . && chown 65534:65534 home")
    try cli.directory.write(random.bytes(300_000), at: "tree/a")
    try copy("chmod -R a+rX tree")
    try Self.succeed(cli, "init repo --plain --no-default")
    try copy("cp -a repo second")
    try Self.succeed(cli, "backup --layout folder --root tree --repo repo --quiet")
    try copy("rm -rf home/.cache home/.local")
    try Self.succeed(cli, "backup --layout folder --root tree --repo second --quiet")
    for directory in ["packs", "index", "snapshots"] {
      try copy("cp -a second/\(directory)/. repo/\(directory)/")
    }
    let packs = try cli.packs("repo").filter { try Self.size($0) > 200_000 }
    try #require(packs.count == 2)
    for (number, pack) in packs.enumerated() {
      try copy("rm -rf home/.cache && chown -R 65534:65534 repo && chown 0:0 '\(pack)'")
      try Self.succeed(cli, "restore latest --to back\(number) --repo repo")
    }
    try copy("chown 0:0 \(packs.joined(separator: " "))")
    let outcome = try cli.runAsNobody("restore latest --to none --repo repo")
    #expect(outcome.code == 1 && outcome.errors.contains(Self.words), "\(outcome.errors)")
  }

  /// The newest snapshot is skipped, with the remedy, and the status reports that something is
  /// missing.
  @Test(.enabled(if: Host.userID == 0)) func listingsSkipSnapshotsThatCannotBeRead() throws {
    let cli = try Self.make()
    _ = try Self.take(cli, "snapshots")
    _ = try Program.run("rm", ["-rf", "home/.cache"], in: cli.directory.url)
    let outcome = try cli.runAsNobody("snapshots --repo repo")
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(outcome.errors.contains(Self.words) && outcome.errors.contains(Self.hint))
    let listing = try cli.runAsNobody("ls latest --repo repo")
    #expect(listing.code == 1, "\(listing.errors)")
    #expect(listing.errors.contains("hint: \(Self.hint)\n"))
    let prune = try cli.runAsNobody("prune --repo repo")
    #expect(prune.code == 1 && prune.errors.contains(Self.words), "\(prune.errors)")
  }

  /// One object of another account, or in an archive: the reason of the store is reported.
  @Test func aStoreThatDeniesAnObjectIsQuoted() throws {
    let fixture = try S3CommandFixture()
    _ = try fixture.succeed("init s3://bucket/place --plain --no-default")
    _ = try fixture.backUp()
    for (code, words) in [
      ("AccessDenied", "the store denies access: \"not yours\""),
      ("InvalidObjectState", "archive, from which it cannot be read: \"not yours\""),
      ("AccountFrozen", "answered with AccountFrozen (status 403): \"not yours\""),
    ] {
      let body = "<Error><Code>\(code)</Code><Message>not yours</Message></Error>"
      try fixture.store.setRules(
        #"[{"method": "GET", "path": "/packs/", "status": 403, "times": 0, "body": "\#(body)"}]"#)
      let outcome = try fixture.run("check --read-data --repo s3://bucket/place")
      #expect(outcome.code == 3, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.output.contains("unreadable packs/"), "\(outcome.output)")
      #expect(outcome.output.contains(words), "\(outcome.output)")
      #expect(!outcome.output.contains("damaged") && !outcome.output.contains("lost"))
      let restore = try fixture.run("restore latest --to back --repo s3://bucket/place")
      #expect(restore.code == 1 && restore.errors.contains(words), "\(restore.errors)")
    }
    try fixture.store.setRules("[]")
    _ = try fixture.succeed("check --read-data --repo s3://bucket/place")
  }

  @Test(.enabled(if: Host.userID == 0), SFTPServer.isInstalled)
  func anSFTPServerThatDeniesAnObjectIsNoDamage() throws {
    let cli = try CommandLine()
    let server = try SFTPServer(for: cli)
    try cli.directory.write("content", at: "tree/file")
    _ = try cli.succeed("init \(server.location()) \(server.option) --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root tree \(server.repository())")
    _ = try Program.run("chmod", ["a+rwx", cli.directory.string])
    _ = try Program.run("chown", ["-R", "65534:65534", "store", "home"], in: cli.directory.url)
    let packs = try cli.packs("store")
    for pack in packs { _ = try Program.run("chown", ["0:0", pack]) }
    let outcome = try cli.runAsNobody("check --read-data \(server.repository())")
    #expect(outcome.code == 3, "\(outcome.output)\(outcome.errors)")
    #expect(outcome.output.contains("the server denies permission: it belongs to user 0 there"))
    #expect(!outcome.output.contains("damaged"), "\(outcome.output)")
    let place = "\(cli.directory.string)/store"
    #expect(outcome.errors.contains("sudo chown -R --reference=\(place) \(place)"))
  }
}
