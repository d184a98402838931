import AppUpdate
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

/// Offload, reinstall and uninstall of Mac apps, whose bundles share a directory.
@Suite(.spreadScans) struct RemovalMacOSTests {
  private let fixture: Fixture
  private static let home: ByteString = "disk/Users/you"
  private static let data = home.appending("Library/Containers/org.example.one/Data")
  private static let package = MemoryPackage(
    version: "2.0", build: "2", shape: .contents, files: ["Contents/MacOS/Example": "program 2.0"])

  init() throws {
    fixture = try Fixture(inMemory: true)
    try fixture.directory.write("thesis", at: Self.data.appending("Documents/thesis"))
    try fixture.directory.write("cached", at: Self.data.appending("Library/Caches/c"))
  }

  private func makeApp(_ name: String, _ identifier: String, in directory: ByteString) throws {
    let bundle = directory.appending(ByteString("\(name).app/Contents"))
    try fixture.directory.write(
      UpdateFixture.info(identifier, "1.0", "1"), at: bundle.appending("Info.plist"))
    try fixture.directory.write(
      "program of \(name)", at: bundle.appending("MacOS").appending(ByteString(name)))
  }

  private func plan(_ change: AppChange, _ package: MemoryPackage? = nil) throws -> AppChangePlan {
    let device = try Device.find(root: fixture.directory.path(Self.home), layout: .macOS)
    let scan = DeviceScan.run(device, policy: try Fixture.policy(.macOS)) {
      AppChangePlan.isConcerned($0, by: UpdateFixture.identifier, on: device)
    }
    var request = AppChangeRequest(change, of: UpdateFixture.identifier, package: package?.app)
    request.isForced = true
    return AppChangePlan.make(scan, request)
  }

  private func run(_ plan: AppChangePlan) throws -> AppChangeReport {
    var source = Self.package
    return try AppChangeOperation(
      plan, saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository)
    ).run(&source)
  }

  /// The bundle goes to the trash under its own name, and nothing else in its directory does.
  @Test(arguments: [AppChange.offload, .uninstall])
  func onlyTheBundleIsRemovedFromItsDirectory(_ change: AppChange) throws {
    let programs = Self.home.appending("Applications")
    try makeApp("Example", UpdateFixture.app, in: programs)
    try makeApp("Other", "org.example.two", in: programs)
    let data = try fixture.records(Self.data)
    let other = try fixture.records(programs.appending("Other.app"))
    let report = try run(plan(change))
    #expect(report.isComplete && report.saved != nil)
    #expect(try fixture.names(programs) == ["Other.app"])
    #expect(try fixture.records(programs.appending("Other.app")) == other)
    #expect(try fixture.records(Self.data) == data, "the data stays on a Mac")
    let trash = Self.home.appending(".sandboxctl/trash").appending(ByteString(report.trash ?? ""))
    #expect(
      try fixture.text(
        trash.appending("apps/org.example.one/bundle/Example.app/Contents/MacOS/Example"))
        == "program of Example")
    let back = try run(plan(.reinstall, Self.package))
    #expect(back.isComplete)
    #expect(
      try fixture.text(programs.appending("Example.app/Contents/MacOS/Example")) == "program 2.0")
    #expect(try fixture.records(programs.appending("Other.app")) == other)
    #expect(try fixture.records(Self.data) == data)
  }

  /// An app in the system's own directory is not part of the device, and is kept.
  @Test(arguments: [AppChange.offload, .uninstall])
  func aBundleOutsideOfTheDeviceIsKept(_ change: AppChange) throws {
    try makeApp("Example", UpdateFixture.app, in: "disk/Applications")
    let before = try fixture.records("disk")
    let plan = try plan(change)
    let refusal = try #require(plan.refusals.first)
    #expect(plan.refusals.count == 1 && refusal.code == .location)
    #expect(
      refusal.reason.contains("'apps/org.example.one/bundle' is outside the device, at '"),
      "\(refusal.reason)")
    #expect(refusal.reason.contains("disk/Applications"))
    #expect(refusal.hint?.contains("yourself") ?? false)
    let error = #expect(throws: OperationError.self) { try run(plan) }
    #expect(error?.kind == .failed)
    #expect(try fixture.records("disk") == before)
    #expect(try fixture.repository.snapshots().snapshots.isEmpty)
  }
}
