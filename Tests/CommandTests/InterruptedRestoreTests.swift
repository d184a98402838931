import Foundation
import SystemIO
import TestSupport
import Testing

/// A restore in place that is killed at each of the calls that move entries into place: nothing is
/// lost or torn, a database is never beside another database's log, read-only commands report the
/// interruption, and `recover` or the same restore completes it. `make test` tests a sample of the
/// calls.
@Suite(.serialized, .enabled(if: Strace.isPermitted))
struct InterruptedRestoreTests {
  private static let restore =
    "restore latest --in-place --repo repo --no-snapshot --delete --quiet"
  private static let stored = [
    "folder/a": "stored", "notes.db": "SQLite format 3\u{0} stored", "notes.db-wal": "stored log",
    "plain.db": "SQLite format 3\u{0} stored",
  ]
  private static let now = [
    "folder/a": "now", "folder/mine": "mine", "notes.db": "SQLite format 3\u{0} now",
    "notes.db-wal": "log of now", "plain.db": "SQLite format 3\u{0} of now",
    "plain.db-wal": "another log of now", "plain.db-shm": "index",
  ]

  private static func prepare() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    for (path, text) in stored { try cli.directory.write(text, at: ByteString("tree/\(path)")) }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try Directory.open(path: cli.directory.path).removeTree("tree")
    for (path, text) in now { try cli.directory.write(text, at: ByteString("tree/\(path)")) }
    try cli.copy("tree", to: "now")
    return cli
  }

  @Test func restoreKilledAtEachMoveIsRecovered() throws {
    let cli = try Self.prepare()
    var outcomes: Set<String> = []
    for call in Sampling.steps(3, "restore in place") {
      try Directory.open(path: cli.directory.path).removeTree("tree")
      try cli.copy("now", to: "tree")
      let strace = try Strace("rename,renameat,renameat2,linkat,unlinkat", killingAt: call)
      let outcome = try cli.run(Self.restore, under: strace.command)
      if outcome.code == 0 { break }
      try Self.expectWhole(cli, "killed at call \(call)")
      outcomes.formUnion(try Self.recover(cli, "killed at call \(call)"))
      try Self.expectWhole(cli, "recovered after call \(call)")
      _ = try cli.succeed(Self.restore)
      #expect(try Self.files(cli, "tree") == Self.stored, "call \(call)")
      #expect(call < 300)
      if call >= 300 { break }
    }
    #expect(outcomes.contains("finished"))
  }

  /// The recovery also removes journals and notes that the killed run had not written completely.
  @Test func restoreKilledAtEachSyncLeavesNoFiles() throws {
    let cli = try Self.prepare()
    var last = 0
    for call in Sampling.steps(3, "syncs of a restore in place") {
      last = call
      try Directory.open(path: cli.directory.path).removeTree("tree")
      try cli.copy("now", to: "tree")
      let strace = try Strace("fsync", killingAt: call)
      if try cli.run(Self.restore, under: strace.command).code == 0 { break }
      _ = try cli.succeed("recover --root tree --layout folder")
      let journal = cli.directory.path("tree/.sandboxctl/journal")
      let names = (try? Directory.open(path: journal).names()) ?? []
      #expect(!names.contains { AtomicFile.isTemporary($0) }, "call \(call): \(names)")
      let trash = try cli.succeed("trash list --root tree --layout folder")
      #expect(!trash.contains("unknown of"), "call \(call): \(trash)")
      #expect(call < 100)
      if call >= 100 { break }
    }
    #expect(last > 5)
  }

  /// A run that was killed between its lock and its journal leaves only the lock. A recent lock may
  /// be that of a run that is about to lock it.
  @Test func recoveryRemovesOldLocksWithoutAJournal() throws {
    let cli = try Self.prepare()
    let (old, recent) = ("20200101T000000-0123abcd.lock", "20200101T000000-4567abcd.lock")
    for name in [old, recent] {
      try cli.directory.write("1 1", at: ByteString("tree/.sandboxctl/journal/\(name)"))
    }
    _ = try Program.run("chmod", ["-R", "go-w", cli.directory.string + "/tree/.sandboxctl"])
    let journal = try Directory.open(path: cli.directory.path("tree/.sandboxctl/journal"))
    try journal.setModified(Timestamp(seconds: 1_577_836_800), of: ByteString(old))
    _ = try cli.succeed("recover --root tree --layout folder")
    #expect(try cli.names(in: "tree/.sandboxctl/journal") == [ByteString(recent)])
  }

  /// Recovers after read-only commands reported the interruption. Returns the outcomes.
  private static func recover(_ cli: CommandLine, _ what: String) throws -> Set<String> {
    let before = try files(cli, "tree")
    let apps = try cli.run("apps --root tree --layout folder")
    #expect(apps.code == 0)
    #expect(try files(cli, "tree") == before, "\(what): read-only commands change nothing")
    let answer = try cli.json("recover --root tree --layout folder --json")
    let operations = answer["operations"] as? [[String: Any]] ?? []
    #expect(
      apps.errors.contains("was interrupted") == !operations.isEmpty, "\(what): \(apps.errors)")
    for operation in operations {
      let after = try files(cli, "tree")
      if operation["outcome"] as? String == "finished" {
        #expect(after == stored, "\(what)")
      } else {
        #expect(after == now, "\(what)")
      }
    }
    #expect(!(try cli.run("apps --root tree --layout folder").errors.contains("interrupted")))
    #expect(try !cli.names(in: "tree").contains { $0.bytes.starts(with: ".sandboxctl-".utf8) })
    return Set(operations.compactMap { $0["outcome"] as? String })
  }

  /// Expects each file to be the old or the new one, replaced files to be in place or in the trash,
  /// and no database beside the log of another state.
  private static func expectWhole(_ cli: CommandLine, _ what: String) throws {
    let found = try files(cli, "tree")
    for (path, text) in found {
      #expect(text == stored[path] || text == now[path], "\(what): \(path)")
    }
    let kept = Set(try trash(cli).values)
    for (path, text) in now where path != "plain.db-shm" {
      #expect(found[path] == text || kept.contains(text), "\(what): \(path) is lost")
    }
    for name in ["notes.db", "plain.db"] {
      guard let database = found[name], let log = found[name + "-wal"] else { continue }
      let own = database == stored[name] ? stored : now
      #expect(log == own[name + "-wal"], "\(what): \(name) beside another's log")
    }
  }

  private static func trash(_ cli: CommandLine) throws -> [String: String] {
    guard (try? Directory.open(path: cli.directory.path("tree/.sandboxctl/trash"))) != nil else {
      return [:]
    }
    return try files(cli, "tree/.sandboxctl/trash")
  }

  /// Returns the texts of all files below a directory, except the program's own.
  private static func files(_ cli: CommandLine, _ directory: String) throws -> [String: String] {
    var found: [String: String] = [:]
    let top = cli.directory.string + "/" + directory
    for path in try FileManager.default.subpathsOfDirectory(atPath: top)
    where !path.hasPrefix(".sandboxctl") {
      var isDirectory: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: top + "/" + path, isDirectory: &isDirectory)
      if isDirectory.boolValue { continue }
      found[path] = String(
        decoding: try cli.directory.read(ByteString("\(directory)/\(path)")), as: UTF8.self)
    }
    return found
  }

  // MARK: - Other commands

  /// Kills a restore of the sample's notebook at its second step.
  static func interrupted() throws -> (fixture: DeviceRestoreFixture, note: ByteString) {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path("apps/org.example.notebook/data", of: "device")
    let note = data.appending("Documents/Notes/Recipes.md")
    try fixture.change(note, to: "spoilt")
    _ = try fixture.cli.succeed("apps --root device")
    let before = try fixture.text(note)
    for call in 1...20 {
      let strace = try Strace("linkat", killingAt: call)
      let outcome = try fixture.cli.run(
        "restore latest --app notebook --in-place --repo repo --no-snapshot",
        under: strace.command)
      if outcome.code == 0 { break }
      let apps = try fixture.cli.run("apps --root device")
      if apps.errors.contains("finishes it") { return (fixture, note) }
    }
    Issue.record("never interrupted: \(before)")
    return (fixture, note)
  }

  @Test func readOnlyCommandsReportTheInterruption() throws {
    let (fixture, note) = try Self.interrupted()
    let cli = fixture.cli
    let apps = try cli.run("apps --root device")
    #expect(apps.code == 0)
    #expect(apps.errors.contains("the restore of 'apps/org.example.notebook/data' was interrupted"))
    #expect(
      apps.errors.contains("'sandboxctl recover --root \(cli.directory.string)/device' finishes it")
    )
    let classify = try cli.run("classify --root device --summary")
    #expect(classify.code == 0 && classify.errors.contains("was interrupted"))
    let plan = try cli.run("restore latest --app notebook --in-place --repo repo --dry-run")
    #expect(plan.code == 0 && plan.errors.contains("was interrupted"))
    #expect(try fixture.text(note) == "spoilt")
    // Staged files are not backed up; the snapshot has an intermediate state.
    let backup = try cli.run("backup --root device --repo repo")
    #expect(backup.code == 3 && backup.errors.contains("was interrupted"), "\(backup.errors)")
    #expect(!(try cli.succeed("ls latest --recursive --repo repo").contains(".sandboxctl")))
    #expect(try fixture.text(note) == "spoilt")
    // Files kept by the interrupted operation are not deleted either.
    let trash = try cli.run("trash empty --root device")
    #expect(trash.code == 3 && trash.errors.contains("was interrupted"), "\(trash.errors)")
    let recovered = try cli.succeed("recover --root device")
    #expect(recovered.contains("finished the interrupted restore"), "\(recovered)")
    #expect(try fixture.text(note) != "spoilt")
    #expect(try cli.succeed("recover --root device").contains("no interrupted operations"))
    #expect(try cli.run("backup --root device --repo repo --quiet").code == 0)
  }

  @Test func damagedJournalIsReported() throws {
    let (fixture, note) = try Self.interrupted()
    let journal = try Directory.open(path: fixture.cli.directory.path("device/.sandboxctl/journal"))
    let name = try #require(try journal.names().first { $0.description.hasSuffix(".json") })
    let bytes = try #require(try journal.file(name).readAll(limit: 1 << 20))
    let file = try journal.fileForWriting(name)
    try file.truncate(to: UInt64(bytes.count / 2))
    let apps = try fixture.cli.run("apps --root device")
    #expect(apps.code == 0 && apps.errors.contains("cannot read the journal"), "\(apps.errors)")
    let backup = try fixture.cli.run("backup --root device --repo repo")
    #expect(backup.code == 3 && backup.errors.contains("cannot read the journal"))
    for command in ["recover --root device", "restore latest --in-place --repo repo"] {
      let refused = try fixture.cli.run(command)
      #expect(refused.code == 1, "\(command)")
      #expect(refused.errors.contains("hint: if it is damaged, remove it"), "\(refused.errors)")
      #expect(try fixture.text(note) == "spoilt")
    }
    try journal.remove(name)
    _ = try fixture.cli.succeed("restore latest~1 --app notebook --in-place --repo repo")
    #expect(try fixture.text(note) != "spoilt")
  }

  @Test func nextRestoreRecoversFirst() throws {
    let (fixture, note) = try Self.interrupted()
    let again = try fixture.cli.run(
      "restore latest --app notebook --in-place --repo repo --no-snapshot")
    #expect(again.code == 0)
    #expect(again.errors.contains("note: finished the interrupted restore"), "\(again.errors)")
    #expect(try fixture.text(note) != "spoilt")
    #expect(!(try fixture.cli.run("apps --root device").errors.contains("interrupted")))
  }

  @Test func recoveryDoesNotChangeARunningApp() throws {
    let (fixture, note) = try Self.interrupted()
    let app = try OpenFileHolder(of: "\(note)")
    defer { app.end() }
    let refused = try fixture.cli.run("recover --root device")
    #expect(refused.code == 1 && refused.errors.contains("process \(app.process) "))
    #expect(try fixture.text(note) == "spoilt")
    let restore = try fixture.cli.run("restore latest --app notebook --in-place --repo repo")
    #expect(restore.code == 1, "\(restore.errors)")
    #expect(try fixture.cli.run("recover --root device --force").code == 0)
    #expect(try fixture.text(note) != "spoilt")
  }
}
