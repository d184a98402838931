import SystemIO
import TestSupport
import Testing

/// Arguments that are not UTF-8 work as names and are refused as text.
struct RawWordTests {
  private let cli: CommandLine
  private static let tree = ByteString("tree".utf8 + [0xff])
  private static let file = ByteString("file".utf8 + [0xfe])

  init() throws {
    cli = try CommandLine()
    try cli.directory.write("kept", at: Self.tree.appending(Self.file))
    try cli.directory.write("more", at: Self.tree.appending("plain"))
  }

  /// Runs a line of bash, in which `$'\xff'` is a byte.
  @discardableResult
  private func run(_ line: String, exits code: Int32 = 0) throws -> Program.Outcome {
    let script = "\(CommandLine.program) \(line)"
    let outcome = try Program.run(
      "/bin/bash", ["--norc", "-c", script], environment: cli.environment, cleanEnvironment: true,
      in: cli.directory.url)
    #expect(outcome.code == code, "\(line): \(outcome.output)\(outcome.errors)")
    for said in [outcome.standardOutput, outcome.standardError] where !line.hasPrefix("dump") {
      let text = String(validating: said, as: UTF8.self)
      #expect(text != nil, "\(line)")
      #expect(text?.unicodeScalars.contains { $0.value >= 0x10ff00 } == false, "\(line)")
    }
    return outcome
  }

  private func backUp(_ more: String = "") throws -> Program.Outcome {
    try run("backup --layout folder --root $'tree\\xff' --repo $'repo\\xff' \(more)")
  }

  private func isThere(_ name: [UInt8]) throws -> Bool { try cli.isThere(ByteString(name)) }

  @Test func repositoryTreeAndTargetMayHaveAnyName() throws {
    let made = try run("init $'repo\\xff' --plain")
    #expect(made.output.contains(#"repo\xff"#))
    let backup = try backUp()
    #expect(backup.output.contains("ls latest --repo $'repo\\xff'"), "\(backup.output)")
    try run("restore latest:folders/$'tree\\xff' --to $'out\\xff' --repo $'repo\\xff'")
    let out = ByteString("out".utf8 + [0xff])
    #expect(try cli.names(in: out) == [Self.file, "plain"])
    #expect(try cli.directory.read(out.appending(Self.file)) == Array("kept".utf8))
    try run("restore $PWD/$'tree\\xff/file\\xfe' --to=$'one\\xff' --repo=$'repo\\xff'")
    #expect(try isThere("one".utf8 + [0xff]))
    #expect(
      Set(try cli.names(in: "."))
        == [
          "home", Self.tree, out, ByteString("repo".utf8 + [0xff]), ByteString("one".utf8 + [0xff]),
        ])
  }

  @Test func storedFileMayHaveAnyName() throws {
    try run("init $'repo\\xff' --plain")
    _ = try backUp()
    let repo = "--repo $'repo\\xff'"
    let path = "folders/$'tree\\xff/file\\xfe'"
    #expect(
      try run("ls latest:folders/$'tree\\xff' \(repo)").output.contains(#"tree\xff/file\xfe"#))
    #expect(try run("dump latest:\(path) \(repo)").output == "kept")
    #expect(try run("versions \(path) \(repo)").output.split(separator: "\n").count == 2)
    #expect(try run("diff latest latest folders/$'tree\\xff' \(repo)").errors.isEmpty)
    for pattern in ["$'file\\xfe'", "$'*\\xfe'", "$'{a,file\\xfe}'", "$'folders/tree\\xff/f*'"] {
      let found = try run("find \(pattern) \(repo)").output
      #expect(found.split(separator: "\n").count == 1 && found.contains(#"file\xfe"#), "\(found)")
    }
    #expect(try run("find $'file\\xfd' \(repo)").output.isEmpty)
    let missing = try run("ls latest:folders/$'tree\\xfd' \(repo)", exits: 1)
    #expect(missing.errors.contains(#"folders/tree\xfd"#))
  }

  @Test func patternsPoliciesAndOutputFilesMayHaveAnyName() throws {
    try run("init $'repo\\xff' --plain")
    _ = try backUp("--exclude $'*\\xfe' --metrics $'m\\xff.prom'")
    #expect(try isThere("m".utf8 + [0xff] + ".prom".utf8))
    let stored = try run("ls latest --recursive --repo $'repo\\xff'").output
    #expect(stored.contains("plain") && !stored.contains("file"), "\(stored)")
    _ = try backUp("--exclude '**' --include $'file\\xfe'")
    let kept = try run("ls latest --recursive --repo $'repo\\xff'").output
    #expect(!kept.contains("plain") && kept.contains("file"), "\(kept)")
    let device = "--layout folder --root $'tree\\xff'"
    let rules = try run("explain \(device) --exclude $'*\\xfe' folders/$'tree\\xff/file\\xfe'")
      .output
    #expect(rules.contains("backup never"), "\(rules)")
    try cli.directory.write("policy: [", at: ByteString("p".utf8 + [0xff] + ".yaml".utf8))
    let lint = try run("policy lint $'p\\xff.yaml'", exits: 5)
    #expect(lint.output.contains(#"p\xff.yaml:"#), "\(lint.output)")
    let wrong = try run("classify \(device) --exclude $'[\\xfe'", exits: 2)
    #expect(wrong.errors.contains(#"[\xfe"#))
    try run("sample $'device\\xff'")
    #expect(try isThere("device".utf8 + [0xff]))
  }

  /// Paths in the environment, and a path in the configuration that starts at the home directory.
  @Test func environmentMayContainAnyBytes() throws {
    try run("init $'repo\\xff' --plain")
    let backup = "\(CommandLine.program) backup --layout folder --root $'tree\\xff'"
    try run("policy list > none; SANDBOXCTL_REPOSITORY=$'repo\\xff' \(backup)")
    #expect(try run("snapshots --json --repo $'repo\\xff'").output.contains("tree"))
    let home = ByteString("home".utf8 + [0xff])
    try cli.directory.write("repo: ~/own\n", at: home.appending(".config/sandboxctl/config.yaml"))
    try run("init $'home\\xff/own' --plain")
    try run("policy list > none; HOME=$PWD/$'home\\xff' \(backup)")
    #expect(try run("snapshots --json --repo $'home\\xff/own'").output.contains("tree"))
  }

  @Test(arguments: [
    ("$'frob\\xff'", #"there is no command 'frob\xff'"#),
    ("help $'frob\\xff'", #"there is no command 'frob\xff'"#),
    ("backup $'--ro\\xfft' x", #"unknown option '--ro\xfft'"#),
    ("backup $'d\\xff'", #"unexpected argument 'd\xff'"#),
    ("apps --layout $'f\\xff'", #"'f\xff'"#),
    ("backup --jobs $'1\\xff'", #"'1\xff'"#),
    ("backup --profile $'u\\xff'", #"there is no profile 'u\xff'"#),
    ("ls $'\\xff:x'", #"'\xff:x' does not name a snapshot"#),
    ("classify --policy $'n\\xff' --layout folder --root home", #"n\xff"#),
  ])
  func messagesShowTheBytes(_ line: String, _ said: String) throws {
    let outcome = try run(line, exits: 2)
    #expect(outcome.errors.contains(said), "\(outcome.errors)")
  }

  @Test func invalidTextIsRefused() throws {
    try run("init repo --plain")
    for option in ["--tag $'t\\xff'", "--tag=x --tag=$'t\\xff'"] {
      let line = "backup --layout folder --root $'tree\\xff' --repo repo \(option)"
      #expect(try run(line, exits: 2).errors.contains(#"'t\xff' is not valid text"#))
    }
    #expect(try cli.snapshots().isEmpty)
    try run("snapshots --repo repo --host $'h\\xff'", exits: 2)
    try run("schedule install --systemd --dry-run -- --root $'b\\xff'", exits: 2)
    try run("backup --json --tag $'t\\xff'", exits: 2)
  }

  /// The scalars used to escape bytes stand for themselves in user input.
  @Test func privateUseScalarIsAName() throws {
    let name = "out\u{10ffff}"
    let outcome = try cli.run(["sample", name])
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try cli.isThere(ByteString(name)))
  }
}
