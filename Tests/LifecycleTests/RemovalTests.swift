import ArchiveStore
import Foundation
import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// What offload, reinstall and uninstall make of an app's containers, and when they refuse.
@Suite(.spreadScans) struct RemovalTests {
  private static let group = "group.org.example.shared"
  private static let app = UpdateFixture.app
  private static let two = "org.example.two"

  private func run(
    _ rig: UpdateFixture, _ change: AppChange, _ package: MemoryPackage? = nil,
    _ adapt: (inout AppChangeRequest) -> Void = { _ in }
  ) throws -> AppChangeReport {
    try rig.carryOut(rig.plan(change, package, [], adapt), package ?? MemoryPackage())
  }

  /// What lies in the containers of a kind, but for the metadata that names their directories.
  private func files(
    _ rig: UpdateFixture, _ kinds: Set<ContainerKind>
  ) throws -> [ByteString: TreeRecord] {
    var found: [ByteString: TreeRecord] = [:]
    for container in try rig.device().containers where kinds.contains(container.kind) {
      let inner = ByteString(
        container.absolutePath.bytes.dropFirst(rig.rig.directory.path.count + 1))
      for (path, record) in try rig.rig.records(inner) {
        found[container.logicalPrefix.appending(path)] = record
      }
    }
    return found
  }

  @Test func offloadKeepsTheData() throws {
    let rig = try UpdateFixture()
    let before = try files(rig, [.data, .extension, .group])
    let inodes = try rig.inodes(rig.data.appending(UpdateFixture.old))
    let report = try run(rig, .offload)
    #expect(report.isComplete && report.saved != nil && report.written == PackageSize())
    let app = try #require(
      try rig.device().apps.first { $0.identifier == UpdateFixture.identifier })
    #expect(!app.isInstalled)
    #expect(try files(rig, [.data, .extension, .group]) == before)
    #expect(try rig.inodes(rig.data.appending(UpdateFixture.old)) == inodes)
    #expect(try rig.trash()["apps/org.example.one/bundle/Example.app/Example"] == "old program")
    #expect(!rig.hasStaging)
  }

  /// Offloaded and reinstalled is where it was: data, extension and links untouched.
  @Test func reinstallPutsTheBundleBack() throws {
    let rig = try UpdateFixture()
    let before = try files(rig, [.data, .extension, .group])
    _ = try run(rig, .offload)
    let package = MemoryPackage(extensions: [("\(Self.app).share", "20")])
    // Nothing goes, so nothing has to be saved, with or without a repository.
    let report = try run(rig, .reinstall, package)
    #expect(report.isComplete && report.saved == nil && report.written == package.app.size)
    #expect(try files(rig, [.data, .extension, .group]) == before)
    let app = try #require(
      try rig.device().apps.first { $0.identifier == UpdateFixture.identifier })
    #expect(app.isInstalled && app.version == "2.0")
  }

  @Test func uninstallTakesAppAndExtensions() throws {
    let rig = try UpdateFixture()
    let report = try run(rig, .uninstall)
    #expect(report.isComplete && report.saved != nil)
    #expect(try rig.device().containers.isEmpty)
    #expect(try rig.device().apps.isEmpty)
    let trash = try rig.trash()
    #expect(trash["apps/org.example.one/data/Documents/thesis.txt"] == "a thesis")
    #expect(trash["apps/org.example.one/bundle/Example.app/Example"] == "old program")
    #expect(
      trash["apps/org.example.one/extensions/org.example.one.share/data/Documents/draft"]
        == "draft")
    let again = try rig.plan(.uninstall, nil)
    #expect(again.refusals.map(\.code) == [.notInstalled])
  }

  /// The data of an app that was offloaded goes, too; its extension is known by its name.
  @Test func uninstallTakesWhatAnOffloadLeft() throws {
    let rig = try UpdateFixture()
    _ = try run(rig, .offload)
    let report = try run(rig, .uninstall)
    #expect(report.isComplete && report.saved != nil)
    #expect(try rig.device().containers.isEmpty)
  }

  @Test func whatForbidsItIsSaid() throws {
    let rig = try UpdateFixture()
    #expect(try rig.plan(.reinstall, MemoryPackage()).refusals.map(\.code) == [.installed])
    _ = try run(rig, .offload)
    #expect(try rig.plan(.offload, nil).refusals.map(\.code) == [.notInstalled])
    #expect(
      try rig.plan(.reinstall, MemoryPackage(shape: .contents)).refusals.map(\.code)
        == [.wrongPackage])
    _ = try run(rig, .uninstall)
    for change in [AppChange.reinstall, .offload, .uninstall] {
      let package = change == .reinstall ? MemoryPackage() : nil
      #expect(try rig.plan(change, package).refusals.map(\.code) == [.notInstalled], "\(change)")
      #expect(throws: LifecycleError.self) { try run(rig, change, package) }
    }
  }

  /// Without a repository nothing goes that was not allowed to go unsaved.
  @Test(arguments: [AppChange.offload, .uninstall])
  func withoutARepository(change: AppChange) throws {
    let rig = try UpdateFixture()
    let before = try rig.records()
    let plan = try rig.plan(change, nil)
    let error = #expect(throws: LifecycleError.self) {
      _ = try AppChangeOperation(plan, saving: rig.request, to: nil).run()
    }
    #expect(error?.hint?.contains("--no-snapshot") == true)
    #expect(try rig.records() == before)
    let free = try rig.plan(change, nil) { $0.savesFirst = false }
    #expect(try AppChangeOperation(free, saving: rig.request, to: nil).run().saved == nil)
  }

  /// The snapshot has every container that goes.
  @Test func theSnapshotHoldsWhatGoes() throws {
    let rig = try UpdateFixture()
    try share(rig, with: [Self.app])
    let plan = try rig.plan(.uninstall, nil)
    let gone = plan.containers.filter { $0.fate == .remove }.map(\.path)
    #expect(
      gone == [
        "apps/org.example.one/bundle", "apps/org.example.one/data",
        "apps/org.example.one/extensions/org.example.one.share/data",
        "groups/group.org.example.shared",
      ])
    let saved = try #require(try rig.carryOut(plan, MemoryPackage()).saved)
    #expect(saved.snapshot.reason == .uninstall)
    let reader = try rig.rig.repository.beginReading()
    for (number, (path, inner, text)) in [
      (gone[0], "Example.app/Example", "old program"),
      (gone[1], "Documents/thesis.txt", "a thesis"), (gone[2], "Documents/draft", "draft"),
      (gone[3], "shared.txt", "shared"),
    ].enumerated() {
      let restore = try RestorePlan.make(
        saved, path: path, to: rig.rig.directory.path(ByteString("back\(number)")), from: reader)
      _ = try RestoreOperation(restore, from: reader).run()
      #expect(try rig.rig.text(ByteString("back\(number)/\(inner)")) == text)
    }
  }

  // MARK: - Groups

  /// Makes a group's container, and the bundles say who shares it.
  private func share(_ rig: UpdateFixture, with apps: [String]) throws {
    let directory = ByteString("phone/Containers/Shared/AppGroup/\(UUID().uuidString)")
    try rig.put(
      "<plist><dict><key>MCMMetadataIdentifier</key><string>\(Self.group)</string></dict></plist>",
      directory.appending(UpdateFixture.metadata))
    try rig.put("shared", directory.appending("shared.txt"))
    let list = String(decoding: MachOBuilder.entitlements([Self.group]), as: UTF8.self)
    for app in apps {
      let name: ByteString = app == Self.app ? UpdateFixture.bundle : ByteString(UUID().uuidString)
      let bundle = ByteString("phone/Containers/Bundle/Application").appending(name)
        .appending("Example.app")
      if app != Self.app {
        try rig.put(UpdateFixture.info(app, "1.0", "10"), bundle.appending("Info.plist"))
      }
      try rig.put(list, bundle.appending("archived-expanded-entitlements.xcent"))
    }
  }

  private func fate(_ plan: AppChangePlan) -> PlannedContainer.Fate? {
    plan.containers.first { $0.logical.kind == .group }?.fate
  }

  @Test func aGroupGoesWithItsLastKnownMember() throws {
    let rig = try UpdateFixture()
    try share(rig, with: [Self.app, Self.two])
    let shared = try rig.plan(.uninstall, nil)
    #expect(fate(shared) == .keep)
    #expect(shared.notes.contains { $0.remark.contains("org.example.two") })
    _ = try rig.carryOut(shared, MemoryPackage())
    #expect(try files(rig, [.group]).keys.contains("groups/group.org.example.shared/shared.txt"))
    let other = BundleIdentifier(ByteString(Self.two))!
    let device = try rig.device()
    let scan = DeviceScan.run(
      device, policy: try PurgeFixture.policy([]),
      options: ScanOptions(destination: Destination(isUnencrypted: true))
    ) { AppChangePlan.isConcerned($0, by: other, on: device) }
    var request = AppChangeRequest(.uninstall, of: other)
    request.isForced = true
    let last = AppChangePlan.make(scan, request)
    #expect(fate(last) == .remove)
    let report = try rig.carryOut(last, MemoryPackage())
    #expect(report.isComplete)
    #expect(try files(rig, [.group]).isEmpty)
    #expect(try rig.trash()["groups/group.org.example.shared/shared.txt"] == "shared")
  }

  /// A group that only looks like the app's, or that an offloaded app may share, stays.
  @Test func aGroupStaysWhereMembershipIsNotKnown() throws {
    let guessed = try UpdateFixture()
    try guessed.put(
      "<plist><dict><key>MCMMetadataIdentifier</key><string>group.org.example.one</string></dict></plist>",
      ByteString("phone/Containers/Shared/AppGroup/G").appending(UpdateFixture.metadata))
    #expect(fate(try guessed.plan(.uninstall, nil)) == .keep)
    let offloaded = try UpdateFixture()
    try share(offloaded, with: [Self.app])
    #expect(fate(try offloaded.plan(.uninstall, nil)) == .remove)
    try offloaded.put(
      "<plist><dict><key>MCMMetadataIdentifier</key><string>com.other.app</string></dict></plist>",
      offloaded.data.appending("OTHER").appending(UpdateFixture.metadata))
    let plan = try offloaded.plan(.uninstall, nil)
    #expect(fate(plan) == .keep)
    #expect(plan.notes.contains { $0.remark.contains("com.other.app") })
    #expect(fate(try offloaded.plan(.offload, nil)) == .keep)
  }

  /// What was written between plan and removal is in the trash, and told.
  @Test func whatCameMeanwhileIsTold() throws {
    let rig = try UpdateFixture()
    let plan = try rig.plan(.uninstall, nil)
    try rig.write("late", "Documents/late.txt")
    let report = try rig.carryOut(plan, MemoryPackage())
    #expect(!report.isComplete)
    #expect(
      report.unplanned.map(\.path).contains("apps/org.example.one/data/Documents/late.txt"))
    #expect(try rig.trash()["apps/org.example.one/data/Documents/late.txt"] == "late")
  }

  /// Each call fails in turn: after `Recovery` the app is as it was, or gone as a whole.
  @Test(
    arguments: [AppChange.offload, .uninstall],
    [
      FaultKind(number: 5, staysBroken: true), FaultKind(number: 28, staysBroken: true),
      FaultKind(number: 5, staysBroken: false),
    ]) func eachCallFails(_ change: AppChange, _ kind: FaultKind) throws
  {
    let rig = try UpdateFixture()
    try share(rig, with: [Self.app])
    try rig.rig.copy("phone", to: "older")
    let before = try files(rig, [.bundle, .data, .extension, .group])
    let kept = before.filter { change == .offload && !$0.key.components.contains("bundle") }
    var outcomes: Set<Bool> = []
    let stride =
      ProcessInfo.processInfo.environment["SANDBOXCTL_STRESS"] != nil
      ? 1 : kind.staysBroken ? 9 : 17
    var random = Seeded.fresh("RemovalTests")
    var call = Int.random(in: 1...stride, using: &random)
    while call < 2000 {
      try rig.rig.directory.directory.removeTree("phone")
      try rig.rig.copy("older", to: "phone")
      let plan = try rig.plan(change, nil) { $0.savesFirst = false }
      let faults = Faults.Plan(
        at: call, number: try #require(kind.number), staysBroken: kind.staysBroken)
      var error: (any Error)?
      Faults.inject(faults) {
        do { try rig.carryOut(plan, MemoryPackage()) } catch let failure { error = failure }
      }
      let what = "\(change), \(kind), call \(call): \(error.map { "\($0)" } ?? "done")"
      if let error { #expect(tellsWhatAndWhere(error), "\(what)") }
      _ = try rig.recover(what)
      let after = try files(rig, [.bundle, .data, .extension, .group])
      let isDone = after == kept
      #expect(isDone || after == before, "\(what)")
      #expect(isDone || error != nil, "\(what)")
      #expect(!rig.hasStaging, "\(what)")
      outcomes.insert(isDone)
      if !faults.hasFired { break }
      call += stride
    }
    #expect(call < 2000, "it does not end")
    #expect(outcomes == [true, false])
  }
}
