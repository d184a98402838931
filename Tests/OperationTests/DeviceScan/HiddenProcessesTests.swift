import DeviceDiscovery
import DeviceScan
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Processes whose files cannot be examined, in a generated `/proc`.
@Suite(.spreadScans) struct HiddenProcessesTests {
  private let fixture: Fixture

  init() throws {
    fixture = try Fixture()
    try fixture.directory.write("rows", at: "system/var/lib/web/pages.db")
    try fixture.directory.write(
      "[Service]\nStateDirectory=web\n", at: "system/etc/systemd/system/web.service")
    try fixture.directory.write("sandboxctl\n", at: "proc/self/comm")
  }

  /// Makes a process whose working directory cannot be read. Returns the processes for which the
  /// unit may be running.
  private func signs(named name: String, of user: UInt32) throws -> [Int32] {
    try fixture.directory.write("\(name)\n", at: "proc/71/comm")
    try fixture.directory.write(
      "Name:\t\(name)\nPPid:\t1\nUid:\t\(user)\t\(user)\t\(user)\t\(user)\n", at: "proc/71/status")
    try FileManager.default.createSymbolicLink(
      atPath: fixture.directory.string + "/proc/71/cwd", withDestinationPath: "cwd")
    let device = try DeviceFinder(layout: .systemd, machineID: "m", systemFlatpak: nil).find(
      fixture.directory.path("system"))
    return RunningApps.signs(
      in: DeviceScan.run(device, policy: try Fixture.policy(.systemd, [])),
      proc: fixture.directory.path("proc")
    ).map(\.process)
  }

  @Test func aHiddenProcessOfTheOwnerMayBeAnApp() throws {
    #expect(try signs(named: "program", of: Host.userID) == [71])
  }

  /// A backup hides its files while it has a key. It is no app, so other commands continue.
  @Test func aHiddenProcessOfThisProgramIsNoApp() throws {
    #expect(try signs(named: "sandboxctl", of: Host.userID).isEmpty)
  }
}
