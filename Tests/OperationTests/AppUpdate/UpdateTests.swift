import AppUpdate
import ArchiveStore
import Codecs
import DeviceDiscovery
import DeviceScan
import DeviceTransaction
import Foundation
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// How an update changes an app's containers, and when it refuses.
@Suite(.spreadScans) struct UpdateTests {
  private static let share = "\(UpdateFixture.app).share"
  private static let withShare = MemoryPackage(extensions: [(share, "20")], files: ["new": "new"])

  @Test func dataIsMovedUnchanged() throws {
    let fixture = try UpdateFixture()
    let before = try fixture.base.records(fixture.data.appending(UpdateFixture.old))
    let inodes = try fixture.inodes(fixture.data.appending(UpdateFixture.old))
    let report = try fixture.run(.update, Self.withShare)
    #expect(report.isComplete && report.saved != nil)
    let device = try fixture.device()
    let app = try #require(device.apps.first { $0.identifier == UpdateFixture.identifier })
    #expect(app.version == "2.0" && app.extensions.map(\.build) == ["20"])
    let names = try fixture.base.names(fixture.data)
    let new = try #require(names.first)
    #expect(names.count == 1 && new != UpdateFixture.old)
    let moved = try fixture.inodes(fixture.data.appending(new))
    for (path, inode) in inodes
    where path != UpdateFixture.metadata && !["Documents/own", "Documents/seen"].contains(path) {
      #expect(moved[path] == inode, "\(path)")
    }
    let after = try fixture.base.records(fixture.data.appending(new))
    #expect(Set(after.keys) == Set(before.keys))
    for (path, record) in before where record.kind == .file && path != UpdateFixture.metadata {
      #expect(after[path] == record, "\(path)")
    }
    #expect(
      after["Documents/own"]?.target
        == fixture.base.directory.path(fixture.data).appending(new)
        .appending("Library/Caches"))
    #expect(
      after["Documents/seen"]?.target
        == ByteString("/private/var/mobile/Containers/Data/Application/\(new)/tmp"))
    #expect(after["Documents/foreign"]?.target == "/usr/share/dict")
    let metadata = try PropertyList(
      reading: fixture.base.directory.read(
        fixture.data.appending(new).appending(UpdateFixture.metadata)))
    #expect(metadata["MCMMetadataUUID"]?.stringValue == new.utf8)
    #expect(metadata["MCMMetadataInfo"]?["kept"]?.stringValue == "yes")
    let trash = try fixture.trash()
    #expect(trash["apps/org.example.one/bundle/Example.app/Example"] == "old program")
    #expect(!fixture.hasStaging)
  }

  /// The plan lists each path once, with its outcome, and its totals match the device.
  @Test func thePlanListsEveryPath() throws {
    let fixture = try UpdateFixture()
    let plan = try fixture.plan(.update, Self.withShare)
    let data = try #require(plan.containers.first { $0.path == "apps/org.example.one/data" })
    #expect(data.action == .move)
    let outcomes = Dictionary(
      uniqueKeysWithValues: data.paths.map { ($0.path.components.last ?? "", $0.outcome) })
    #expect(outcomes["Documents"] == .carried && outcomes["Library"] == .carried)
    #expect(outcomes["tmp"] == .atRisk && outcomes["StoreKit"] == .atRisk)
    #expect(data.links.map(\.path.lastComponent) == ["own", "seen"])
    #expect(data.foreignLinks.map(\.path.lastComponent) == ["foreign"])
    let sum = data.paths.reduce(0) { $0 + $1.totals.files }
    let files = try fixture.base.records(fixture.data.appending(UpdateFixture.old))
      .values.count { $0.kind == .file }
    #expect(sum == files)
    #expect(plan.excludedData.contains { $0.path.lastComponent == "tmp" })
    #expect(plan.refusals.isEmpty)
  }

  @Test func thePlanDependsOnlyOnItsInput() throws {
    let fixture = try UpdateFixture()
    let scan = try fixture.scan()
    let request = AppChangeRequest(
      .update, of: UpdateFixture.identifier, package: Self.withShare.app, seed: [1, 2])
    let (first, second) = (AppChangePlan.make(scan, request), AppChangePlan.make(scan, request))
    #expect(first.containers.map(\.to) == second.containers.map(\.to))
    #expect(first.containers.map(\.paths) == second.containers.map(\.paths))
    #expect(first.refusals == second.refusals && first.excludedData == second.excludedData)
  }

  /// In a strict update, data that the platform may discard goes to the trash; directories that
  /// apps expect are created empty.
  @Test func aStrictUpdateDiscardsCachesAndTemporaryFiles() throws {
    let fixture = try UpdateFixture()
    let report = try fixture.run(.update, Self.withShare) { $0.isStrict = true }
    #expect(report.isComplete)
    let home = try Directory.open(path: fixture.dataDirectory())
    #expect(try home.directory("tmp").names().isEmpty)
    #expect(try home.statusIfPresent("StoreKit") == nil)
    #expect(try home.directory("Documents").names().contains("thesis.txt"))
    #expect(try home.directory("Library").directory("Caches").names() == ["img"])
    let trash = try fixture.trash()
    #expect(trash["apps/org.example.one/data/tmp/upload"] == "temporary")
    #expect(trash["apps/org.example.one/data/StoreKit/receipt"] == "unknown")
  }

  /// Data that cannot be regenerated is not discarded, whatever a policy says.
  @Test func preciousDataIsNotDiscarded() throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, Self.withShare, [UpdatePropertyTests.greedy])
    let home = try Directory.open(path: fixture.dataDirectory())
    #expect(try home.directory("Documents").names().contains("thesis.txt"))
    #expect(try home.directory("Library").directory("Caches").names().isEmpty)
    #expect(try fixture.trash()["apps/org.example.one/data/Library/Caches/img/a.png"] == "picture")
  }

  /// The exchange needs the same number of renames for many files as for few, and opens none of
  /// them.
  @Test func theExchangeDoesNotDependOnTheNumberOfFiles() throws {
    func renames(_ files: Int) throws -> Int {
      let fixture = try UpdateFixture()
      let documents = try Directory.open(path: fixture.dataDirectory().appending("Documents"))
      try documents.createDirectory("many")
      let many = try documents.directory("many")
      for number in 0..<files { try many.create(ByteString("\(number)")).write([1, 2, 3]) }
      let sparse = try documents.create("sparse")
      try sparse.truncate(to: 10 << 30)
      let plan = try fixture.plan(.update, Self.withShare) { $0.savesFirst = false }
      let counter = Faults.Plan(failing: [.rename], at: Int.max, number: 5)
      let report = try Faults.inject(counter) { try fixture.carryOut(plan, Self.withShare) }
      #expect(report.isComplete)
      return counter.count
    }
    let isThorough = Sampling.isWhole
    #expect(try renames(10) == renames(isThorough ? 100_000 : 600))
  }

  @Test func anExtensionMissingFromThePackageIsRemoved() throws {
    let fixture = try UpdateFixture()
    let report = try fixture.run(.update, MemoryPackage())
    #expect(report.isComplete)
    #expect(try fixture.base.names("phone/Containers/Data/PluginKitPlugin").isEmpty)
    let trash = try fixture.trash()
    #expect(
      trash["apps/org.example.one/extensions/org.example.one.share/data/Documents/draft"]
        == "draft")
  }

  @Test func refusalsAreReported() throws {
    let fixture = try UpdateFixture()
    func codes(
      _ package: MemoryPackage, _ change: AppChange = .update,
      _ adapt: (inout AppChangeRequest) -> Void = { _ in }
    ) throws -> [AppChangePlan.Refusal.Code] {
      try fixture.plan(change, package, [], adapt).refusals.map(\.code)
    }
    #expect(try codes(MemoryPackage(version: "0.9")) == [.downgrade])
    #expect(try codes(MemoryPackage(version: "1.0", build: "9")) == [.downgrade])
    #expect(try codes(MemoryPackage(version: "1.0", build: "10")).isEmpty)
    #expect(try codes(MemoryPackage(version: "1.0.0.1", build: "1")).isEmpty)
    #expect(try codes(MemoryPackage(version: "10.0")).isEmpty)
    #expect(try codes(MemoryPackage(version: "0.9")) { $0.allowsDowngrade = true } == [])
    #expect(try codes(MemoryPackage(extensions: [(Self.share, "19")])) == [.extensions])
    #expect(try codes(MemoryPackage("org.other")) == [.wrongPackage])
    #expect(try codes(MemoryPackage(shape: .contents)) == [.wrongPackage])
    #expect(try codes(MemoryPackage(), .install) == [.installed])
    let error = #expect(throws: OperationError.self) {
      try fixture.run(.update, MemoryPackage(version: "0.9"))
    }
    #expect(error?.description.contains("version 0.9 (20)") ?? false)
    #expect(error?.hint?.contains("--allow-downgrade") ?? false)
  }

  @Test func aRunningAppIsNotUpdated() throws {
    let fixture = try UpdateFixture()
    let before = try fixture.records()
    let file = try fixture.dataDirectory().appending("Documents/thesis.txt")
    let sleeper = try Program.start("sleep", ["600"], standardInput: file)
    defer { sleeper.end() }
    let error = #expect(throws: OperationError.self) {
      try fixture.run(.update, Self.withShare) { $0.isForced = false }
    }
    #expect(error?.description.contains("sleep") ?? false, "\(String(describing: error))")
    #expect(try fixture.records() == before)
  }

  @Test func withoutARepositoryAnUpdateIsRefused() throws {
    let fixture = try UpdateFixture()
    let plan = try fixture.plan(.update, Self.withShare)
    var source = Self.withShare
    let error = #expect(throws: OperationError.self) {
      try AppChangeOperation(plan, saving: nil).run(&source)
    }
    #expect(error?.hint?.contains("--no-snapshot") ?? false)
    let bare = try fixture.plan(.update, Self.withShare) { $0.savesFirst = false }
    source = Self.withShare
    let report = try AppChangeOperation(bare, saving: nil).run(&source)
    #expect(report.saved == nil && report.isComplete)
  }

  /// The snapshot before the update has the old app, and the next backup opens no moved file.
  @Test func theNextBackupOpensNoMovedFile() throws {
    let fixture = try UpdateFixture()
    _ = try fixture.backup()
    #expect(try fixture.backup().opened == 0)
    let report = try fixture.run(.update, Self.withShare)
    let saved = try #require(report.saved)
    #expect(
      saved.snapshot.reason == .preUpdate && saved.snapshot.scope == .apps([UpdateFixture.app]))
    let next = try fixture.backup()
    // The new bundle's files, and the metadata of its container and of the moved ones.
    #expect(next.opened == 3 + 3, "\(next.opened)")
    #expect(try fixture.backup().opened == 0)
  }

  /// A file that a helper process writes between the plan and the exchange is not lost: it is moved
  /// along, or is in the trash and reported.
  @Test func filesWrittenMeanwhileAreKept() throws {
    let fixture = try UpdateFixture()
    try fixture.write("of no class", "loose")
    let plan = try fixture.plan(.update, MemoryPackage()) { $0.isStrict = true }
    try fixture.write("late change", "loose")
    try fixture.write("late", "Documents/late")
    try fixture.write("late top", "Fresh/late")
    try fixture.write("late tmp", "tmp/late")
    try fixture.put(
      "late draft",
      ByteString("phone/Containers/Data/PluginKitPlugin").appending(UpdateFixture.plugIn)
        .appending("Documents/late"))
    let report = try fixture.carryOut(plan, MemoryPackage())
    #expect(!report.isComplete)
    #expect(
      report.lateChanges.map(\.path) == [
        "apps/org.example.one/data/loose",
        "apps/org.example.one/data/tmp/late",
        "apps/org.example.one/extensions/org.example.one.share/data/Documents/late",
      ])
    let home = try Directory.open(path: fixture.dataDirectory())
    #expect(try home.directory("Documents").statusIfPresent("late") != nil)
    #expect(try home.directory("Fresh").statusIfPresent("late") != nil)
    #expect(try fixture.trash()["apps/org.example.one/data/tmp/late"] == "late tmp")
  }

  /// Data that was restored before its app was installed is moved into the app's container.
  @Test func dataInTheSafeHarborIsAdopted() throws {
    let fixture = try UpdateFixture(isInstalled: false)
    let harbor: ByteString = "phone/.sandboxctl/safe-harbor/apps/org.example.one"
    try fixture.put("waited", harbor.appending("data/Documents/thesis"))
    try fixture.put(
      "draft", harbor.appending("extensions/org.example.one.share/data/Documents/draft"))
    #expect(SafeHarbor.all(on: try fixture.device()).map(\.app) == ["org.example.one"])
    let report = try fixture.run(.install, Self.withShare)
    #expect(report.isComplete && report.saved == nil)
    let device = try fixture.device()
    #expect(SafeHarbor.all(on: device).isEmpty)
    #expect(device.apps.map(\.isInstalled) == [true])
    #expect(
      device.containers.map(\.logicalPrefix) == [
        "apps/org.example.one/bundle", "apps/org.example.one/data",
        "apps/org.example.one/extensions/org.example.one.share/data",
      ])
    let home = try Directory.open(path: fixture.dataDirectory())
    #expect(try home.directory("Documents").names() == ["thesis"])
  }

  /// No empty container is created in place of a saved one that cannot be opened: it would never
  /// be attached.
  @Test func savedDataThatCannotBeOpenedRefusesAnInstallation() throws {
    let fixture = try UpdateFixture(isInstalled: false)
    try fixture.put("waited", "elsewhere/Documents/thesis")
    let saved = try Directory.make(
      path: fixture.root.appending(".sandboxctl/safe-harbor/apps/org.example.one"))
    try saved.createLink("data", to: fixture.base.directory.path("elsewhere"))
    let plan = try fixture.plan(.install, MemoryPackage())
    #expect(plan.refusals.map(\.code) == [.location])
    let reason = try #require(plan.refusals.first?.reason)
    #expect(reason.contains("safe-harbor/apps/org.example.one/data' cannot be opened"), "\(reason)")
    try saved.remove("data")
    #expect(try fixture.plan(.install, MemoryPackage()).refusals.isEmpty)
  }

  /// Data in the safe harbor for an existing container stays there, which is reported.
  @Test func dataInTheSafeHarborStaysBesideExistingData() throws {
    let fixture = try UpdateFixture()
    let harbor: ByteString = "phone/.sandboxctl/safe-harbor/apps/org.example.one/data"
    try fixture.put("waited", harbor.appending("Documents/thesis.txt"))
    let plan = try fixture.plan(.update, Self.withShare)
    #expect(plan.notes.map(\.path) == ["apps/org.example.one/data"])
    #expect(plan.notes.allSatisfy { $0.remark.contains("safe-harbor") })
    #expect(try fixture.carryOut(plan, Self.withShare).isComplete)
    #expect(try fixture.base.text(harbor.appending("Documents/thesis.txt")) == "waited")
    let home = try fixture.dataDirectory().appending("Documents")
    #expect(try Directory.open(path: home).file("thesis.txt").status().size == 8)
  }

  @Test func aFirstInstallationCreatesTheContainers() throws {
    let fixture = try UpdateFixture(isInstalled: false)
    let report = try fixture.run(.install, MemoryPackage(groups: ["group.one"]))
    #expect(report.isComplete && report.trash == nil)
    let device = try fixture.device()
    #expect(
      device.containers.map(\.logicalPrefix) == [
        "apps/org.example.one/bundle", "apps/org.example.one/data", "groups/group.one",
      ])
    let home = try Directory.open(path: fixture.dataDirectory())
    #expect(try home.names() == [UpdateFixture.metadata, "Documents", "Library", "tmp"])
    #expect(!fixture.hasStaging)
  }
}

extension UpdateFixture {
  func inodes(_ path: ByteString) throws -> [ByteString: UInt64] {
    var found: [ByteString: UInt64] = [:]
    for name in try base.records(path).keys {
      let whole = base.directory.path(path).appending(name)
      found[name] =
        try Directory.open(path: whole.parent).status(whole.lastComponent ?? "").identity
        .inode
    }
    return found
  }

  func backup() throws -> BackupReport {
    let device = try device()
    let scan = DeviceScan.run(
      device, policy: try PurgeFixture.policy(),
      options: ScanOptions(destination: Destination(isUnencrypted: true)))
    return try BackupOperation(BackupPlan.make(scan), to: base.repository, request).run()
  }

  /// Whether staged files remain.
  var hasStaging: Bool {
    guard let all = try? base.records("phone") else { return true }
    return all.keys.contains { path in
      path.components.contains { $0.description.hasPrefix(".sandboxctl-restore-") }
    }
  }
}
