import AppUpdate
import DeviceDiscovery
import DeviceScan
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The processes that belong to a snap according to their control groups in a generated `/proc`.
@Suite(.spreadScans) struct SnapRegisterTests {
  private static let user = "/user.slice/user-1000.slice/user@1000.service/app.slice/"

  private let snap: SnapFixture

  init() throws { snap = try SnapFixture() }

  /// Makes processes without open files. Returns those that count as processes of the snap.
  private func running(
    _ groups: [Int: String], user: UInt32 = Host.userID
  ) throws -> [RunningApps.Sign] {
    for (number, group) in groups {
      try snap.fixture.directory.write(group, at: ByteString("proc/\(number)/cgroup"))
      try snap.fixture.directory.write("program\n", at: ByteString("proc/\(number)/comm"))
      try snap.fixture.directory.write(
        "Name:\tprogram\nPPid:\t1\nUid:\t\(user)\t0\t0\t0\n",
        at: ByteString("proc/\(number)/status"))
      _ = try Directory.make(path: snap.fixture.directory.path(ByteString("proc/\(number)/fd")))
      try snap.fixture.directory.write("", at: ByteString("proc/\(number)/maps"))
    }
    let app = UpdateFixture.id("editor")
    let request = AppChangeRequest(.uninstall, of: app, package: nil)
    let device = try DeviceFinder(machineID: "m", systemFlatpak: nil).find(
      snap.fixture.directory.path("home/you/snap"))
    let plan = AppChangePlan.make(
      DeviceScan.run(device, policy: try Fixture.policy(.snap, [])), request)
    return plan.runningProcesses(in: snap.fixture.directory.path("proc"))
      .sorted { $0.process < $1.process }
  }

  @Test func scopesServicesAndOldHierarchiesCount() throws {
    let scope = Self.user + "snap.editor.editor-0a1b2c3d-0000-4000-8000-000000000000.scope"
    let found = try running([
      41: "0::\(scope)\n",
      42: "0::/system.slice/snap.editor.daemon.service\n",
      43: "2:cpu:/\n1:name=systemd:\(Self.user)snap.editor.hook.configure.0a1b.scope\n0::/\n",
      44: "0::\(Self.user)snap.editor.editor-0a1b.scope/inner\n",
      45: "0::\(Self.user)snap.editor\\x2bpart.hook.install-0a1b.scope\n",
    ])
    #expect(found.map(\.process) == [41, 42, 43, 44, 45])
    #expect(found.allSatisfy { $0.app == "editor" && $0.program == "program" })
    #expect(found.first?.file.description == scope)
    #expect(found.first?.text.contains("'editor' is running: process 41") == true)
  }

  @Test func otherGroupsDoNotCount() throws {
    let found = try running([
      41: "0::\(Self.user)snap.editor-plus.editor-0a1b.scope\n",
      42: "0::\(Self.user)snap.editor_two.editor-0a1b.scope\n",
      43: "0::\(Self.user)snap.edit.or.editor-0a1b.scope\n",
      44: "0::\(Self.user)app-snap.editor.editor-0a1b.scope\n",
      45: "0::/system.slice/snap.editor.mount\n",
      46: "0::\(Self.user)snap.editor.scope\n",
      47: "0::\(Self.user)snap.editor.editor.slice\n",
      48: "",
    ])
    #expect(found.isEmpty, "\(found)")
  }

  /// The home directory is another one if another user runs the same snap.
  @Test func processesOfAnotherUserDoNotCount() throws {
    let group = [41: "0::\(Self.user)snap.editor.editor-0a1b.scope\n"]
    #expect(try running(group, user: Host.userID + 1).isEmpty)
    #expect(try running(group).map(\.process) == [41])
  }
}
