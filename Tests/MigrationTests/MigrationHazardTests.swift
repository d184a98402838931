import DeviceScan
import DeviceTransaction
import Migration
import PolicyEngine
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Migrations during interruptions, with other programs and unusual home directories.
struct MigrationHazardTests {
  /// Apps without containers are staged in one directory: the migration of one must not remove
  /// files that the interrupted migration of another needs.
  @Test func anInterruptedMigrationIsNotRemovedByAnother() throws {
    let fixture = try MigrationFixture()
    try fixture.directory.write("mail", at: "old/.thunderbird/x/mail")
    let other = makeRoute(
      "thunderbird", from: .deb, to: "org.mozilla.Thunderbird", as: .flatpak,
      homes: (fixture.directory.path("old"), fixture.directory.path("new")))
    let root = fixture.directory.path("new/.var/app")
    let migration = try fixture.plan()
    // The journal has the steps, and none was applied.
    func isReady() throws -> Bool {
      guard try InterruptedOperation.all(on: root).first?.canBeFinished == true else {
        return false
      }
      return try !fixture.newPaths().contains(".var/app/org.mozilla.firefox")
    }
    var call = 0
    repeat {
      call += 1
      try fixture.directory.directory.removeTree("new")
      _ = try Directory.make(path: root)
      let plan = Faults.Plan(at: call, number: 5, failsRepeatedly: true)
      Faults.inject(plan) { _ = try? fixture.run(migration, isForced: true) }
      try #require(plan.hasFired, "no call is between the journal and the first step")
    } while try !isReady()
    _ = try fixture.run(AppMigration.make(other), isForced: true)
    let report = try fixture.recover(migration)
    #expect(report.blocked.isEmpty && report.done.map(\.isFinished) == [true])
    #expect(
      try fixture.directory.read(MigrationFixture.target("places.sqlite"))
        == Array("places".utf8))
    let mail: ByteString = "new/.var/app/org.mozilla.Thunderbird/.thunderbird/x/mail"
    #expect(try fixture.directory.read(mail) == Array("mail".utf8))
  }

  /// A part of the app's data may be in a staging directory of the source.
  @Test func aSourceWithAnInterruptedOperationIsRefused() throws {
    let fixture = try MigrationFixture()
    let migration = try fixture.plan()
    try migration.requireSourceWithoutOperations()
    let home = fixture.directory.path("old")
    var journal: OperationJournal? = try OperationJournal(
      JournalRecord(
        operation: "restore", time: Host.now(), subjects: ["apps/firefox"],
        containers: ["apps/firefox/config"]), root: home)
    try journal?.prepare(0, stagingIn: [])
    let busy = #expect(throws: OperationError.self) { try fixture.run(migration) }
    #expect(busy?.kind == .busy && busy?.code == .appLocked)
    journal = nil
    let interrupted = #expect(throws: OperationError.self) { try fixture.run(migration) }
    #expect(interrupted?.code == .recoveryRequired)
    #expect(interrupted?.hint?.contains("old --layout xdg' first") == true)
    #expect(throws: OperationError.self) { try migration.requireSourceWithoutOperations() }
    #expect(try fixture.newPaths().contains { $0.lastComponent == "places.sqlite" } == false)
    #expect(try fixture.run(migration, isForced: true).isComplete)
  }

  /// If the processes cannot be read, as in a chroot, any app may be running.
  @Test func unreadableProcessesAreASignOfUse() throws {
    let fixture = try MigrationFixture()
    let proc = fixture.directory.path("no-proc")
    let signs = RunningApps.signs(of: "firefox", below: [fixture.directory.path("old")], in: proc)
    #expect(signs.map(\.text) == ["firefox may be running: /proc cannot be read"])
    #expect(RunningApps.signs(of: "firefox", below: [], in: proc).isEmpty)
  }

  /// A copy without the privileges of the original is not exact. A directory keeps its group for
  /// new entries.
  @Test func bitsAndCapabilitiesThatAreNotCopiedAreNamed() throws {
    let fixture = try MigrationFixture()
    for name: ByteString in ["helper", "tool", "shared/x"] {
      try fixture.directory.write("x", at: MigrationFixture.source(name))
    }
    let place = try Directory.open(
      path: fixture.directory.path(ByteString("old").appending(MigrationFixture.profile)))
    for name: ByteString in ["helper", "shared"] {
      try place.setOwner(user: Host.userID, group: Host.groupID, of: name)
    }
    try place.setPermissions(0o4755, of: "helper")
    try place.setPermissions(0o2755, of: "shared")
    // cap_net_bind_service=ep, which only root can set.
    let capability: [UInt8] = [1, 0, 0, 2, 0, 4, 0, 0] + [UInt8](repeating: 0, count: 12)
    let isCapable =
      (try? place.attributes(of: "tool").set("security.capability", to: capability)) != nil
    // The copies get the group of the target's home directory.
    try Directory.open(path: fixture.directory.path("new")).setOwner(
      user: Host.userID, group: Host.groupID)
    let report = try fixture.run(fixture.plan())
    var remarks = Dictionary(
      uniqueKeysWithValues: report.remarks.map { ($0.path.lastComponent ?? "", $0.remark) })
    #expect(remarks.removeValue(forKey: "helper") == "its set-user-ID bit is not copied")
    if isCapable {
      let remark = remarks.removeValue(forKey: "tool")
      #expect(remark?.hasPrefix("attribute security.capability is not copied") == true)
    }
    #expect(remarks.isEmpty, "\(remarks)")
    #expect(!report.isComplete && report.failed.isEmpty)
    let copy = try Directory.open(path: fixture.directory.path(MigrationFixture.target("")))
    #expect(try copy.status("helper").permissions == 0o755)
    #expect(try copy.status("shared").permissions == 0o2755)
  }

  @Test func labelsOfTheTargetsPolicyDoNotCountAsLost() {
    for name: ByteString in [
      "security.selinux", "security.apparmor", "security.ima", "security.evm", "security.SMACK64",
      "security.SMACK64EXEC",
    ] { #expect(MigratedMetadata.treatment(of: name) == .ofTargetPolicy, "\(name)") }
    for name: ByteString in ["user.note", "system.posix_acl_access"] {
      #expect(MigratedMetadata.treatment(of: name) == .copied, "\(name)")
    }
    for name: ByteString in ["security.capability", "security.NTACL", "trusted.overlay.opaque"] {
      guard case .omitted = MigratedMetadata.treatment(of: name) else {
        Issue.record("\(name)")
        continue
      }
    }
  }

  /// Parent directories of the copies that the source does not have also belong to the user.
  @Test(.enabled(if: Host.userID == 0)) func rootGivesEverythingToTheOwnerOfTheHome() throws {
    let fixture = try MigrationFixture()
    try fixture.directory.directory.removeTree("new")
    let home = try Directory.make(path: fixture.directory.path("new"))
    try home.setOwner(user: 1234, group: 4321)
    _ = try fixture.run(fixture.plan())
    let records = try TreeRecord.all(in: fixture.directory, "new")
    #expect(records[".var/app/org.mozilla.firefox"]?.kind == .directory)
    for (path, record) in records where !path.components.contains(".sandboxctl") {
      #expect(record.user == 1234 && record.group == 4321, "\(path)")
    }
  }

  /// The user of the source gave a file of root a second name in it.
  @Test(.enabled(if: Host.userID == 0), arguments: [true, false])
  func rootGivesAwayNoPrivateFilesOfOthers(homeIsRoots: Bool) throws {
    let fixture = try MigrationFixture()
    let directory = try Directory.open(path: fixture.directory.path)
    try fixture.directory.write("secret", at: "of-root")
    try directory.setPermissions(0o600, of: "of-root")
    let names: [ByteString] = ["own", "public", "private"]
    for name in names { try fixture.directory.write("x", at: MigrationFixture.source(name)) }
    let profile = try Directory.open(
      path: fixture.directory.path(ByteString("old").appending(MigrationFixture.profile)))
    try profile.createHardLink("linked", to: "of-root", in: directory)
    for name: ByteString in ["own", "private"] { try profile.setPermissions(0o600, of: name) }
    try profile.setPermissions(0o644, of: "public")
    try profile.setOwner(user: 1001, group: 1001, of: "own")
    try profile.setOwner(user: 1001, group: 1001)
    if !homeIsRoots { try directory.setOwner(user: 1001, group: 1001, of: "old") }
    try directory.setOwner(user: 1234, group: 1234, of: "new")
    let report = try fixture.run(fixture.plan())
    #expect(Set(report.failed.map { $0.lastComponent ?? "" }) == ["linked", "private"])
    #expect(report.remarks.allSatisfy { $0.remark.hasPrefix("it belongs to another user") })
    #expect(!report.isComplete)
    let copy = try Directory.open(path: fixture.directory.path(MigrationFixture.target("")))
    for name: ByteString in ["linked", "private"] { #expect(try copy.statusIfPresent(name) == nil) }
    for name: ByteString in ["own", "public"] { #expect(try copy.status(name).user == 1234) }
  }

  /// A single file that vanished before it was copied has no step. Rolling back such a step would
  /// remove an entry that another program has created in its place.
  @Test func aRollbackKeepsEntriesOfOthers() throws {
    let directory = try TemporaryDirectory("migration")
    try directory.write("settings", at: "old/.config/kritarc")
    try directory.write("brush", at: "old/.local/share/krita/brush")
    let container: ByteString = "new/.var/app/org.kde.krita"
    _ = try Directory.make(path: directory.path(container))
    let migration = try AppMigration.make(
      makeRoute(
        "krita", from: .deb, to: "org.kde.krita", as: .flatpak,
        homes: (directory.path("old"), directory.path("new"))))
    let target = try MigrationTarget.find(for: migration)
    let scan = target.scan(
      policy: try MigrationFixture.policy(.flatpak),
      options: ScanOptions(destination: .unrestricted))
    try Directory.open(path: directory.path("old/.config")).remove("kritarc")
    try directory.write("theirs", at: container.appending("config/theirs"))
    try directory.write("theirs", at: container.appending("data/theirs"))
    var options = MigrationOperation.Options()
    options.savesFirst = false
    #expect(throws: OperationError.self) {
      try MigrationOperation(migration, to: target, scanned: scan, options, saving: nil).run()
    }
    for name: ByteString in ["config/theirs", "data/theirs"] {
      #expect(try directory.read(container.appending(name)) == Array("theirs".utf8))
    }
  }

  /// A signal interrupts the copy of a large file.
  @Test func theCopyOfAFileCanBeInterrupted() throws {
    let fixture = try MigrationFixture()
    let large = [UInt8](repeating: 1, count: 1 << 20)
    try fixture.directory.write(large, at: MigrationFixture.source("a"))
    let before = try fixture.newPaths()
    // Cloning a file is a single call.
    if try fixture.directory.directory.mayShareBlocks() { return }
    let calls = Mutex(0)
    let migration = try fixture.plan()
    let error = #expect(throws: OperationError.self) {
      // Every entry checks for a signal once, so further checks come from within the file.
      try fixture.run(migration) {
        calls.withLock { count in
          count += 1
          return count > migration.plan.moves.count
        }
      }
    }
    #expect(error?.kind == .interrupted)
    #expect(try fixture.newPaths() == before)
  }

  /// A link that does not name a directory next to it, for example on an untrusted disk, is not
  /// followed.
  @Test(arguments: ["/", "..", ".", "../.."]) func otherLinksAreNotRevisions(_ link: String) throws
  {
    let directory = try TemporaryDirectory("migration")
    try directory.write("x", at: "old/snap/firefox/common/.mozilla/a")
    try directory.write("other", at: "old/snap/other/current/secret")
    for home in ["old", "new"] {
      let snap = try Directory.make(
        path: directory.path(ByteString(home)).appending("snap/firefox"))
      try snap.createLink("current", to: ByteString(link))
    }
    let homes = (directory.path("old"), directory.path("new"))
    let route = makeRoute("firefox", from: .snap, to: "firefox", as: .host, homes: homes)
    let migration = try AppMigration.make(route)
    #expect(migration.plan.moves.map(\.destination) == [".mozilla", ".mozilla/a"])
    #expect(migration.problems.map(\.path) == ["snap/firefox/current"])
    #expect(migration.plan.withoutPlace.isEmpty)
    try directory.write("x", at: "old/.config/mozilla/b")
    let back = try AppMigration.make(
      makeRoute("firefox", from: .host, to: "firefox", as: .snap, homes: homes))
    #expect(!back.plan.moves.contains { $0.destination.components.contains("current") })
    #expect(!back.plan.conflicts.isEmpty)
  }

  /// The content of another volume is reported if it is missing.
  @Test func mountedVolumesAreNamed() throws {
    guard try Mount.isPermitted() else { return }
    let fixture = try MigrationFixture()
    defer { withExtendedLifetime(fixture) {} }
    let path = ByteString("old").appending(MigrationFixture.profile)
    let profile = try Directory.open(path: fixture.directory.path(path))
    let mount = try Mount(on: profile, at: fixture.directory.path(path), "storage")
    let problems = try fixture.plan().problems
    #expect(problems.map(\.path) == [MigrationFixture.profile.appending("storage")])
    withExtendedLifetime(mount) {}
  }
}
