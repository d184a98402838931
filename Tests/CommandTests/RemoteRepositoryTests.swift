import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands on a repository behind SFTP. The server is OpenSSH's, without ssh in between: it is
/// started by a command that ignores its arguments, as `--ssh-command` allows.
struct RemoteRepositoryTests {
  private let cli: CommandLine
  private let server: SFTPServer
  /// The directory of the server's files.
  private let place: String
  /// The options of the repository `store`.
  private let repo: String

  init() throws {
    cli = try CommandLine()
    place = cli.directory.string
    server = try SFTPServer(for: cli)
    repo = server.repository()
    for number in 0..<30 {
      try cli.directory.write("file \(number)", at: ByteString("data/d\(number % 3)/\(number)"))
    }
  }

  private func text(_ path: ByteString) throws -> String {
    String(decoding: try cli.directory.read(path), as: UTF8.self)
  }

  private func backUp(_ options: String = "") throws -> String {
    try cli.succeed("backup --root data --layout folder \(repo) \(options)")
  }

  @Test(SFTPServer.isInstalled) func everyCommandWorksOnAnotherHost() throws {
    let made = try cli.succeed("init \(server.location()) --plain \(server.option)")
    #expect(made.contains("in \(server.location())"))
    _ = try backUp()
    try cli.directory.write("changed", at: "data/d0/0")
    _ = try backUp()
    #expect(try cli.jsonLines("snapshots --json \(repo)").count == 2)
    #expect(try cli.succeed("ls latest:folders/data/d0 \(repo)").contains("27"))
    #expect(try cli.succeed("find 29 \(repo)").contains("d2/29"))
    #expect(try cli.succeed("dump latest:folders/data/d0/0 \(repo)") == "changed")
    #expect(try cli.json("stats --json \(repo)")["snapshots"] as? Int == 2)
    _ = try cli.succeed("diff latest~1 latest \(repo)")
    _ = try cli.succeed("restore latest:folders/data --to back \(repo)")
    #expect(try text("back/d0/0") == "changed")
    #expect(try text("back/d1/28") == "file 28")
    _ = try cli.succeed("check --read-data \(repo)")
    _ = try cli.succeed("forget --keep-last 1 --prune \(repo)")
    #expect(try cli.jsonLines("snapshots --json \(repo)").count == 1)
    _ = try cli.succeed("prune \(repo)")
    _ = try cli.succeed("check --read-data \(repo)")
    #expect(try cli.succeed("cache list \(repo)").contains("sftp:host"))
    // The same files, used as a directory of this host.
    _ = try cli.succeed("check --read-data --repo store")
    // Nothing was created with the name of a location.
    #expect(!FileManager.default.fileExists(atPath: place + "/sftp:host"))
  }

  @Test(SFTPServer.isInstalled, .enabled(if: MountedView.isPossible))
  func aRepositoryOfAnotherHostIsMounted() throws {
    _ = try cli.succeed("init \(server.location()) --plain \(server.option)")
    var random = Seeded(31)
    try cli.directory.write(random.bytes(3_000_000), at: "data/large")
    _ = try backUp()
    let view = try MountedView(cli, server.option, repo: server.location())
    try ChangeDetector.expectSame(cli.directory, "data", "view/latest/folders/data")
    let copied = try Program.run(
      "cp", ["-a", view("latest/folders/data"), place + "/copy"], in: cli.directory.url)
    #expect(copied.code == 0, "\(copied.errors)")
    try ChangeDetector.expectSame(cli.directory, "data", "copy")
    #expect(view.end(by: SIGTERM) == 0 && !view.isMounted, "\(view.errors)")
  }

  @Test(SFTPServer.isInstalled) func theConfigurationNamesTheRepositoryOfAnotherHost() throws {
    _ = try cli.succeed("init \(server.location()) --plain \(server.option)")
    let file = try text("home/.config/sandboxctl/config.yaml")
    #expect(file.contains(server.location()))
    #expect(file.contains("ssh-command: \(place)/ssh"))
    try cli.directory.write(
      "connections: 2\nlimit-download: 100M\n" + file,
      at: "home/.config/sandboxctl/config.yaml")
    _ = try cli.succeed("backup --root data --layout folder")
    #expect(try cli.jsonLines("snapshots --json").count == 1)
  }

  /// Options of other places may come from the configuration. Limits apply to the command that has
  /// them.
  @Test(SFTPServer.isInstalled) func suggestedCommandsHaveTheOptionsOfTheirPlace() throws {
    _ = try cli.succeed("init \(server.location()) --plain --no-default \(server.option)")
    let limits = "--connections 2 --limit-upload 100M --limit-download 100M"
    let remote = try cli.run(
      "backup --root data --layout folder \(repo) --s3-region eu \(limits)")
    let suggested = remote.output + remote.errors
    #expect(remote.code == 0 && suggested.contains("next: "), "\(suggested)")
    #expect(suggested.contains("\(server.option)") && !suggested.contains("--s3-region"))
    #expect(!suggested.contains("--limit") && !suggested.contains("--connections"))
    _ = try cli.succeed("init local --plain --no-default")
    let local = try cli.run(
      "backup --root data --layout folder --repo local \(limits) \(server.option)")
    let words = local.output + local.errors
    #expect(words.contains(/sandboxctl ls latest --repo local\n/), "\(words)")
  }

  /// The two sides of a copy may need two commands.
  @Test(SFTPServer.isInstalled) func theOtherServerHasItsOwnCommand() throws {
    try cli.writeProgram("echo used >> \(place)/used; exec \(place)/ssh", at: "second")
    func uses() -> Int { (try? text("used").split(separator: "\n").count) ?? 0 }
    let (other, to) = (server.location("other"), "--to-ssh-command \(place)/second")
    for location in [server.location(), other] {
      _ = try cli.succeed("init \(location) --plain --no-default \(server.option)")
    }
    _ = try backUp()
    _ = try cli.succeed("copy --to \(other) \(repo)")
    #expect(uses() == 0)
    _ = try cli.succeed("copy --to \(other) \(repo) \(to) --check")
    let ofCopy = uses()
    #expect(ofCopy > 0)
    // It is enough for a source of this host.
    _ = try cli.succeed("mirror --to \(server.location("mirror")) --repo store \(to)")
    #expect(uses() > ofCopy)
    for copy in ["other", "mirror"] { _ = try cli.succeed("check --read-data --repo \(copy)") }
    // The repository itself, and a place in it.
    for (path, name) in [("store", "the repository itself"), ("store/packs/x", "within the")] {
      for source in [repo, "--repo store"] {
        let itself = try cli.run("mirror --to \(server.location(path)) \(source) \(to)")
        #expect(itself.code == 1 && itself.errors.contains("it is \(name)"), "\(itself)")
        let dry = try cli.run("mirror --dry-run --to \(server.location(path)) \(source) \(to)")
        #expect(dry.code == 3 && dry.errors.contains("may be \(name)"), "\(dry)")
      }
    }
    let invalid = try cli.run("copy --to \(other) \(repo) --to-ssh-command ''")
    #expect(invalid.code == 2)
  }

  @Test(SFTPServer.isInstalled) func copiesAndMirrorsGoBetweenHosts() throws {
    _ = try cli.succeed("init local --plain --no-default")
    _ = try cli.succeed("backup --root data --layout folder --repo local")
    let (at, ssh) = ("sftp:host\(place)", server.option)
    _ = try cli.succeed("init \(at)/other --plain --no-default \(ssh)")
    _ = try cli.succeed("copy --to \(at)/other --repo local \(ssh)")
    _ = try cli.succeed("mirror --to \(at)/mirror --repo local \(ssh)")
    _ = try cli.succeed("check --read-data --repo \(at)/other \(ssh)")
    _ = try cli.succeed("check --read-data --repo \(at)/mirror \(ssh)")
    _ = try cli.succeed("copy --to local --repo \(at)/other \(ssh)")
    // The source itself is refused as a target only if both are directories of this host.
    #expect(try cli.run("mirror --to local --repo local").code == 1)
  }

  @Test(SFTPServer.isInstalled) func anEncryptedRepositoryIsKnownByItsLocation() throws {
    try cli.directory.write("a long passphrase", at: "pass")
    let (at, ssh) = (server.location("secret"), server.option)
    let key = "--passphrase-file pass"
    let home = place + "/home/key"
    _ = try cli.succeed("init \(at) \(key) --recovery-key \(home) --no-default \(ssh)")
    _ = try cli.succeed("backup --root data --layout folder --repo \(at) \(key) \(ssh)")
    _ = try cli.succeed("key list --repo \(at) \(key) \(ssh)")
    // A repository without encryption in its place is refused.
    try FileManager.default.moveItem(atPath: place + "/secret", toPath: place + "/aside")
    _ = try cli.succeed("init secret --plain --no-default")
    let refused = try cli.run("backup --root data --layout folder --repo \(at) \(ssh)")
    #expect(refused.code == 12)
    #expect(refused.errors.contains("this host knows it as encrypted"))
  }

  @Test(SFTPServer.isInstalled) func progressCountsWhatIsTransferred() throws {
    _ = try cli.succeed("init \(server.location()) --plain \(server.option)")
    let outcome = try cli.run("backup --root data --layout folder --verbose \(repo)")
    #expect(outcome.errors.contains(/sandboxctl: \d+ requests, .* sent, .* received/))
  }

  @Test(arguments: [
    ("s3:/bucket", "s3://bucket"), ("sftp:/x", "sftp:alias/path"),
    ("ssh://h/x", "sftp://user@host"), ("sftp:h:/x", "write 'sftp:h/x'"),
  ])
  func aTypoInALocationIsWrongUsage(text: String, hint: String) throws {
    for line in [
      "snapshots --repo \(text)", "init \(text) --plain",
      "backup --root data --layout folder --repo \(text)",
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 2, "\(line)")
      #expect(outcome.errors.contains("cannot use the repository '\(text)'"), "\(line)")
      #expect(outcome.errors.contains(hint), "\(line)")
    }
    try cli.directory.write("repo: \(text)\n", at: "home/.config/sandboxctl/config.yaml")
    let outcome = try cli.run("snapshots")
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("config.yaml:1:7"))
    #expect(outcome.errors.contains(hint))
  }

  @Test func aPasswordInALocationIsNotPrinted() throws {
    let outcome = try cli.run("snapshots --repo sftp://user:secret@host/x")
    #expect(outcome.code == 2)
    #expect(!outcome.errors.contains("secret"))
  }

  @Test(arguments: [
    "--connections 0", "--connections 65", "--limit-upload 0", "--limit-download 0",
    "--limit-upload x", "--ssh-command ''",
  ])
  func anInvalidConnectionIsWrongUsage(options: String) throws {
    #expect(try cli.run("snapshots --repo store \(options)").code == 2)
  }
}
