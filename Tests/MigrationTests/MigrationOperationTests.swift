import AppPackages
import DeviceScan
import DeviceTransaction
import Foundation
import Migration
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The execution of a migration's plan.
struct MigrationOperationTests {
  @Test func aProfileMovesIntoTheFlatpak() throws {
    let fixture = try MigrationFixture()
    let before = try TreeRecord.all(in: fixture.directory, "old")
    let migration = try fixture.plan()
    let report = try fixture.run(migration)
    #expect(report.isComplete, "\(report.remarks)")
    #expect(
      try fixture.directory.read(MigrationFixture.target("places.sqlite"))
        == Array("places".utf8))
    #expect(try !fixture.newPaths().contains { $0.lastComponent == ".parentlock" })
    #expect(try TreeRecord.all(in: fixture.directory, "old") == before, "the source is unchanged")
    #expect(try InterruptedOperation.all(on: fixture.directory.path("new/.var/app")).isEmpty)
    let names = try Directory.open(path: fixture.directory.path("new/.var/app")).names()
    #expect(!names.contains { $0.description.hasPrefix(".sandboxctl-restore-") })
  }

  /// A sparse file of 8 TiB fits on any volume that has space for its data.
  @Test func aSparseFileNeedsOnlyTheRoomOfItsData() throws {
    let fixture = try MigrationFixture()
    let place = try Directory.open(
      path: fixture.directory.path(ByteString("old").appending(MigrationFixture.profile)))
    let file = try place.create("sparse", permissions: 0o600)
    try file.truncate(to: 1 << 43)
    try place.createHardLink("second", to: "sparse", in: place)
    let migration = try fixture.plan()
    #expect(migration.plan.bytes > 1 << 43)
    #expect(migration.plan.neededRoom < 1 << 20)
    #expect(try fixture.run(migration).isComplete)
  }

  @Test func entriesKeepTheirMetadata() throws {
    let fixture = try MigrationFixture()
    let place = try Directory.open(
      path: fixture.directory.path(ByteString("old").appending(MigrationFixture.profile)))
    let file = try place.create("odd", permissions: 0o640)
    try file.write(Array("data".utf8))
    try file.write(Array("end".utf8), at: 1 << 20)
    try file.setPermissions(0o640)
    try file.setModified(Timestamp(seconds: 1_000_000_000, nanoseconds: 123))
    try? file.attributes.set("user.note", to: Array("a note".utf8))
    try place.createHardLink("second", to: "odd", in: place)
    try place.createLink("link", to: "../somewhere")
    try place.setPermissions(0o700)
    try place.setModified(Timestamp(seconds: 900_000_000))
    _ = try fixture.run(fixture.plan())
    let before = try TreeRecord.all(
      in: fixture.directory, ByteString("old").appending(MigrationFixture.profile))
    let after = try TreeRecord.all(
      in: fixture.directory,
      ByteString("new/.var/app/org.mozilla.firefox").appending(MigrationFixture.profile))
    for name: ByteString in ["odd", "second", "link", "places.sqlite"] {
      var (wanted, found) = (before[name], after[name])
      // The sizes of holes depend on the file system's block size.
      wanted?.extents = []
      found?.extents = []
      #expect(wanted == found, "\(name)")
    }
    #expect(after["second"]?.firstName == "odd")
    let copy = try Directory.open(path: fixture.directory.path(MigrationFixture.target("")))
    let (allocated, copied) = (try place.status("odd").allocated, try copy.status("odd").allocated)
    #expect(allocated > 1 << 19 || copied < 1 << 19, "the hole was filled")
    let status = try Directory.open(
      path: fixture.directory.path(MigrationFixture.target(""))
    ).status()
    #expect(status.permissions == 0o700)
    #expect(status.modified == Timestamp(seconds: 900_000_000))
  }

  @Test func pathsOfTheOldPlaceAreRewritten() throws {
    let fixture = try MigrationFixture(to: .snap)
    try fixture.directory.write("x", at: "new/snap/firefox/common/x")
    let migration = try fixture.plan()
    #expect(migration.rewritings.flatMap(\.changes).count == 1)
    _ = try fixture.run(migration)
    let path: ByteString = "new/snap/firefox/common/.mozilla/firefox/profiles.ini"
    let text = String(decoding: try fixture.directory.read(path), as: UTF8.self)
    #expect(
      text.contains(
        "Path=\(fixture.directory.string)/new/snap/firefox/common/.mozilla/firefox/x.default"),
      "\(text)")
  }

  @Test func linksIntoTheOldPlaceGetTheNewOne() throws {
    let fixture = try MigrationFixture(to: .snap)
    try FileManager.default.createSymbolicLink(
      atPath: fixture.directory.string + "/\(MigrationFixture.source("own"))",
      withDestinationPath: "\(fixture.route.from.home)/\(MigrationFixture.profile)/places.sqlite")
    let migration = try fixture.plan()
    #expect(migration.relinks.map(\.path.lastComponent) == ["own"])
    _ = try fixture.run(migration)
    let target = try Directory.open(
      path: fixture.directory.path("new/snap/firefox/common/.mozilla/firefox/x.default")
    ).target(of: "own")
    #expect(
      target
        == fixture.route.to.home.appending("snap/firefox/common")
        .appending(MigrationFixture.profile).appending("places.sqlite"))
  }

  /// Below other directories, a relative link would point to another entry, unless that entry is
  /// migrated with it.
  @Test func relativeLinksLeadToTheSameEntry() throws {
    let fixture = try MigrationFixture()
    try fixture.directory.write("x", at: "old/Documents/x")
    let profile = try Directory.open(
      path: fixture.directory.path(ByteString("old").appending(MigrationFixture.profile)))
    try profile.createLink("inner", to: "places.sqlite")
    try profile.createLink("outer", to: "../../../Documents/./x")
    let migration = try fixture.plan()
    let outer = fixture.route.from.home.appending("Documents/x")
    #expect(migration.relinks.map(\.path.lastComponent) == ["outer"])
    #expect(migration.relinks.map(\.after) == [outer])
    #expect(migration.outside == [outer])
    _ = try fixture.run(migration)
    let copy = try Directory.open(
      path: fixture.directory.path(MigrationFixture.target("inner").parent))
    #expect(try copy.target(of: "inner") == "places.sqlite")
    #expect(try copy.target(of: "outer") == outer)
    let again = try fixture.plan()
    #expect(again.isIdle && again.plan.conflicts.isEmpty)
  }

  /// Below the same directories of another home directory, a relative link keeps its target.
  @Test func relativeLinksStayBetweenHomesOfOneForm() throws {
    let directory = try TemporaryDirectory("migration")
    let data = try Directory.make(path: directory.path("old/.var/app/org.example.Notes/data"))
    try data.createLink("up", to: "../../../../Documents")
    try data.createLink("far", to: "../../../../../elsewhere")
    _ = try Directory.make(path: directory.path("new"))
    let migration = try AppMigration.make(
      makeRoute(
        "org.example.Notes", from: .flatpak, to: "org.example.Notes", as: .flatpak,
        homes: (directory.path("old"), directory.path("new"))))
    #expect(migration.relinks.isEmpty && migration.outside.isEmpty)
    #expect(migration.plan.moves.count { $0.entry.kind == .symlink } == 2)
  }

  @Test func nothingInTheTargetIsReplaced() throws {
    let fixture = try MigrationFixture()
    try fixture.directory.write("mine", at: MigrationFixture.target("places.sqlite"))
    try fixture.directory.write("new", at: MigrationFixture.source("prefs.js"))
    let migration = try fixture.plan()
    #expect(migration.plan.conflicts.map(\.move.entry.path.lastComponent) == ["places.sqlite"])
    _ = try fixture.run(migration)
    #expect(
      try fixture.directory.read(MigrationFixture.target("places.sqlite")) == Array("mine".utf8))
    #expect(try fixture.directory.read(MigrationFixture.target("prefs.js")) == Array("new".utf8))
  }

  @Test func aSecondMigrationFindsEverythingThere() throws {
    let fixture = try MigrationFixture()
    _ = try fixture.run(fixture.plan())
    let again = try fixture.plan()
    #expect(again.isIdle && again.plan.conflicts.isEmpty)
    #expect(again.plan.present.count == 2)
    let paths = try fixture.newPaths()
    #expect(try fixture.run(again).seconds == 0)
    #expect(try fixture.newPaths() == paths)
  }

  /// An entry that appears at a destination after the plan stays, and all renames are rolled back.
  @Test func anEntryThatAppearsRollsTheMigrationBack() throws {
    let fixture = try MigrationFixture()
    try fixture.directory.write("x", at: "new/.var/app/org.mozilla.firefox/data/x")
    let migration = try fixture.plan()
    try fixture.directory.write("theirs", at: "new/.var/app/org.mozilla.firefox/.mozilla/theirs")
    let before = try fixture.newPaths()
    let error = #expect(throws: OperationError.self) { try fixture.run(migration) }
    #expect(error?.hint?.contains("the device is unchanged") == true)
    #expect(try fixture.newPaths() == before)
    #expect(try InterruptedOperation.all(on: fixture.directory.path("new/.var/app")).isEmpty)
  }

  @Test func anInterruptedMigrationLeavesTheTargetUnchanged() throws {
    let fixture = try MigrationFixture()
    let before = try fixture.newPaths()
    let error = #expect(throws: OperationError.self) {
      try fixture.run(fixture.plan(), isStopping: { true })
    }
    #expect(error?.kind == .interrupted)
    #expect(try fixture.newPaths() == before)
  }

  /// Every call fails in turn, with all later calls, as in a crash: after the recovery the target
  /// has all entries or none, and the next migration completes. The journal is that of the
  /// Flatpaks, or of the home directory.
  @Test(arguments: [Packaging.flatpak, .host])
  func aFailedCallLeavesAllOrNothing(_ packaging: Packaging) throws {
    let fixture = try MigrationFixture(to: packaging)
    let before = try fixture.newPaths()
    _ = try fixture.run(fixture.plan())
    let after = try fixture.newPaths()
    var (call, whole) = (1, 0)
    while call < 2000 {
      try fixture.directory.directory.removeTree("new")
      _ = try Directory.make(path: fixture.directory.path("new/.var/app"))
      let migration = try fixture.plan()
      let plan = Faults.Plan(at: call, number: 5, failsRepeatedly: true)
      Faults.inject(plan) { _ = try? fixture.run(migration, isForced: true) }
      #expect(try fixture.recover(migration).blocked.isEmpty, "call \(call)")
      let paths = try fixture.newPaths()
      #expect(paths == before || paths == after, "call \(call): \(paths.sorted())")
      if paths == after { whole += 1 }
      let again = try fixture.plan()
      if !again.isIdle { _ = try fixture.run(again) }
      #expect(try fixture.plan().isIdle, "call \(call)")
      if !plan.hasFired { break }
      call += Sampling.stride(7)
    }
    #expect(call < 2000, "it does not end")
    #expect(whole > 0)
  }

  /// `.mozilla` is in no container of a home directory, so the journal of the home directory may
  /// name it.
  @Test func aFlatpaksProfileMovesBackToTheHome() throws {
    let directory = try TemporaryDirectory("migration")
    let container: ByteString = "old/.var/app/org.mozilla.firefox"
    try directory.write(
      "places", at: container.appending(".mozilla/firefox/x/places.sqlite"))
    _ = try Directory.make(path: directory.path("new"))
    let route = makeRoute(
      "org.mozilla.firefox", from: .flatpak, to: "firefox", as: .host,
      homes: (directory.path("old"), directory.path("new")))
    let migration = try AppMigration.make(route)
    let target = try MigrationTarget.find(for: migration)
    #expect(target.device.layout == .xdg)
    let scan = target.scan(
      policy: try MigrationFixture.policy(.xdg), options: .init(destination: .unrestricted))
    var options = MigrationOperation.Options()
    options.savesFirst = false
    _ = try MigrationOperation(migration, to: target, scanned: scan, options, saving: nil).run()
    #expect(
      try directory.read("new/.mozilla/firefox/x/places.sqlite") == Array("places".utf8))
  }

  @Test func dataOfANewerVersionIsRefused() throws {
    let migration = try MigrationFixture().plan()
    func version(_ text: ByteString) -> AppVersion { AppVersion(version: text, build: nil) }
    try migration.refuseNewer(version("140.0"), than: version("141.0"))
    try migration.refuseNewer(nil, than: version("1"))
    try migration.refuseNewer(version("1"), than: nil)
    let error = #expect(throws: OperationError.self) {
      try migration.refuseNewer(version("141.0"), than: version("140.0.2"))
    }
    #expect(error?.code == .downgradeRefused)
    #expect(error?.hint?.contains("--allow-downgrade") == true)
    // A release is newer than its pre-release versions.
    try migration.refuseNewer(version("128.0b1"), than: version("128.0"))
    #expect(throws: OperationError.self) {
      try migration.refuseNewer(version("128.0"), than: version("128.0b1"))
    }
  }

  @Test(arguments: [
    ("compatibility.ini", "[Compatibility]\nLastVersion=128.0.3_20240704121409/20240704121409\n"),
    ("Last Version", "128.0.3"), ("Last Version", "128.0.3\n"),
  ]) func theDataStatesItsVersion(_ name: String, _ text: String) throws {
    let fixture = try MigrationFixture()
    try fixture.directory.write(text, at: MigrationFixture.source(ByteString(name)))
    let migration = try fixture.plan()
    #expect(migration.dataVersion == AppVersion(version: "128.0.3", build: nil))
    #expect(throws: OperationError.self) {
      try migration.refuseNewer(nil, than: AppVersion(version: "127.9", build: nil))
    }
  }

  /// An app that was started in the target also has the file; the file of the data counts.
  @Test func theDataStatesItsVersionBesideThatOfTheTarget() throws {
    let fixture = try MigrationFixture()
    try fixture.directory.write("128.0.3", at: MigrationFixture.source("Last Version"))
    try fixture.directory.write("127.9", at: MigrationFixture.target("Last Version"))
    let migration = try fixture.plan()
    #expect(migration.plan.conflicts.count == 1)
    #expect(migration.dataVersion == AppVersion(version: "128.0.3", build: nil))
  }

  @Test(arguments: ["", "_1", "version 1", "[Compatibility]\nLastVersion=\n"])
  func otherTextsStateNoVersion(_ text: String) throws {
    for name: ByteString in ["compatibility.ini", "Last Version"] {
      let fixture = try MigrationFixture()
      try fixture.directory.write(text, at: MigrationFixture.source(name))
      #expect(try fixture.plan().dataVersion == nil)
    }
  }
}
