import Foundation
import SystemIO
import TestSupport
import Testing

/// Error messages and exit statuses of commands that fail.
struct ErrorTests {
  @Test func missingDeviceIsAnError() throws {
    let cli = try CommandLine()
    try cli.directory.write("text", at: "file")
    _ = try Directory.make(path: cli.directory.path("empty"))
    var transcript = Transcript(cli)
    try transcript.run("apps", exits: 1)
    try transcript.run("apps --root nowhere", exits: 1)
    try transcript.run("apps --root empty", exits: 1)
    try transcript.run("apps --root file", exits: 1)
    try transcript.run("apps --root empty --layout coresimulator", exits: 1)
    try transcript.run("classify --root nowhere", exits: 1)
    try transcript.run("explain --root nowhere apps/org.example.notebook", exits: 1)
    try transcript.run("backup --root nowhere --repo repo", exits: 1)
    try transcript.run("backup --layout folder --root nowhere --repo repo", exits: 1)
    try transcript.expectSnapshot("errors-no-device")
  }

  @Test func inaccessibleDeviceIsAnError() throws {
    let cli = try CommandLine()
    try cli.directory.write("x", at: "device/data/Containers/Data/x")
    _ = try cli.succeed("init repo --plain")
    _ = try Program.run("chmod", ["-R", "000", cli.directory.string + "/device"])
    defer { cli.open() }
    _ = try Program.run("chmod", ["-R", "a+rX", cli.directory.string + "/repo"])
    var transcript = Transcript(cli)
    try transcript.run("apps --root device", exits: 1, asNobody: true)
    try transcript.run("classify --root device", exits: 1, asNobody: true)
    try transcript.run(
      "backup --layout folder --root device --repo repo", exits: 1, asNobody: true)
    _ = try Directory.make(path: cli.directory.path("closed"), permissions: 0o555)
    try transcript.run("init closed/repo --plain", exits: 1, asNobody: true)
    try transcript.run("sample closed/device", exits: 1, asNobody: true)
    try transcript.expectSnapshot("errors-not-permitted")
  }

  @Test func missingRepositoryIsAnError() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try Directory.make(path: cli.directory.path("empty"))
    var transcript = Transcript(cli)
    try transcript.run("backup --root device --repo nowhere", exits: 10)
    try transcript.run("backup --root device --repo empty", exits: 10)
    try transcript.run("backup --root device --repo device", exits: 10)
    try transcript.run("snapshots --repo nowhere", exits: 10)
    try transcript.run("ls latest --repo nowhere", exits: 10)
    try transcript.run("restore latest --to back --repo nowhere", exits: 10)
    try transcript.expectSnapshot("errors-no-repository")
    #expect(try !cli.isThere("nowhere"))
    #expect(try !cli.isThere("back"))
  }

  @Test func wrongArgumentsAreUsageErrors() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    var transcript = Transcript(cli)
    try transcript.run("frobnicate", exits: 2)
    try transcript.run("bakcup --root device", exits: 2)
    try transcript.run("help snapshot", exits: 2)
    try transcript.run("policy frobnicate", exits: 2)
    try transcript.run("policy Lint site.yaml", exits: 2)
    try transcript.run("backup --rooot device", exits: 2)
    try transcript.run("backup device", exits: 2)
    try transcript.run("apps --root", exits: 2)
    try transcript.run("apps --root device --layout palm", exits: 2)
    try transcript.run("init other", exits: 2)
    try transcript.run("init", exits: 2)
    try transcript.run("restore latest --repo repo", exits: 2)
    try transcript.run("restore --to back --repo repo", exits: 2)
    try transcript.run("ls :apps --repo repo", exits: 2)
    try transcript.run("ls yesterday --repo repo", exits: 2)
    try transcript.run("ls latest~x --repo repo", exits: 2)
    try transcript.run("ls 2026-02-30 --repo repo", exits: 2)
    try transcript.run("restore latest --to device --overwrite all --repo repo", exits: 2)
    try transcript.run("restore latest --to device --delete --repo repo", exits: 2)
    try transcript.run("classify --root device --for mars", exits: 2)
    try transcript.run("classify --root device --stdin0 apps", exits: 2)
    try transcript.run("classify --root device --os-version new", exits: 2)
    try transcript.run("classify --root device --policy nosuch", exits: 2)
    try transcript.run("backup --root device --repo repo --exclude a//b", exits: 2)
    try transcript.run("policy show nosuch", exits: 2)
    try transcript.run("sample other --day 99", exits: 2)
    try transcript.expectSnapshot("errors-usage")
    #expect(try cli.snapshots().isEmpty)
    #expect(try !cli.isThere("other"))
  }

  @Test func unknownNamesAreErrors() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    var transcript = Transcript(cli)
    try transcript.run("ls latest --repo repo", exits: 1)
    try transcript.run("snapshots --repo repo", exits: 0)
    _ = try cli.succeed("backup --root device --repo repo")
    try cli.directory.write("text", at: "text")
    try transcript.run("ls latest~1 --repo repo", exits: 1)
    try transcript.run("ls ffffffff --repo repo", exits: 1)
    try transcript.run("ls latest:apps/org.example.nobody --repo repo", exits: 1)
    try transcript.run("ls latest:nobody/Documents --repo repo", exits: 1)
    try transcript.run("ls latest:/etc/passwd --repo repo", exits: 1)
    try transcript.run("restore latest:apps/no/such --to back --repo repo", exits: 1)
    try transcript.run("explain --root device apps/org.example.nobody/data/x", exits: 1)
    try transcript.run("explain --root device /etc/passwd", exits: 1)
    try transcript.run("classify --root device nobody/Documents", exits: 1)
    try transcript.run("classify --root device notebook/Documents/none", exits: 1)
    try transcript.run("policy lint nosuch", exits: 1)
    try transcript.run("scenario run nosuch", exits: 1)
    try transcript.run("interapp share url:apple --root device", exits: 2)
    try transcript.run("import tar text --repo repo", exits: 1)
    try transcript.expectSnapshot("errors-not-found")
    #expect(try !cli.isThere("back"))
  }

  @Test func existingTargetIsAnError() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --repo repo")
    try cli.directory.write("mine", at: "full/mine")
    try cli.directory.write("text", at: "file")
    var transcript = Transcript(cli)
    try transcript.run("restore latest --to full --repo repo", exits: 2)
    try transcript.run("restore latest --to file --repo repo", exits: 2)
    try transcript.run("restore latest --to file/below --repo repo", exits: 1)
    try transcript.run("init full --plain", exits: 1)
    try transcript.run("init repo --plain", exits: 1)
    try transcript.run("init file --plain", exits: 1)
    try transcript.run("sample full", exits: 1)
    try transcript.run("sample full --day 1", exits: 1)
    try transcript.expectSnapshot("errors-existing-entries")
    #expect(try cli.directory.read("full/mine") == Array("mine".utf8))
    #expect(try cli.names(in: "full") == ["mine"])
    #expect(try cli.directory.read("file") == Array("text".utf8))
    #expect(try cli.snapshots().count == 1)
  }

  /// With `--json` a failure is one JSON object on standard error, and nothing else is printed.
  @Test(arguments: [
    ("apps --json --root nowhere", Int32(1)), ("classify --json --root nowhere", 1),
    ("snapshots --json --repo nowhere", 10), ("init other --json", 2),
    ("ls latest --json --repo repo", 1), ("restore latest --to back --json --repo repo", 1),
    ("backup --json --root nowhere --repo repo", 1), ("backup --json --frobnicate", 2),
    ("policy lint --json nowhere.yaml", 1),
  ])
  func failureIsJSONWithTheJSONOption(_ line: String, _ code: Int32) throws {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain")
    let outcome = try cli.run(line)
    #expect(outcome.code == code)
    #expect(outcome.output.isEmpty)
    let failure = try CommandLine.object(outcome.errors)
    #expect(failure["exit_status"] as? Int == Int(code))
    #expect((failure["error"] as? String)?.isEmpty == false)
    #expect(failure["hint"] == nil || failure["hint"] is String)
    #expect((failure["code"] as? String)?.isEmpty == false)
  }

  /// A failed write of the output is an error.
  @Test func failedOutputIsAnError() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let outcome = try Program.run(
      "/bin/sh", ["-c", "\(CommandLine.program) classify --root device > /dev/full"],
      environment: cli.environment, cleanEnvironment: true, in: cli.directory.url)
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("no space"), "\(outcome.errors)")
  }

  /// Without /proc, as in a chroot, Swift's runtime does not know the arguments.
  @Test(.enabled(if: Strace.isPermitted)) func argumentsAreKnownWithoutProc() throws {
    let cli = try CommandLine()
    let wrapper = [
      "strace", "-f", "-qq", "-o", cli.directory.string + "/trace", "-P", "/proc/self/maps", "-e",
      "inject=openat:error=EACCES",
    ]
    let outcome = try cli.run("apps --root none", under: wrapper)
    #expect(outcome.code == 1 && outcome.errors.contains("none"), "\(outcome.errors)")
    #expect(try cli.succeed("--version") == cli.run("--version", under: wrapper).output)
  }
}

extension CommandLine {
  /// Restores the permission to remove entries that a test made inaccessible.
  func open() { _ = try? Program.run("chmod", ["-R", "u+rwX", directory.string]) }

  /// Whether an entry exists at a path in the directory.
  func isThere(_ path: ByteString) throws -> Bool {
    try Directory.open(path: directory.path).statusIfPresent(path) != nil
  }

  /// Returns the sorted names in a subdirectory.
  func names(in path: ByteString) throws -> [ByteString] {
    try Directory.open(path: directory.path(path)).names()
  }
}
