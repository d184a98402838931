import AppUpdate
import ArchiveStore
import DeviceDiscovery
import DeviceScan
import DeviceTransaction
import Foundation
import PolicyEngine
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppPackages

/// How offload, reinstall and uninstall change an app's containers, and when they refuse.
@Suite(.spreadScans) struct RemovalTests {
  private static let group = "group.org.example.shared"
  private static let app = UpdateFixture.app
  private static let two = "org.example.two"

  private func run(
    _ fixture: UpdateFixture, _ change: AppChange, _ package: MemoryPackage? = nil,
    _ adapt: (inout AppChangeRequest) -> Void = { _ in }
  ) throws -> AppChangeReport {
    try fixture.carryOut(fixture.plan(change, package, [], adapt), package ?? MemoryPackage())
  }

  /// The files in the containers of the given kinds, without the metadata that names their
  /// directories.
  private func files(
    _ fixture: UpdateFixture, _ kinds: Set<ContainerKind>
  ) throws -> [ByteString: TreeRecord] {
    var found: [ByteString: TreeRecord] = [:]
    for container in try fixture.device().containers where kinds.contains(container.kind) {
      let inner = ByteString(
        container.absolutePath.bytes.dropFirst(fixture.base.directory.path.count + 1))
      for (path, record) in try fixture.base.records(inner) {
        found[container.logicalPrefix.appending(path)] = record
      }
    }
    return found
  }

  @Test func offloadKeepsTheData() throws {
    let fixture = try UpdateFixture()
    let before = try files(fixture, [.data, .extension, .group])
    let inodes = try fixture.inodes(fixture.data.appending(UpdateFixture.old))
    let report = try run(fixture, .offload)
    #expect(report.isComplete && report.saved != nil && report.written == AppPackage.Size())
    let app = try #require(
      try fixture.device().apps.first { $0.identifier == UpdateFixture.identifier })
    #expect(!app.isInstalled)
    #expect(try files(fixture, [.data, .extension, .group]) == before)
    #expect(try fixture.inodes(fixture.data.appending(UpdateFixture.old)) == inodes)
    #expect(try fixture.trash()["apps/org.example.one/bundle/Example.app/Example"] == "old program")
    #expect(!fixture.hasStaging)
  }

  /// An offloaded and reinstalled app is unchanged: data, extension and links are untouched.
  @Test func reinstallRestoresTheBundle() throws {
    let fixture = try UpdateFixture()
    let before = try files(fixture, [.data, .extension, .group])
    _ = try run(fixture, .offload)
    let package = MemoryPackage(extensions: [("\(Self.app).share", "20")])
    // Nothing is removed, so no snapshot is needed, with or without a repository.
    let report = try run(fixture, .reinstall, package)
    #expect(report.isComplete && report.saved == nil && report.written == package.app.size)
    #expect(try files(fixture, [.data, .extension, .group]) == before)
    let app = try #require(
      try fixture.device().apps.first { $0.identifier == UpdateFixture.identifier })
    #expect(app.isInstalled && app.version == "2.0")
  }

  @Test func uninstallRemovesAppAndExtensions() throws {
    let fixture = try UpdateFixture()
    let report = try run(fixture, .uninstall)
    #expect(report.isComplete && report.saved != nil)
    #expect(try fixture.device().containers.isEmpty)
    #expect(try fixture.device().apps.isEmpty)
    let trash = try fixture.trash()
    #expect(trash["apps/org.example.one/data/Documents/thesis.txt"] == "a thesis")
    #expect(trash["apps/org.example.one/bundle/Example.app/Example"] == "old program")
    #expect(
      trash["apps/org.example.one/extensions/org.example.one.share/data/Documents/draft"]
        == "draft")
    let again = try fixture.plan(.uninstall, nil)
    #expect(again.refusals.map(\.code) == [.notInstalled])
  }

  /// Each removed container is kept in the trash of its own volume: a bundle and the data of its
  /// app have one logical parent, and can be on two volumes, as on a device.
  @Test func uninstallRemovesContainersOnTwoVolumes() throws {
    guard try Mount.isPermitted() else { return }
    let fixture = try UpdateFixture()
    let containers = fixture.root.appending("Containers")
    let above = try Directory.open(path: containers)
    try above.rename("Data", to: "Data-before", in: above)
    let mount = try Mount(on: above, at: containers, "Data")
    defer { withExtendedLifetime(mount) {} }
    try fixture.base.copy("phone/Containers/Data-before/.", to: "phone/Containers/Data")
    try above.removeTree("Data-before")
    let report = try run(fixture, .uninstall)
    #expect(report.isComplete && report.saved != nil)
    #expect(try fixture.device().containers.isEmpty)
    #expect(
      try fixture.trash()["apps/org.example.one/bundle/Example.app/Example"] == "old program")
    let operation = ByteString(try #require(report.trash))
    let trash = fixture.data.appending(".sandboxctl/trash").appending(operation)
    let data = trash.appending("apps/org.example.one/data")
    #expect(try fixture.base.text(data.appending("Documents/thesis.txt")) == "a thesis")
    #expect(try Trash(of: fixture.device()).listed().items.map(\.id) == [operation])
  }

  /// The data of an offloaded app is removed, too; its extension is recognized by its name.
  @Test func uninstallRemovesTheDataOfAnOffloadedApp() throws {
    let fixture = try UpdateFixture()
    _ = try run(fixture, .offload)
    let report = try run(fixture, .uninstall)
    #expect(report.isComplete && report.saved != nil)
    #expect(try fixture.device().containers.isEmpty)
  }

  @Test func refusalsAreReported() throws {
    let fixture = try UpdateFixture()
    #expect(try fixture.plan(.reinstall, MemoryPackage()).refusals.map(\.code) == [.installed])
    _ = try run(fixture, .offload)
    #expect(try fixture.plan(.offload, nil).refusals.map(\.code) == [.notInstalled])
    #expect(
      try fixture.plan(.reinstall, MemoryPackage(shape: .contents)).refusals.map(\.code)
        == [.wrongPackage])
    _ = try run(fixture, .uninstall)
    for change in [AppChange.reinstall, .offload, .uninstall] {
      let package = change == .reinstall ? MemoryPackage() : nil
      #expect(
        try fixture.plan(change, package).refusals.map(\.code) == [.notInstalled], "\(change)")
      #expect(throws: OperationError.self) { try run(fixture, change, package) }
    }
  }

  /// Without a repository nothing is removed unless the user allowed it.
  @Test(arguments: [AppChange.offload, .uninstall])
  func withoutARepositoryARemovalIsRefused(change: AppChange) throws {
    let fixture = try UpdateFixture()
    let before = try fixture.records()
    let plan = try fixture.plan(change, nil)
    let error = #expect(throws: OperationError.self) {
      _ = try AppChangeOperation(plan, saving: nil).run()
    }
    #expect(error?.hint?.contains("--no-snapshot") == true)
    #expect(try fixture.records() == before)
    let free = try fixture.plan(change, nil) { $0.savesFirst = false }
    #expect(try AppChangeOperation(free, saving: nil).run().saved == nil)
  }

  /// The snapshot has every container that is removed.
  @Test func theSnapshotHoldsTheRemovedContainers() throws {
    let fixture = try UpdateFixture()
    try share(fixture, with: [Self.app])
    let plan = try fixture.plan(.uninstall, nil)
    let gone = plan.containers.filter { $0.action == .remove }.map(\.path)
    #expect(
      gone == [
        "apps/org.example.one/bundle", "apps/org.example.one/data",
        "apps/org.example.one/extensions/org.example.one.share/data",
        "groups/group.org.example.shared",
      ])
    let saved = try #require(try fixture.carryOut(plan, MemoryPackage()).saved)
    #expect(saved.snapshot.reason == .uninstall)
    let reader = try fixture.base.repository.beginReading()
    for (number, (path, inner, text)) in [
      (gone[0], "Example.app/Example", "old program"),
      (gone[1], "Documents/thesis.txt", "a thesis"), (gone[2], "Documents/draft", "draft"),
      (gone[3], "shared.txt", "shared"),
    ].enumerated() {
      let restore = try RestorePlan.make(
        saved, path: path, to: fixture.base.directory.path(ByteString("back\(number)")),
        from: reader)
      _ = try RestoreOperation(restore, from: reader).run()
      #expect(try fixture.base.text(ByteString("back\(number)/\(inner)")) == text)
    }
  }

  // MARK: - Groups

  /// Makes a group's container; the bundles declare which apps share it.
  private func share(_ fixture: UpdateFixture, with apps: [String]) throws {
    let directory = ByteString("phone/Containers/Shared/AppGroup/\(UUID().uuidString)")
    try fixture.put(
      "<plist><dict><key>MCMMetadataIdentifier</key><string>\(Self.group)</string></dict></plist>",
      directory.appending(UpdateFixture.metadata))
    try fixture.put("shared", directory.appending("shared.txt"))
    let list = String(decoding: MachOBuilder.entitlements([Self.group]), as: UTF8.self)
    for app in apps {
      let name: ByteString = app == Self.app ? UpdateFixture.bundle : ByteString(UUID().uuidString)
      let bundle = ByteString("phone/Containers/Bundle/Application").appending(name)
        .appending("Example.app")
      if app != Self.app {
        try fixture.put(UpdateFixture.info(app, "1.0", "10"), bundle.appending("Info.plist"))
      }
      try fixture.put(list, bundle.appending("archived-expanded-entitlements.xcent"))
    }
  }

  /// A group stays where it is, with its links: those into data that an update moves are reported.
  @Test func linksFromAGroupToMovedDataAreReported() throws {
    let fixture = try UpdateFixture()
    try share(fixture, with: [Self.app, Self.two])
    let group = try #require(try fixture.device().containers.first { $0.kind == .group })
    let directory = try Directory.open(path: group.absolutePath)
    try directory.createLink(
      "thesis", to: fixture.dataDirectory().appending("Documents/thesis.txt"))
    try directory.createLink("own", to: group.absolutePath.appending("shared.txt"))
    let package = MemoryPackage(extensions: [("\(Self.app).share", "20")])
    let plan = try fixture.plan(.update, package)
    #expect(action(plan) == .keep)
    #expect(plan.notes.map(\.path) == [ByteString("groups/\(Self.group)/thesis")])
    #expect(plan.notes.first?.remark.contains("which moves to '") == true)
    #expect(try run(fixture, .update, package).isComplete)
    #expect(try fixture.plan(.offload, nil).notes.isEmpty)
  }

  private func action(_ plan: AppChangePlan) -> PlannedContainer.Action? {
    plan.containers.first { $0.logical.kind == .group }?.action
  }

  @Test func aGroupIsRemovedWithItsLastKnownMember() throws {
    let fixture = try UpdateFixture()
    try share(fixture, with: [Self.app, Self.two])
    let shared = try fixture.plan(.uninstall, nil)
    #expect(action(shared) == .keep)
    #expect(shared.notes.contains { $0.remark.contains("org.example.two") })
    _ = try fixture.carryOut(shared, MemoryPackage())
    #expect(
      try files(fixture, [.group]).keys.contains("groups/group.org.example.shared/shared.txt"))
    let other = BundleIdentifier(ByteString(Self.two))!
    let device = try fixture.device()
    let scan = DeviceScan.run(
      device, policy: try PurgeFixture.policy([]),
      options: ScanOptions(destination: Destination(isUnencrypted: true))
    ) { AppChangePlan.isConcerned($0, by: other, on: device) }
    var request = AppChangeRequest(.uninstall, of: other)
    request.isForced = true
    let last = AppChangePlan.make(scan, request)
    #expect(action(last) == .remove)
    let report = try fixture.carryOut(last, MemoryPackage())
    #expect(report.isComplete)
    #expect(try files(fixture, [.group]).isEmpty)
    #expect(try fixture.trash()["groups/group.org.example.shared/shared.txt"] == "shared")
  }

  /// A group that only looks like the app's, or that an offloaded app may share, is kept.
  @Test func aGroupIsKeptIfItsMembersAreUnknown() throws {
    let guessed = try UpdateFixture()
    try guessed.put(
      "<plist><dict><key>MCMMetadataIdentifier</key><string>group.org.example.one</string></dict></plist>",
      ByteString("phone/Containers/Shared/AppGroup/G").appending(UpdateFixture.metadata))
    #expect(action(try guessed.plan(.uninstall, nil)) == .keep)
    let offloaded = try UpdateFixture()
    try share(offloaded, with: [Self.app])
    #expect(action(try offloaded.plan(.uninstall, nil)) == .remove)
    try offloaded.put(
      "<plist><dict><key>MCMMetadataIdentifier</key><string>com.other.app</string></dict></plist>",
      offloaded.data.appending("OTHER").appending(UpdateFixture.metadata))
    let plan = try offloaded.plan(.uninstall, nil)
    #expect(action(plan) == .keep)
    #expect(plan.notes.contains { $0.remark.contains("com.other.app") })
    #expect(action(try offloaded.plan(.offload, nil)) == .keep)
  }

  /// Files written between plan and removal are in the trash, and are reported.
  @Test func filesWrittenMeanwhileAreReported() throws {
    let fixture = try UpdateFixture()
    let plan = try fixture.plan(.uninstall, nil)
    try fixture.write("late", "Documents/late.txt")
    let report = try fixture.carryOut(plan, MemoryPackage())
    #expect(!report.isComplete)
    #expect(
      report.lateChanges.map(\.path).contains("apps/org.example.one/data/Documents/late.txt"))
    #expect(try fixture.trash()["apps/org.example.one/data/Documents/late.txt"] == "late")
  }

  /// Each call fails in turn: after `Recovery` the app is unchanged or completely removed.
  @Test(
    arguments: [AppChange.offload, .uninstall],
    [
      FaultKind(number: 5, failsRepeatedly: true), FaultKind(number: 28, failsRepeatedly: true),
      FaultKind(number: 5, failsRepeatedly: false),
    ]) func aFailedCallLosesNoRemovedFile(_ change: AppChange, _ kind: FaultKind) throws
  {
    let fixture = try UpdateFixture()
    try share(fixture, with: [Self.app])
    try fixture.base.copy("phone", to: "older")
    let before = try files(fixture, [.bundle, .data, .extension, .group])
    let kept = before.filter { change == .offload && !$0.key.components.contains("bundle") }
    var outcomes: Set<Bool> = []
    let stride = Sampling.stride(kind.failsRepeatedly ? 9 : 17)
    var random = Seeded.fresh("RemovalTests")
    var call = Int.random(in: 1...stride, using: &random)
    while call < 2000 {
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("older", to: "phone")
      let plan = try fixture.plan(change, nil) { $0.savesFirst = false }
      let faults = Faults.Plan(
        at: call, number: try #require(kind.number), failsRepeatedly: kind.failsRepeatedly)
      var error: (any Error)?
      Faults.inject(faults) {
        do { try fixture.carryOut(plan, MemoryPackage()) } catch let failure { error = failure }
      }
      let what = "\(change), \(kind), call \(call): \(error.map { "\($0)" } ?? "done")"
      if let error { #expect(tellsWhatAndWhere(error), "\(what)") }
      _ = try fixture.recover(what)
      let after = try files(fixture, [.bundle, .data, .extension, .group])
      let isDone = after == kept
      #expect(isDone || after == before, "\(what)")
      #expect(isDone || error != nil, "\(what)")
      #expect(!fixture.hasStaging, "\(what)")
      outcomes.insert(isDone)
      if !faults.hasFired { break }
      call += stride
    }
    #expect(call < 2000, "the loop does not end")
    #expect(outcomes == [true, false])
  }
}
