import ArchiveStore
import Codecs
import DeviceDiscovery
import DeviceScan
import DeviceTransaction
import Migration
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Migrations between devices with the same containers: the source and the target.
struct DeviceMigrationTests {
  private let directory: TemporaryDirectory
  private let app: BundleIdentifier
  private let source: Device

  /// A bundle with the data of an app, and a Mac that has version 2.1 of it.
  init() throws {
    directory = try TemporaryDirectory("devices")
    app = try #require(BundleIdentifier("com.example.ledger"))
    let bundle = try #require(try NewAppDataBundle(at: directory.path("old.xcappdata")))
    try bundle.make(of: app, version: "2.1", build: nil)
    try directory.write("book", at: "old.xcappdata/AppData/Documents/book.db")
    source = try Device.find(root: directory.path("old.xcappdata"))
    try directory.write(
      """
      <plist><dict><key>CFBundleIdentifier</key><string>com.example.ledger</string>
      <key>CFBundleShortVersionString</key><string>2.1</string></dict></plist>
      """, at: "Users/you/Applications/Ledger.app/Contents/Info.plist")
    _ = try Directory.make(path: mac.appending("Library/Containers/com.example.ledger/Data"))
  }

  private var mac: ByteString { directory.path("Users/you") }

  private func target() throws -> DeviceMigrationTarget {
    try DeviceMigrationTarget(at: mac, .macOS, from: source.layout)
  }

  private func migration(to target: DeviceMigrationTarget) throws -> DeviceMigration {
    try DeviceMigration(of: [], from: source, to: target) { device in
      try MigrationFixture.policy(device.layout)
    }
  }

  private let options = ScanOptions(destination: .unrestricted)

  /// A snapshot of a version of the app.
  private func snapshot(version: String, layout: Layout = .coreSimulator) -> StoredSnapshot {
    let digest = Blake2b.hash([])
    var snapshot = Snapshot(
      repository: digest, source: digest, sequence: 1, time: Host.now(), host: "host", user: "user",
      device: DeviceRecord(
        identity: "name:a", platform: "iOS", layout: layout.rawValue, root: "/a"),
      policy: PolicyRecord(name: "ios", digest: digest), tree: TreeReference(digest),
      program: "test")
    snapshot.apps = [AppRecord(identifier: "\(app)", version: version)]
    return StoredSnapshot(id: digest, snapshot: snapshot)
  }

  @Test func theSourceIsStoredWithTheLayoutOfTheTarget() throws {
    let repository = try Repository.create(in: MemoryStorage(), program: "test")
    let migration = try migration(to: target())
    #expect(try migration.preview(options, isForced: false).map(\.copied.files) == [1])
    let expected = snapshot(version: "2.1", layout: .macOS)
    var saved: [SafetySnapshotMaker.Request] = []
    let stored = try migration.store(
      options,
      by: SafetySnapshotMaker(in: repository) { request in
        saved.append(request)
        return (expected, nil)
      })
    #expect(stored.id == expected.id)
    let request = try #require(saved.first)
    #expect(request.scan.device.layout == .macOS && request.reason == .manual)
    #expect(request.scope == .apps(["com.example.ledger"]))
    #expect(
      request.scan.containers.map(\.container.logicalPrefix) == ["apps/com.example.ledger/data"])
  }

  /// Some data of such a source may be in a staging directory.
  @Test func aSourceWithAnotherOperationIsRefused() throws {
    let migration = try migration(to: target())
    var journal: OperationJournal? = try OperationJournal(
      JournalRecord(
        operation: "restore", time: Host.now(), subjects: ["apps/com.example.ledger"],
        containers: ["apps/com.example.ledger/data"]), root: source.root)
    try journal?.prepare(0, stagingIn: [])
    let busy = #expect(throws: OperationError.self) {
      try migration.preview(options, isForced: false)
    }
    #expect(busy?.kind == .busy && busy?.code == .appLocked)
    #expect(busy?.description.hasPrefix("cannot migrate 'apps/com.example.ledger'") == true)
    journal = nil
    let interrupted = #expect(throws: OperationError.self) {
      try migration.preview(options, isForced: false)
    }
    #expect(interrupted?.code == .recoveryRequired)
    #expect(interrupted?.description.contains("was interrupted") == true)
    #expect(try migration.preview(options, isForced: true).map(\.copied.files) == [1])
  }

  @Test func aSourceThatCannotBeStoredIsNamed() throws {
    let repository = try Repository.create(in: MemoryStorage(), program: "test")
    let migration = try migration(to: target())
    let unreadable = #expect(throws: OperationError.self) {
      try migration.store(
        options,
        by: SafetySnapshotMaker(in: repository) { _ in
          throw OperationError(.failed, "the disk is broken")
        })
    }
    #expect(
      unreadable?.description
        == "cannot store the data of '\(source.root)': the disk is broken")
    #expect(unreadable?.hint == "the target is unchanged")
    let empty = #expect(throws: OperationError.self) {
      try migration.store(options, by: SafetySnapshotMaker(in: repository) { _ in (nil, nil) })
    }
    #expect(empty?.code == .nothingReadable)
  }

  @Test func aNewBundleIsRemovedIfNothingWasPutIntoIt() throws {
    let path = directory.path("new.xcappdata")
    let target = try DeviceMigrationTarget(at: path, .coreSimulator, from: source.layout)
    #expect(target.isNew)
    let migration = try migration(to: target)
    #expect(throws: OperationError.self) {
      try migration.withTarget {
        #expect(try Device.find(root: path).apps.map(\.version) == ["2.1"])
        throw OperationError(.failed, "the disk is full")
      }
    }
    #expect(try !directory.directory.names().contains("new.xcappdata"))
    try migration.withTarget {}
    #expect(try directory.directory.names().contains("new.xcappdata"))
    #expect(try !DeviceMigrationTarget(at: path, .coreSimulator, from: nil).isNew)
  }

  @Test func targetsThatCannotHaveTheDataAreRefused() throws {
    #expect(throws: OperationError.self) {
      try DeviceMigrationTarget(at: mac, .macOS, from: .flatpak)
    }
    let accepted = try target().accept(snapshot(version: "2.1"))
    #expect(accepted.snapshot.device.layout == "macos")
    #expect(throws: OperationError.self) {
      try target().accept(snapshot(version: "2.1", layout: .snap))
    }
    let bundle = try DeviceMigrationTarget(
      at: directory.path("new.xcappdata"), .coreSimulator, from: nil)
    #expect(throws: OperationError.self) { try bundle.accept(snapshot(version: "2.1")) }
  }

  @Test func dataOfANewerVersionIsRefused() throws {
    let target = try target()
    try target.refuseNewer(snapshot(version: "2.1").snapshot, of: [])
    let newer = snapshot(version: "3.0").snapshot
    let error = #expect(throws: OperationError.self) { try target.refuseNewer(newer, of: []) }
    #expect(error?.code == .downgradeRefused)
    #expect(
      error?.parts.reason
        == "the data is of version 3.0, the app in the target has version 2.1")
    try target.refuseNewer(newer, of: ["com.example.other"])
  }

  @Test func aTemporaryHomeIsADeviceOnlyOfItsUser() throws {
    let home = try TemporaryHome(for: .flatpak)
    let status = try Directory.open(path: home.side.home).status()
    #expect(status.permissions == 0o700)
    #expect(
      try Device.find(root: home.side.home.appending(".var/app")).layout == .flatpak)
    try home.remove()
    #expect((try? Directory.open(path: home.side.home)) == nil)
  }

  /// The directory of a migration in progress is not removed by another one, however old it is.
  @Test func aTemporaryHomeInUseIsKept() throws {
    let home = try TemporaryHome(for: .flatpak)
    let path = home.side.home
    try Directory.open(path: path.parent).setModified(
      Timestamp(seconds: 1_700_000_000), of: path.lastComponent ?? "")
    try TemporaryHome(for: .snap).remove()
    #expect((try? Directory.open(path: path)) != nil)
    try home.remove()
  }
}
