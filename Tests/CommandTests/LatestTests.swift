import SystemIO
import TestSupport
import Testing

/// The meaning of `latest` in a repository with the snapshots of several devices.
struct LatestTests {
  private let cli: CommandLine

  /// Backs up two directories in turn: one, two, one again.
  init() throws {
    cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("init repo --plain --no-default")
    for (number, name) in ["one", "two", "one"].enumerated() {
      try cli.directory.write("\(number)", at: ByteString("\(name)/file-\(number)"))
      _ = try cli.succeed("backup --layout folder --root \(name) --repo repo --quiet")
    }
  }

  @Test func deviceOfLatestIsReported() throws {
    let ids = try cli.snapshots().map { $0.prefix(8) }
    let outcome = try cli.run("restore latest --to back --repo repo")
    #expect(outcome.code == 0)
    #expect(try cli.names(in: "back/folders/one") == ["file-0", "file-2"])
    let root = cli.directory.string
    #expect(
      outcome.errors.contains(
        """
        sandboxctl: warning: 'latest' is \(ids[2]) of '\(root)/one'; other devices have \
        \(ids[1]) of '\(root)/two'
        sandboxctl: hint: give a snapshot's id to choose the device: 'sandboxctl snapshots --repo \
        repo' lists them

        """), "\(outcome.errors)")
    // The other one is selected by ID, which needs no note.
    let other = try cli.run("restore \(ids[1]) --to other --repo repo")
    #expect(other.code == 0 && !other.errors.contains("devices"), "\(other.errors)")
    #expect(try cli.names(in: "other/folders/two") == ["file-1"])
  }

  @Test func latestCountsSnapshotsOfItsDevice() throws {
    let outcome = try cli.run("diff latest~1 latest --repo repo")
    #expect(outcome.code == 0)
    #expect(outcome.output.contains("+  folders/one/file-2"), "\(outcome.output)")
    #expect(!outcome.output.contains("two"), "\(outcome.output)")
    // One warning for both names.
    let warnings = outcome.errors.split(separator: "\n").count { $0.contains("warning: ") }
    #expect(warnings == 1, "\(outcome.errors)")
    let few = try cli.run("ls latest~2 --repo repo")
    #expect(few.code == 1)
    #expect(
      few.errors.contains("only 2 snapshots exist of the device '\(cli.directory.string)/one'"),
      "\(few.errors)")
  }

  /// A note about a selection by time is the same.
  @Test func selectionByTimeIsReported() throws {
    let outcome = try cli.run("ls 2999-01-01 --repo repo")
    #expect(outcome.code == 0)
    #expect(outcome.errors.contains("warning: '2999-01-01' is "), "\(outcome.errors)")
  }

  /// With one device there is no note, whatever directories and apps it has.
  @Test func singleDeviceIsNotReported() throws {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("init repo --plain --no-default")
    for name: ByteString in ["one", "two"] {
      try cli.directory.write("x", at: ByteString("home/.var/app/org.example.\(name)/data/file"))
      _ = try cli.succeed("backup --root home/.var/app --repo repo --quiet")
    }
    _ = try cli.succeed("backup --root home/.var/app --app two --repo repo --quiet")
    let outcome = try cli.run("ls latest~1 --repo repo")
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
  }
}
