import ArchiveStore
import Foundation
import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// What an update makes of an app's containers, and when it refuses.
@Suite(.spreadScans) struct UpdateTests {
  private static let share = "\(UpdateFixture.app).share"
  private static let withShare = MemoryPackage(extensions: [(share, "20")], files: ["new": "new"])

  @Test func dataMovesAsItIs() throws {
    let rig = try UpdateFixture()
    let before = try rig.rig.records(rig.data.appending(UpdateFixture.old))
    let inodes = try rig.inodes(rig.data.appending(UpdateFixture.old))
    let report = try rig.run(.update, Self.withShare)
    #expect(report.isComplete && report.saved != nil)
    let device = try rig.device()
    let app = try #require(device.apps.first { $0.identifier == UpdateFixture.identifier })
    #expect(app.version == "2.0" && app.extensions.map(\.build) == ["20"])
    let names = try rig.rig.names(rig.data)
    let new = try #require(names.first)
    #expect(names.count == 1 && new != UpdateFixture.old)
    let moved = try rig.inodes(rig.data.appending(new))
    for (path, inode) in inodes
    where path != UpdateFixture.metadata && !["Documents/own", "Documents/seen"].contains(path) {
      #expect(moved[path] == inode, "\(path)")
    }
    let after = try rig.rig.records(rig.data.appending(new))
    #expect(Set(after.keys) == Set(before.keys))
    for (path, record) in before where record.kind == .file && path != UpdateFixture.metadata {
      #expect(after[path] == record, "\(path)")
    }
    #expect(
      after["Documents/own"]?.target
        == rig.rig.directory.path(rig.data).appending(new)
        .appending("Library/Caches"))
    #expect(
      after["Documents/seen"]?.target
        == ByteString("/private/var/mobile/Containers/Data/Application/\(new)/tmp"))
    #expect(after["Documents/foreign"]?.target == "/usr/share/dict")
    let metadata = try PropertyList(
      reading: rig.rig.directory.read(rig.data.appending(new).appending(UpdateFixture.metadata)))
    #expect(metadata["MCMMetadataUUID"]?.stringValue == new)
    #expect(metadata["MCMMetadataInfo"]?["kept"]?.stringValue == "yes")
    let trash = try rig.trash()
    #expect(trash["apps/org.example.one/bundle/Example.app/Example"] == "old program")
    #expect(!rig.hasStaging)
  }

  /// The plan tells each path once, with what becomes of it, and its sums are what is there.
  @Test func thePlanTellsEverything() throws {
    let rig = try UpdateFixture()
    let plan = try rig.plan(.update, Self.withShare)
    let data = try #require(plan.containers.first { $0.path == "apps/org.example.one/data" })
    #expect(data.fate == .move)
    let fates = Dictionary(
      uniqueKeysWithValues: data.paths.map { ($0.path.components.last ?? "", $0.fate) })
    #expect(fates["Documents"] == .carried && fates["Library"] == .carried)
    #expect(fates["tmp"] == .atRisk && fates["StoreKit"] == .atRisk)
    #expect(data.links.map(\.path.lastComponent) == ["own", "seen"])
    #expect(data.foreignLinks.map(\.path.lastComponent) == ["foreign"])
    let sum = data.paths.reduce(0) { $0 + $1.totals.files }
    let files = try rig.rig.records(rig.data.appending(UpdateFixture.old))
      .values.count { $0.kind == .file }
    #expect(sum == files)
    #expect(plan.notHeld.contains { $0.path.lastComponent == "tmp" })
    #expect(plan.refusals.isEmpty)
  }

  @Test func thePlanIsMadeOnlyOfWhatItIsGiven() throws {
    let rig = try UpdateFixture()
    let scan = try rig.scan()
    let request = AppChangeRequest(
      .update, of: UpdateFixture.identifier, package: Self.withShare.app, seed: [1, 2])
    let (first, second) = (AppChangePlan.make(scan, request), AppChangePlan.make(scan, request))
    #expect(first.containers.map(\.to) == second.containers.map(\.to))
    #expect(first.containers.map(\.paths) == second.containers.map(\.paths))
    #expect(first.refusals == second.refusals && first.notHeld == second.notHeld)
  }

  /// Strictly, what the platform may drop goes to the trash; directories that apps expect come back empty.
  @Test func strictlyWhatMayVanishGoes() throws {
    let rig = try UpdateFixture()
    let report = try rig.run(.update, Self.withShare) { $0.isStrict = true }
    #expect(report.isComplete)
    let home = try Directory.open(path: rig.dataDirectory())
    #expect(try home.directory("tmp").names().isEmpty)
    #expect(try home.statusIfPresent("StoreKit") == nil)
    #expect(try home.directory("Documents").names().contains("thesis.txt"))
    #expect(try home.directory("Library").directory("Caches").names() == ["img"])
    let trash = try rig.trash()
    #expect(trash["apps/org.example.one/data/tmp/upload"] == "temporary")
    #expect(trash["apps/org.example.one/data/StoreKit/receipt"] == "unknown")
  }

  /// What nobody can make again is not dropped, whatever a policy says.
  @Test func nothingPreciousIsDiscarded() throws {
    let rig = try UpdateFixture()
    try rig.run(.update, Self.withShare, [UpdatePropertyTests.greedy])
    let home = try Directory.open(path: rig.dataDirectory())
    #expect(try home.directory("Documents").names().contains("thesis.txt"))
    #expect(try home.directory("Library").directory("Caches").names().isEmpty)
    #expect(try rig.trash()["apps/org.example.one/data/Library/Caches/img/a.png"] == "picture")
  }

  /// The exchange renames as often for many files as for few, and opens none of them.
  @Test func theExchangeCostsTheSameForAnySize() throws {
    func renames(_ files: Int) throws -> Int {
      let rig = try UpdateFixture()
      let documents = try Directory.open(path: rig.dataDirectory().appending("Documents"))
      try documents.createDirectory("many")
      let many = try documents.directory("many")
      for number in 0..<files { try many.create(ByteString("\(number)")).write([1, 2, 3]) }
      let sparse = try documents.create("sparse")
      try sparse.truncate(to: 10 << 30)
      let plan = try rig.plan(.update, Self.withShare) { $0.savesFirst = false }
      let counter = Faults.Plan(failing: [.rename], at: Int.max, number: 5)
      let report = try Faults.inject(counter) { try rig.carryOut(plan, Self.withShare) }
      #expect(report.isComplete)
      return counter.count
    }
    let isThorough = Sampling.isWhole
    #expect(try renames(10) == renames(isThorough ? 100_000 : 600))
  }

  @Test func anExtensionThatIsGoneGoes() throws {
    let rig = try UpdateFixture()
    let report = try rig.run(.update, MemoryPackage())
    #expect(report.isComplete)
    #expect(try rig.rig.names("phone/Containers/Data/PluginKitPlugin").isEmpty)
    let trash = try rig.trash()
    #expect(
      trash["apps/org.example.one/extensions/org.example.one.share/data/Documents/draft"]
        == "draft")
  }

  @Test func whatForbidsItIsSaid() throws {
    let rig = try UpdateFixture()
    func codes(
      _ package: MemoryPackage, _ change: AppChange = .update,
      _ adapt: (inout AppChangeRequest) -> Void = { _ in }
    ) throws -> [Refusal.Code] {
      try rig.plan(change, package, [], adapt).refusals.map(\.code)
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
    let error = #expect(throws: LifecycleError.self) {
      try rig.run(.update, MemoryPackage(version: "0.9"))
    }
    #expect(error?.description.contains("version 0.9 (20)") ?? false)
    #expect(error?.hint?.contains("--allow-downgrade") ?? false)
  }

  @Test func anAppThatRunsIsLeftAlone() throws {
    let rig = try UpdateFixture()
    let before = try rig.records()
    let file = try rig.dataDirectory().appending("Documents/thesis.txt")
    let sleeper = try Program.start("sleep", ["600"], standardInput: file)
    defer { sleeper.end() }
    let error = #expect(throws: LifecycleError.self) {
      try rig.run(.update, Self.withShare) { $0.isForced = false }
    }
    #expect(error?.description.contains("sleep") ?? false, "\(String(describing: error))")
    #expect(try rig.records() == before)
  }

  @Test func withoutARepositoryItIsRefused() throws {
    let rig = try UpdateFixture()
    let plan = try rig.plan(.update, Self.withShare)
    var source = Self.withShare
    let error = #expect(throws: LifecycleError.self) {
      try AppChangeOperation(plan, saving: rig.request, to: nil).run(&source)
    }
    #expect(error?.hint?.contains("--no-snapshot") ?? false)
    let bare = try rig.plan(.update, Self.withShare) { $0.savesFirst = false }
    source = Self.withShare
    let report = try AppChangeOperation(bare, saving: rig.request, to: nil).run(&source)
    #expect(report.saved == nil && report.isComplete)
  }

  /// The snapshot before it holds the app as it was, and the next backup opens no file that moved.
  @Test func theNextBackupOpensNothingThatMoved() throws {
    let rig = try UpdateFixture()
    _ = try rig.backup()
    #expect(try rig.backup().opened == 0)
    let report = try rig.run(.update, Self.withShare)
    let saved = try #require(report.saved)
    #expect(
      saved.snapshot.reason == .preUpdate && saved.snapshot.scope == .apps([UpdateFixture.app]))
    let next = try rig.backup()
    // The new bundle's files and the metadata of its container and of those that moved.
    #expect(next.opened == 3 + 3, "\(next.opened)")
    #expect(try rig.backup().opened == 0)
  }

  /// What a helper writes between plan and exchange is not lost: it goes along, or lies in the trash
  /// and is told.
  @Test func whatComesMeanwhileIsKept() throws {
    let rig = try UpdateFixture()
    let plan = try rig.plan(.update, MemoryPackage()) { $0.isStrict = true }
    try rig.write("late", "Documents/late")
    try rig.write("late top", "Fresh/late")
    try rig.write("late tmp", "tmp/late")
    try rig.put(
      "late draft",
      ByteString("phone/Containers/Data/PluginKitPlugin").appending(UpdateFixture.plugIn)
        .appending("Documents/late"))
    let report = try rig.carryOut(plan, MemoryPackage())
    #expect(!report.isComplete)
    #expect(
      report.unplanned.map(\.path) == [
        "apps/org.example.one/data/tmp/late",
        "apps/org.example.one/extensions/org.example.one.share/data/Documents/late",
      ])
    let home = try Directory.open(path: rig.dataDirectory())
    #expect(try home.directory("Documents").statusIfPresent("late") != nil)
    #expect(try home.directory("Fresh").statusIfPresent("late") != nil)
    #expect(try rig.trash()["apps/org.example.one/data/tmp/late"] == "late tmp")
  }

  /// Data that was restored before its app comes with the app.
  @Test func whatWaitedIsAdopted() throws {
    let rig = try UpdateFixture(isInstalled: false)
    let harbor: ByteString = "phone/.sandboxctl/safe-harbor/apps/org.example.one"
    try rig.put("waited", harbor.appending("data/Documents/thesis"))
    try rig.put(
      "draft", harbor.appending("extensions/org.example.one.share/data/Documents/draft"))
    #expect(SafeHarbor.all(on: try rig.device()).map(\.app) == ["org.example.one"])
    let report = try rig.run(.install, Self.withShare)
    #expect(report.isComplete && report.saved == nil)
    let device = try rig.device()
    #expect(SafeHarbor.all(on: device).isEmpty)
    #expect(device.apps.map(\.isInstalled) == [true])
    #expect(
      device.containers.map(\.logicalPrefix) == [
        "apps/org.example.one/bundle", "apps/org.example.one/data",
        "apps/org.example.one/extensions/org.example.one.share/data",
      ])
    let home = try Directory.open(path: rig.dataDirectory())
    #expect(try home.directory("Documents").names() == ["thesis"])
  }

  /// What waits for a container that is there already goes on waiting, which is said.
  @Test func whatWaitsBesideDataStays() throws {
    let rig = try UpdateFixture()
    let harbor: ByteString = "phone/.sandboxctl/safe-harbor/apps/org.example.one/data"
    try rig.put("waited", harbor.appending("Documents/thesis.txt"))
    let plan = try rig.plan(.update, Self.withShare)
    #expect(plan.notes.map(\.path) == ["apps/org.example.one/data"])
    #expect(plan.notes.allSatisfy { $0.remark.contains("safe-harbor") })
    #expect(try rig.carryOut(plan, Self.withShare).isComplete)
    #expect(try rig.rig.text(harbor.appending("Documents/thesis.txt")) == "waited")
    let home = try rig.dataDirectory().appending("Documents")
    #expect(try Directory.open(path: home).file("thesis.txt").status().size == 8)
  }

  @Test func aFirstInstallMakesTheContainers() throws {
    let rig = try UpdateFixture(isInstalled: false)
    let report = try rig.run(.install, MemoryPackage(groups: ["group.one"]))
    #expect(report.isComplete && report.trash == nil)
    let device = try rig.device()
    #expect(
      device.containers.map(\.logicalPrefix) == [
        "apps/org.example.one/bundle", "apps/org.example.one/data", "groups/group.one",
      ])
    let home = try Directory.open(path: rig.dataDirectory())
    #expect(try home.names() == [UpdateFixture.metadata, "Documents", "Library", "tmp"])
    #expect(!rig.hasStaging)
  }
}

extension UpdateFixture {
  func inodes(_ path: ByteString) throws -> [ByteString: UInt64] {
    var found: [ByteString: UInt64] = [:]
    for name in try rig.records(path).keys {
      let whole = rig.directory.path(path).appending(name)
      found[name] =
        try Directory.open(path: whole.above(in: "/")).status(whole.lastComponent ?? "").identity
        .inode
    }
    return found
  }

  func backup() throws -> BackupReport {
    let device = try device()
    let scan = DeviceScan.run(
      device, policy: try PurgeFixture.policy(),
      options: ScanOptions(destination: Destination(isUnencrypted: true)))
    return try BackupOperation(BackupPlan.make(scan), to: rig.repository, request).run()
  }

  /// Whether something is left that was staged.
  var hasStaging: Bool {
    guard let all = try? rig.records("phone") else { return true }
    return all.keys.contains { path in
      path.components.contains { $0.description.hasPrefix(".sandboxctl-restore-") }
    }
  }
}
