import ArchiveStore
import DeviceDiscovery
import DeviceScan
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Backup
@testable import DeviceTransaction

/// Links that another process puts in place of the program's own directories, or of a container's,
/// are not followed.
@Suite(.spreadScans) struct LinkedDirectoryTests {
  /// At each of the last calls of a restore that open a directory, the new snap's directory is
  /// replaced with a link: its `current` link is never created outside.
  @Test func theLinkToANewRevisionIsNotCreatedOutside() throws {
    let fixture = try Fixture()
    try fixture.directory.write("settings", at: "home/snap/reader/7/settings")
    try Directory.open(path: fixture.directory.path("home/snap/reader"))
      .createLink("current", to: "7")
    let policy = try Fixture.policy(.snap)
    func device(_ path: ByteString) throws -> Device {
      _ = try Directory.make(path: fixture.directory.path(path))
      return try DeviceFinder(layout: .snap).find(fixture.directory.path(path))
    }
    let scan = DeviceScan.run(try device("home/snap"), policy: policy)
    let snapshot = try #require(try fixture.backup(scan).snapshot)
    func restore(to path: ByteString, _ plan: Faults.Plan) throws {
      let reader = try fixture.repository.beginReading()
      var request = DeviceRestoreRequest(
        try device(path.appending("snap")), isInPlace: false, policy: policy)
      request.savesFirst = false
      let planned = try DeviceRestorePlan.make(snapshot, request, from: reader)
      let operation = DeviceRestoreOperation(
        planned, from: reader,
        saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository))
      _ = try Faults.inject(plan) { try operation.run() }
    }
    let counting = Faults.Plan(before: [.open], at: .max) {}
    try restore(to: "first", counting)
    #expect(try fixture.names("first/snap/reader") == ["7", "current"])
    for call in max(1, counting.count - 20)...counting.count {
      let name = ByteString("to \(call)")
      _ = try Directory.make(path: fixture.directory.path(name.appending("outside")))
      let path = fixture.directory.path(name)
      let plan = Faults.Plan(before: [.open], at: call) {
        guard let top = try? Directory.open(path: path), let snaps = try? top.directory("snap"),
          (try? snaps.rename("reader", to: "moved", in: top)) != nil
        else { return }
        try? snaps.createLink("reader", to: path.appending("outside"))
      }
      try? restore(to: name, plan)
      #expect(try fixture.names(name.appending("outside")).isEmpty, "call \(call)")
    }
  }

  @Test func theSafeHarborIsNotFoundThroughALink() throws {
    let fixture = try Fixture()
    try fixture.directory.write("x", at: "outside/apps/org.example.one/data/x")
    _ = try Directory.make(path: fixture.directory.path("outside/apps/org.example.two"))
    let own = try Directory.make(path: fixture.directory.path("tree/.sandboxctl"))
    try own.createLink("safe-harbor", to: fixture.directory.path("outside"))
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    #expect(SafeHarbor.all(on: device).isEmpty)
    SafeHarbor.removeEmpty(of: "org.example.two", root: device.root)
    #expect(try fixture.names("outside/apps") == ["org.example.one", "org.example.two"])
  }
}
