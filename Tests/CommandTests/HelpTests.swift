import Foundation
import SystemIO
import TestSupport
import Testing

/// Help, version and completion scripts.
struct HelpTests {
  @Test func helpOfEveryCommandIsAsRecorded() throws {
    let cli = try CommandLine()
    let commands = try HelpTree.commands(cli)
    #expect(commands.count > 10)
    let names = commands.map { (["help"] + $0).joined(separator: "-") }
    #expect(try TextSnapshot.names().filter { $0.hasPrefix("help") }.sorted() == names.sorted())
    for command in commands {
      let outcome = try cli.run(command + ["--help"])
      #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(command): \(outcome.errors)")
      try TextSnapshot.expect(
        outcome.output, is: (["help"] + command).joined(separator: "-"))
      let wide = outcome.output.split(separator: "\n").filter { line in
        line.count > 80 && !line.hasPrefix("USAGE: ")
      }
      #expect(wide.isEmpty, "fits a terminal")
      #expect(try cli.run(["help"] + command).output == outcome.output)
    }
  }

  /// Longer descriptions belong to the man page (docs/style.md).
  @Test func helpHasAtMostTwelveLinesBeforeItsUsage() throws {
    let cli = try CommandLine()
    for command in try HelpTree.commands(cli) {
      let help = try cli.run(command + ["--help"]).output
      let parts = help.components(separatedBy: "\nUSAGE: ")
      let lines = parts[0].trimmingCharacters(in: .newlines).components(separatedBy: "\n")
      #expect(parts.count == 2 && lines.count <= 12, "\(command): \(lines.count) lines")
    }
  }

  @Test func everyCommandEndsWithExamples() throws {
    let cli = try CommandLine()
    for command in try HelpTree.commands(cli) {
      let help = try cli.run(command + ["--help"]).output
      #expect(!ExampleDirectory.examples(in: help).isEmpty, "\(command) ends with examples")
    }
  }

  /// All examples; in `make test`, those of a sample of the commands.
  @Test func examplesOfEveryCommandWork() throws {
    for command in Sampling.some(of: try HelpTree.commands(CommandLine()), 4, "examples") {
      // It runs until it is unmounted: `MountCommandTests` runs it.
      if command == ["mount"] { continue }
      let location = try ExampleDirectory()
      let help = try location.cli.run(command + ["--help"]).output
      let examples = ExampleDirectory.examples(in: help)
      try location.prepare(for: command, examples)
      for example in examples {
        let outcome = try location.run(example)
        #expect(outcome.code == 0, "\(example): \(outcome.errors)")
      }
    }
  }

  @Test func versionIsPrinted() throws {
    let outcome = try CommandLine().run("--version")
    #expect(outcome.code == 0)
    #expect(outcome.output.wholeMatch(of: /sandboxctl [0-9]+\.[0-9]+\.[0-9]+( .*)?\n/) != nil)
  }

  @Test func noArgumentsShowTheHelp() throws {
    let cli = try CommandLine()
    let outcome = try cli.run([])
    #expect(outcome.code == 0)
    #expect(outcome.output == (try cli.succeed("--help")))
  }

  @Test(arguments: ["bash", "zsh", "fish"])
  func completionScriptIsPrinted(_ shell: String) throws {
    let cli = try CommandLine()
    let outcome = try cli.run("--generate-completion-script \(shell)")
    #expect(outcome.code == 0 && outcome.errors.isEmpty)
    #expect(outcome.output.contains("snapshots"))
    guard Program.exists(shell) else { return }
    try cli.directory.write(outcome.standardOutput, at: "completions")
    let parsed = try Program.run(shell, ["-n", cli.directory.string + "/completions"])
    #expect(parsed.code == 0 && parsed.errors.isEmpty, "\(shell): \(parsed.errors)")
  }
}

/// A directory as the examples of the help expect it: `device` is a sample device and `repo` a
/// repository with a backup of it, unless the examples create them.
private struct ExampleDirectory {
  let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    let root = try Directory.open(path: cli.directory.path)
    try root.makeDirectory("bin").createLink("sandboxctl", to: ByteString(CommandLine.program))
  }

  /// Returns the command lines at the end of a help text.
  static func examples(in help: String) -> [String] {
    let lines = help.components(separatedBy: "\n")
    guard let start = lines.firstIndex(where: { $0.hasPrefix("EXAMPLES:") }) else { return [] }
    return lines.dropFirst(start + 1).compactMap { line in
      line.hasPrefix("  $ ") ? String(line.dropFirst(4)) : nil
    }
  }

  func prepare(for command: [String], _ examples: [String]) throws {
    if command == ["sample"] { return }
    let all = examples.joined(separator: "\n")
    if !examples.contains("sandboxctl sample device") { _ = try cli.succeed("sample device") }
    for name: ByteString in ["new", "old", "passphrase"] {
      try cli.directory.write("the passphrase in \(name)\n", at: name)
    }
    if !all.contains("init repo") {
      let isEncrypted = command.first == "key"
      _ = try cli.succeed("init repo " + (isEncrypted ? "--passphrase-file old" : "--plain"))
      if !isEncrypted, !all.contains("backup") {
        _ = try cli.succeed("backup --root device --repo repo")
      }
    }
    if command.first == "import" { try prepareArchives() }
    if command.first == "interapp" { try prepareDocuments(for: command) }
    if all.contains("app.scenario.yaml") {
      try cli.directory.write(Self.scenario, at: "app.scenario.yaml")
    }
    if ["restic", "borg", "kopia"].contains(command.last) { try preparePeer(command) }
    if command.last == "snap" {
      try SnapTests.makeSystem(in: cli)
      _ = try cli.succeed("backup \(SnapTests.device) --repo repo --quiet")
    }
    if command == ["migrate"] { try cli.directory.write("x", at: "home/.mozilla/firefox/x") }
    if all.contains("New.") || command == ["rollback"] { try preparePackage(for: command) }
  }

  private static let scenario = """
    scenario: an update keeps the notes
    schema: 1
    device: {sample: 0}
    steps:
      - update: {app: notebook, version: "9.0"}
      - expect: [{match: apps/org.example.notebook/data/Documents/Notes/**, same-bytes: beginning}]

    """

  /// Creates files that another app passes to an app, and delivers one that can be claimed.
  private func prepareDocuments(for command: [String]) throws {
    try cli.directory.write("%PDF-1.7\n", at: "report.pdf")
    try cli.directory.write([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], at: "photo.png")
    if command.contains("inbox") {
      _ = try cli.succeed("interapp deliver report.pdf --to notebook --root device")
    }
  }

  /// Makes the archives of the examples.
  private func prepareArchives() throws {
    try cli.directory.write("a photo", at: "photos/first.jpg")
    for name in ["photos.tar.zst", "photos-2024.tar.zst", "documents.zip"] {
      let packed = try Program.run("bsdtar", ["-caf", name, "photos"], in: cli.directory.url)
      #expect(packed.code == 0, "\(packed.errors)")
    }
  }

  /// Creates the repository of another backup program, or a program that imitates kopia.
  private func preparePeer(_ command: [String]) throws {
    try cli.directory.write("the password", at: "word")
    switch command.last {
    case "restic":
      let made = try run(
        """
        export RESTIC_PASSWORD_FILE=word; restic -q init --repo old-restic
        restic -q --repo old-restic backup photos
        """)
      #expect(made.code == 0, "\(made.errors)")
    case "borg":
      let made = try run(
        """
        export BORG_PASSCOMMAND='cat word'; borg init --encryption repokey old-borg
        borg create old-borg::photos photos
        """)
      #expect(made.code == 0, "\(made.errors)")
    default:
      try PeerFixture.install(in: cli, at: "bin/kopia")
      try cli.directory.write("a photo", at: "bin/states/1/first.jpg")
    }
  }

  /// Makes a package as a directory and as an archive, and prepares the device for the command.
  private func preparePackage(for command: [String]) throws {
    let app = command == ["install"] ? "other" : "notebook"
    try cli.directory.write(
      """
      <plist><dict><key>CFBundleIdentifier</key><string>org.example.\(app)</string>
      <key>CFBundleShortVersionString</key><string>90.0</string></dict></plist>
      """, at: "New.app/Info.plist")
    let packed = try Program.run(
      "python3", ["-m", "zipfile", "-c", "New.ipa", "New.app"], in: cli.directory.url)
    #expect(packed.code == 0, "\(packed.errors)")
    switch command {
    case ["rollback"]: _ = try cli.succeed("update New.app --root device --repo repo")
    case ["reinstall"]: _ = try cli.succeed("offload notebook --root device --repo repo")
    default: break
    }
  }

  /// Runs a line in a shell.
  func run(_ line: String) throws -> Program.Outcome {
    var environment = cli.environment
    environment["PATH"] = cli.directory.string + "/bin:" + (environment["PATH"] ?? "")
    return try Program.run(
      "/bin/sh", ["-ec", line], environment: environment, cleanEnvironment: true,
      in: cli.directory.url)
  }
}
