import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceScan
import DeviceTransaction
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppPackages
@testable import AppUpdate

/// Installation and update on a platform that leaves the data in place: the home directory of a
/// macOS user.
@Suite(.spreadScans) struct UpdateMacOSTests {
  private let fixture: Fixture
  private static let app = UpdateFixture.app
  private static let policy = Result { try Fixture.policy(.macOS) }

  init() throws {
    fixture = try Fixture(inMemory: true)
    for location: ByteString in ["home/Applications", "home/Library/Containers"] {
      _ = try Directory.make(path: fixture.directory.path(location))
    }
  }

  private func plan(_ change: AppChange, _ package: MemoryPackage) throws -> AppChangePlan {
    let device = try Device.find(root: fixture.directory.path("home"), layout: .macOS)
    let scan = DeviceScan.run(device, policy: try Self.policy.get()) {
      AppChangePlan.isConcerned($0, by: UpdateFixture.identifier, on: device)
    }
    var request = AppChangeRequest(change, of: UpdateFixture.identifier, package: package.app)
    request.isForced = true
    return AppChangePlan.make(scan, request)
  }

  private func run(_ change: AppChange, _ package: MemoryPackage) throws -> AppChangeReport {
    var source = package
    return try AppChangeOperation(
      plan(change, package),
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository)
    ).run(&source)
  }

  private func package(
    _ version: String, migration: ContainerMigration? = nil
  ) -> MemoryPackage {
    MemoryPackage(
      version: version, build: "1", shape: .contents, migration: migration,
      files: ["Contents/MacOS/Example": "program \(version)"])
  }

  @Test func theBundleIsReplacedAndTheDataStays() throws {
    let data: ByteString = "home/Library/Containers/org.example.one/Data"
    try fixture.directory.write("thesis", at: data.appending("Documents/thesis"))
    try fixture.directory.write("scratch", at: data.appending("tmp/scratch"))
    #expect(try run(.install, package("1.0")).isComplete)
    let before = try fixture.records(data)
    let report = try run(.update, package("2.0"))
    #expect(report.isComplete)
    #expect(try fixture.records(data) == before)
    #expect(
      try fixture.text("home/Applications/Example.app/Contents/MacOS/Example") == "program 2.0")
    let trash = ByteString("home/.sandboxctl/trash").appending(ByteString(report.trash ?? ""))
    #expect(
      try fixture.text(
        trash.appending("apps/org.example.one/bundle/Example.app/Contents/MacOS/Example"))
        == "program 1.0")
    #expect(try fixture.names("home/Applications") == ["Example.app"])
  }

  /// A bundle belongs to an app of the device once the app has a container.
  @Test func aBundleWithoutDataIsNotReplaced() throws {
    #expect(try run(.install, package("1.0")).isComplete)
    let refusals = try plan(.install, package("2.0")).refusals
    #expect(refusals.map(\.code) == [.location])
    #expect(refusals.first?.reason.contains("belongs to no app that has data") == true)
    #expect(refusals.first?.hint?.contains("start this app once") == true)
  }

  /// Paths in an app's migration list are moved into the container when it is created, and only
  /// then.
  @Test func aMigrationIsPerformedOnce() throws {
    let support: ByteString = "home/Library/Application Support/Example"
    try fixture.directory.write("library", at: support.appending("db"))
    try fixture.directory.write("kept outside", at: "home/Pictures/a")
    let migration = ContainerMigration(
      moves: [
        .init(
          source: "Library/Application Support/Example",
          destination: "Library/Application Support/Example"),
        .init(source: "Library/Nothing", destination: "Library/Nothing"),
        .init(source: "Pictures", destination: "Documents"),
      ], links: ["Pictures"])
    let first = try plan(.install, package("1.0", migration: migration))
    let data = try #require(first.containers.first { $0.logical.kind == .data })
    #expect(data.action == .make && data.moves.count == 1 && data.notMoved.count == 1)
    #expect(try run(.install, package("1.0", migration: migration)).isComplete)
    let home: ByteString = "home/Library/Containers/org.example.one/Data"
    #expect(try fixture.text(home.appending("Library/Application Support/Example/db")) == "library")
    #expect(try fixture.records("home/Library")["Application Support/Example"] == nil)
    #expect(
      try fixture.records(home)["Pictures"]?.target == fixture.directory.path("home/Pictures"))
    #expect(try fixture.text("home/Pictures/a") == "kept outside")
    try fixture.directory.write("again", at: support.appending("db"))
    #expect(try run(.update, package("2.0", migration: migration)).isComplete)
    #expect(try fixture.text(support.appending("db")) == "again")
    #expect(try fixture.text(home.appending("Library/Application Support/Example/db")) == "library")
  }

  /// A list can name a database by itself.
  @Test func aDatabaseMovesWithItsLog() throws {
    let old: ByteString = "home/Library/Application Support"
    for name: ByteString in ["notes.db", "notes.db-wal", "notes.db-shm", "other"] {
      try fixture.directory.write("old", at: old.appending(name))
    }
    let migration = ContainerMigration(
      moves: [
        .init(
          source: "Library/Application Support/notes.db",
          destination: "Library/Application Support/new.db")
      ], links: [])
    #expect(try run(.install, package("1.0", migration: migration)).isComplete)
    let new: ByteString =
      "home/Library/Containers/org.example.one/Data/Library/Application Support"
    #expect(try fixture.names(new).sorted() == ["new.db", "new.db-wal"])
    #expect(try fixture.names(old).sorted() == ["notes.db-shm", "other"])
  }

  /// In a rollback, the old bundle replaces the new one, in the directory that it shares with
  /// others; the data stays in its directory, in the chosen state.
  @Test(arguments: AppChangeRequest.DataChoice.allCases) func aRollbackRestoresTheBundle(
    _ choice: AppChangeRequest.DataChoice
  ) throws {
    let data: ByteString = "home/Library/Containers/org.example.one/Data"
    try fixture.directory.write("a thesis", at: data.appending("Documents/thesis"))
    try fixture.directory.write("a note", at: data.appending("Documents/note"))
    try fixture.directory.write("other", at: "home/Applications/Other.app/Contents/MacOS/Other")
    #expect(try run(.install, package("1.0")).isComplete)
    let bundle = try fixture.records("home/Applications/Example.app")
    #expect(try run(.update, package("2.0")).isComplete)
    let documents = try Directory.open(path: fixture.directory.path(data).appending("Documents"))
    for name: ByteString in ["note", "thesis"] { try documents.remove(name) }
    for (name, text) in ["thesis": "rewritten", "chapter": "new chapter"] {
      try documents.create(ByteString(name)).write(Array(text.utf8))
    }
    let now = try fixture.records("home")
    #expect(try rollbackPlan(nil).refusals.map(\.code) == [.newerData])
    #expect(throws: OperationError.self) { try rollback(nil) }
    #expect(
      try fixture.records("home").filter { !$0.key.isWithin(".sandboxctl") }
        == now.filter { !$0.key.isWithin(".sandboxctl") })
    let report = try rollback(choice)
    #expect(report.isComplete, "\(report.failed) \(report.lateChanges)")
    #expect(try fixture.records("home/Applications/Example.app") == bundle)
    #expect(try fixture.text("home/Applications/Other.app/Contents/MacOS/Other") == "other")
    #expect(try fixture.names("home/Applications").sorted() == ["Example.app", "Other.app"])
    let files = ["thesis", "note", "chapter"].map {
      try? fixture.text(data.appending("Documents").appending(ByteString($0)))
    }
    switch choice {
    case .before: #expect(files == ["a thesis", "a note", nil])
    case .now: #expect(files == ["rewritten", nil, "new chapter"])
    case .merge: #expect(files == ["rewritten", "a note", "new chapter"])
    }
    let trash = try fixture.records(
      ByteString("home/.sandboxctl/trash").appending(ByteString(report.trash ?? "none")))
    let kept = Set(trash.keys.compactMap { $0.lastComponent })
    #expect(kept.contains("Example"), "the replaced program")
    #expect(kept.contains("chapter") == (choice == .before))
  }

  private func rollbackPlan(_ choice: AppChangeRequest.DataChoice?) throws -> AppChangePlan {
    let device = try Device.find(root: fixture.directory.path("home"), layout: .macOS)
    let scan = DeviceScan.run(device, policy: try Self.policy.get()) {
      AppChangePlan.isConcerned($0, by: UpdateFixture.identifier, on: device)
    }
    var request = AppChangeRequest(.rollback, of: UpdateFixture.identifier)
    (request.isForced, request.data) = (true, choice)
    let before = AppChangePlan.stateBefore(
      UpdateFixture.identifier, on: device, among: try fixture.repository.snapshots().snapshots)
    return try AppChangePlan.rollback(
      scan, request, to: before, from: fixture.repository.beginReading())
  }

  private func rollback(_ choice: AppChangeRequest.DataChoice?) throws -> AppChangeReport {
    try AppChangeOperation(
      rollbackPlan(choice),
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository),
      from: fixture.repository.beginReading()
    ).run()
  }

  /// For Flatpak and snap, the plan only names the platform's command.
  @Test func appsOfOtherPackageManagersAreRefused() throws {
    try fixture.directory.write("note", at: "user/.var/app/org.example.one/data/note")
    let device = try DeviceFinder(
      layout: .flatpak, machineID: "m", userFlatpak: nil, systemFlatpak: nil
    ).find(fixture.directory.path("user/.var/app"))
    let scan = DeviceScan.run(device, policy: try Fixture.policy(.flatpak))
    let plan = AppChangePlan.make(
      scan, AppChangeRequest(.update, of: UpdateFixture.identifier))
    #expect(plan.isSimulated && plan.refusals.isEmpty)
    #expect(plan.commands == ["flatpak update --user org.example.one"])
    #expect(plan.containers.map(\.action) == [.keep])
    #expect(plan.totals(.carried).map(\.totals.files) == [1])
    let error = #expect(throws: OperationError.self) {
      try AppChangeOperation(plan, saving: nil).run()
    }
    #expect(error?.hint?.contains("flatpak update") ?? false)
  }
}
