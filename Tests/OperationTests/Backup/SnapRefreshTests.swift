import ArchiveStore
import DeviceDiscovery
import DeviceScan
import Foundation
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// A snap's data and its refreshes, as snapd performs them: `cp -a` to a new directory, and a new
/// `current` link when the snap is run.
struct SnapFixture {
  let fixture: Fixture
  static let snap: ByteString = "home/you/snap/editor"
  /// Long ago, so that no file counts as recently changed, however slow the machine is.
  static let modified = Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789)

  /// Makes revision 41 with some files, all last changed long ago.
  init() throws {
    fixture = try Fixture()
    for name in Self.files { try write("content of \(name)", name, revision: "41") }
    try fixture.directory.write("shared", at: Self.snap.appending("common/profile"))
    try link("41")
  }

  static let files = ["a", "sub/b", "sub/deep/c", ".config/editor/settings"]

  static func path(_ name: String, _ revision: String) -> ByteString {
    snap.appending(ByteString("\(revision)/\(name)"))
  }

  /// Writes a file with an old modification time.
  func write(_ text: String, _ name: String, revision: String) throws {
    let path = Self.path(name, revision)
    try fixture.directory.write(text, at: path)
    try fixture.directory.directory.setModified(Self.modified, of: path)
  }

  func shell(_ script: String) throws {
    let outcome = try Program.run(
      "/bin/bash", ["-euc", script],
      in: fixture.directory.url.appendingPathComponent(Self.snap.description))
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// The first part of a refresh: the copy.
  func copy(_ old: String, to new: String) throws {
    try tick()
    try shell("cp -a \(old) \(new)")
    try tick()
  }

  /// The first run of the new revision: the link.
  func link(_ revision: String) throws {
    try shell("ln -sfn \(revision) current.new && mv -T current.new current")
    try tick()
  }

  /// Waits until changes get a later time than all earlier ones.
  func tick() throws {
    func now() throws -> Timestamp {
      try fixture.directory.write("x", at: "clock")
      return try fixture.directory.directory.status("clock").changed
    }
    let start = try now()
    while try now() == start {}
  }

  func refresh(_ old: String, to new: String) throws {
    try copy(old, to: new)
    try link(new)
  }

  func plan(_ patterns: [CommandLinePattern] = []) throws -> BackupPlan {
    let finder = DeviceFinder(machineID: "m", systemFlatpak: nil)
    let device = try finder.find(fixture.directory.path("home/you/snap"))
    return BackupPlan.make(DeviceScan.run(device, policy: try Fixture.policy(.snap, patterns)))
  }

  /// Backs up with a clock that is an hour ahead. Also returns the number of opened files.
  func backup(
    _ patterns: [CommandLinePattern] = [], to repository: Repository? = nil
  ) throws -> (report: BackupReport, opened: Int) {
    let counters = ProgressCounters()
    let request = BackupRequest(
      program: "test", workers: 2, cache: fixture.directory.path("cache"),
      now: { Timestamp(seconds: Host.now().seconds + 3600) }, counters: counters)
    let report = try BackupOperation(
      try plan(patterns), to: repository ?? fixture.repository, request
    ).run()
    #expect(report.isComplete && report.warnings.isEmpty)
    return (report, counters.progress.opened)
  }

  /// Restores the revision, and compares it with its directory, including times and modes.
  func expectRestored(_ report: BackupReport, _ revision: String, to name: ByteString) throws {
    _ = try fixture.restore(report, "apps/editor/revision", to: name)
    let real = "\(fixture.directory.string)/\(Self.snap)/\(revision)"
    let back = "\(fixture.directory.string)/\(name)"
    for list in ["find . -printf '%p %y %s %T@ %m %U %G\\n' | sort", "getfattr -Rd -m - . | sort"] {
      let lists = try [real, back].map {
        try Program.run("/bin/bash", ["-c", list], in: URL(fileURLWithPath: $0)).output
      }
      #expect(lists[0] == lists[1])
    }
    let same = try Program.run("diff", ["-r", real, back])
    #expect(same.code == 0, "\(same.output)")
  }

  /// Whether the tests' file system records birth times.
  static let hasBirths: Bool = {
    guard let directory = try? TemporaryDirectory("births"),
      (try? directory.write("x", at: "x")) != nil
    else { return false }
    return (try? directory.directory.status("x"))?.born != nil
  }()
}

/// A refresh reads no unchanged file again, and no changed file is mistaken for an old one
/// (docs/decisions/0007-copied-revisions.md).
@Suite(
  .spreadScans,
  .enabled(if: SnapFixture.hasBirths, "the file system records no birth times"))
struct SnapRefreshTests {
  let snap: SnapFixture
  init() throws { snap = try SnapFixture() }

  @Test func aRefreshReadsNothingAgain() throws {
    #expect(try snap.backup().opened == 5)
    #expect(try snap.backup().opened == 0)
    try snap.refresh("41", to: "42")
    let (report, opened) = try snap.backup()
    #expect(opened == 0)
    #expect(report.files == 5)
    try snap.expectRestored(report, "42", to: "back")
    let snapshot = try #require(report.snapshot?.snapshot)
    let revision = snapshot.device.containers.first { $0.path == "apps/editor/revision" }
    #expect(revision?.revision == "42")
    #expect(revision?.realPath == snap.fixture.directory.path("home/you/snap/editor/42"))
    #expect(
      snapshot.excluded.map(\.path) == ["apps/editor/old-revisions/41"]
        && snapshot.excluded.first?.rule == "old-revision")
    // The next backup recognizes the new files by the ordinary rule, and so does one after another
    // refresh.
    try snap.shell("rm -r 41")
    #expect(try snap.backup().opened == 0)
    try snap.refresh("42", to: "43")
    #expect(try snap.backup().opened == 0)
  }

  @Test func filesChangedAfterARefreshAreRead() throws {
    _ = try snap.backup()
    try snap.refresh("41", to: "42")
    try snap.fixture.directory.write("CONTENT of a", at: SnapFixture.path("a", "42"))
    try snap.fixture.directory.write("new", at: SnapFixture.path("sub/new", "42"))
    try snap.shell("rm 42/sub/deep/c")
    let (report, opened) = try snap.backup()
    #expect(opened == 2)
    try snap.expectRestored(report, "42", to: "back")
  }

  /// The size is the same, and the modification time was set back: only the change time shows the
  /// change.
  @Test func aChangeWithAnOldModificationTimeIsRead() throws {
    _ = try snap.backup()
    try snap.refresh("41", to: "42")
    try snap.write("CONTENT of a", "a", revision: "42")
    let (report, opened) = try snap.backup()
    #expect(opened == 1)
    try snap.expectRestored(report, "42", to: "back")
  }

  /// The old revision was changed in the same hidden way after its last backup, and then copied.
  @Test func aHiddenChangeBeforeTheRefreshIsRead() throws {
    _ = try snap.backup()
    try snap.tick()
    try snap.write("CONTENT of a", "a", revision: "41")
    try snap.refresh("41", to: "42")
    let (report, opened) = try snap.backup()
    #expect(opened == 1)
    try snap.expectRestored(report, "42", to: "back")
  }

  /// The old revision is changed after the copy, and backed up before the new one is in use: the
  /// state file then does not describe the copied files.
  @Test func aFileWhoseOriginalChangedAfterTheCopyIsRead() throws {
    _ = try snap.backup()
    try snap.copy("41", to: "42")
    try snap.write("CONTENT of a", "a", revision: "41")
    #expect(try snap.backup().opened == 1)
    try snap.link("42")
    let (report, opened) = try snap.backup()
    #expect(opened == 1)
    try snap.expectRestored(report, "42", to: "back")
  }

  @Test(arguments: [
    ("mode", "chmod 600 42/a"), ("time", "touch -d 2020-01-01 42/a"),
    ("size", "echo >> 42/a; touch -r 41/a 42/a"), ("another file", "cp -p 41/a x; mv x 42/a"),
    ("a second name", "ln 42/a 42/hardlink; rm 42/sub/b; cp -p 41/sub/b 42/sub/b"),
  ])
  func aFileThatDiffersFromItsOriginalIsRead(what: String, script: String) throws {
    _ = try snap.backup()
    try snap.copy("41", to: "42")
    // Changes before the revision came into use count as well, except for an identical copy.
    try snap.shell(script)
    try snap.tick()
    try snap.link("42")
    let (report, opened) = try snap.backup()
    #expect(opened == (what == "another file" ? 0 : 1), "\(what)")
    try snap.expectRestored(report, "42", to: "back")
  }

  @Test func withoutTheOldRevisionEverythingIsRead() throws {
    _ = try snap.backup()
    try snap.refresh("41", to: "42")
    try snap.shell("rm -r 41")
    let (report, opened) = try snap.backup()
    #expect(opened == 4)
    try snap.expectRestored(report, "42", to: "back")
  }

  @Test func aRevisionThatIsNotInUseIsRead() throws {
    _ = try snap.backup()
    try snap.refresh("41", to: "42")
    try snap.shell("rm current")
    let (report, opened) = try snap.backup()
    // The state file recognizes 41 by its inodes; 42 exists next to it, and is read.
    #expect(opened == 4)
    #expect(report.files == 9)
  }

  @Test func aRevertedRevisionIsRead() throws {
    _ = try snap.backup()
    try snap.refresh("41", to: "42")
    #expect(try snap.backup().opened == 0)
    try snap.link("41")
    let (report, opened) = try snap.backup()
    #expect(opened == 4)
    try snap.expectRestored(report, "41", to: "back")
  }

  @Test func anotherPolicyReadsNoUnchangedFile() throws {
    _ = try snap.backup()
    try snap.refresh("41", to: "42")
    let (report, opened) = try snap.backup([.exclude("sub/**")])
    #expect(opened == 0)
    #expect(report.files == 3)
    let (whole, again) = try snap.backup()
    #expect(again == 2)
    try snap.expectRestored(whole, "42", to: "back")
  }

  @Test func contentMissingFromTheRepositoryIsRead() throws {
    _ = try snap.backup()
    try snap.refresh("41", to: "42")
    try snap.shell("rm ../../../../repo/packs/*/*")
    let repository = try Repository.open(
      try LocalStorage(path: snap.fixture.directory.path("repo")))
    let (report, opened) = try snap.backup(to: repository)
    #expect(opened == 5)
    #expect(report.files == 5)
  }

  @Test func anotherAttributeIsStored() throws {
    _ = try snap.backup()
    try snap.copy("41", to: "42")
    try snap.shell("setfattr -n user.note -v here 42/a")
    try snap.tick()
    try snap.link("42")
    let (report, opened) = try snap.backup()
    #expect(opened == 0)
    try snap.expectRestored(report, "42", to: "back")
  }

  /// The program still uses the old revision when it is copied.
  @Test(arguments: [["db"], ["db-wal"], ["db", "db-wal"]])
  func aCopiedDatabaseThatIsReadIsReadWithItsLog(changed: [String]) throws {
    let texts = [("db", "SQLite format 3\0pages"), ("db-wal", "log")]
    for (name, text) in texts { try snap.write(text, name, revision: "41") }
    _ = try snap.backup()
    try snap.copy("41", to: "42")
    for (name, text) in texts where changed.contains(name) {
      try snap.write(text.replacing("log", with: "LOG"), name, revision: "41")
    }
    _ = try snap.backup()
    try snap.link("42")
    let (report, _) = try snap.backup()
    #expect(report.databases.map(\.path) == ["apps/editor/revision/db"])
    try snap.expectRestored(report, "42", to: "back")
    #expect(try snap.backup().opened == 0)
  }

  @Test func aDatabaseIsRecognizedOrReadWithItsLog() throws {
    for (name, text) in [("db", "SQLite format 3\0pages"), ("db-wal", "log"), ("x-wal", "lone")] {
      try snap.write(text, name, revision: "41")
    }
    #expect(try snap.backup().report.databases.count == 1)
    try snap.refresh("41", to: "42")
    let (report, opened) = try snap.backup()
    #expect(opened == 0)
    try snap.expectRestored(report, "42", to: "back")
    try snap.refresh("42", to: "43")
    try snap.write("LOG", "db-wal", revision: "43")
    let next = try snap.backup()
    #expect(next.report.databases.map(\.path) == ["apps/editor/revision/db"])
    try snap.expectRestored(next.report, "43", to: "back again")
  }
}
