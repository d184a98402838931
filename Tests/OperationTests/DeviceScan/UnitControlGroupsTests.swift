import DeviceDiscovery
import DeviceScan
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The processes that belong to a unit according to their control groups in a generated `/proc`.
@Suite(.spreadScans) struct UnitControlGroupsTests {
  private let fixture: Fixture

  init() throws {
    fixture = try Fixture()
    try fixture.directory.write("rows", at: "system/var/lib/web/pages.db")
    try fixture.directory.write(
      "[Service]\nStateDirectory=web\n", at: "system/etc/systemd/system/web.service")
  }

  /// Makes processes without open files. Returns those that count as processes of the unit on a
  /// device with a root.
  private func running(
    _ groups: [Int: String], root: ByteString = "/"
  ) throws -> [RunningApps.Sign] {
    for (number, group) in groups {
      let process = ByteString("proc/\(number)")
      try fixture.directory.write(group, at: process.appending("cgroup"))
      try fixture.directory.write("program\n", at: process.appending("comm"))
      try fixture.directory.write(
        "Name:\tprogram\nPPid:\t1\nUid:\t0\t0\t0\t0\n", at: process.appending("status"))
      _ = try Directory.make(path: fixture.directory.path(process.appending("fd")))
      try fixture.directory.write("", at: process.appending("maps"))
    }
    let found = try DeviceFinder(layout: .systemd, machineID: "m", systemFlatpak: nil).find(
      fixture.directory.path("system"))
    let device = Device(
      root: root, layout: .systemd, identity: found.identity, apps: found.apps,
      containers: found.containers, findings: [])
    return RunningApps.signs(
      in: DeviceScan.run(device, policy: try Fixture.policy(.systemd, [])),
      proc: fixture.directory.path("proc")
    ).sorted { $0.process < $1.process }
  }

  @Test func processesInTheGroupOfTheUnitCount() throws {
    let found = try running([
      41: "0::/system.slice/web.service\n",
      42: "0::/system.slice/system-web.slice/web.service/worker\n",
      43: "1:name=systemd:/system.slice/web.service\n0::/\n",
    ])
    #expect(found.map(\.process) == [41, 42, 43])
    #expect(found.allSatisfy { $0.app == "web.service" && $0.program == "program" })
    #expect(found.first?.file == "/system.slice/web.service")
  }

  /// A user's service manager and a container with its own manager have units of the same names.
  @Test func otherGroupsDoNotCount() throws {
    let found = try running([
      41: "0::/user.slice/user-1000.slice/user@1000.service/app.slice/web.service\n",
      42: "0::/system.slice/docker-0a1b.scope/system.slice/web.service\n",
      43: "0::/system.slice/other-web.service\n", 44: "0::/system.slice/web.service.d\n",
      45: "0::/web\n", 46: "",
    ])
    #expect(found.isEmpty, "\(found)")
  }

  /// Units of another system do not match the processes of this system.
  @Test func unitsOfAnotherSystemDoNotCount() throws {
    let group = [41: "0::/system.slice/web.service\n"]
    #expect(try running(group, root: fixture.directory.path("system")).isEmpty)
    #expect(try running(group).map(\.process) == [41])
  }
}
