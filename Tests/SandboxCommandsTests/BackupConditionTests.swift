import SystemIO
import TestSupport
import Testing

@testable import SandboxCommands

/// The conditions of a backup on the state of the machine.
struct BackupConditionTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A machine with these kernel files, and without other programs.
  private func machine(_ files: [ByteString: String]) throws -> MachineState {
    for (path, text) in files {
      try directory.write(text, at: ByteString("machine").appending(path))
    }
    return MachineState(root: directory.path("machine")) { _ in nil }
  }

  @Test func aLoadAboveTheMaximumIsAnObstacle() throws {
    typealias Conditions = BackupCommand.Conditions
    let loaded = try machine(["proc/loadavg": "2.50 0.10 0.10 1/200 4711\n"])
    #expect(Conditions.obstacle(above: 2.49, on: loaded) == "the load is 2.5, above 2.49")
    #expect(Conditions.obstacle(above: 2.5, on: loaded) == nil)
    #expect(Conditions.obstacle(above: 0, on: MachineState(root: "/nowhere") { _ in nil }) == nil)
    let busy = try machine(["proc/loadavg": "99999 0.10 0.10 1/200 4711\n"])
    #expect(Conditions.obstacle(.idle, on: busy)?.hasPrefix("the load is 99999.0, above") == true)
    let idle = try machine(["proc/loadavg": "0.00 9.00 9.00 1/200 4711\n"])
    #expect(Conditions.obstacle(.idle, on: idle) == nil)
    #expect(Conditions.obstacle(.onMains, on: idle) == nil)
    let supply: ByteString = "sys/class/power_supply/BAT0"
    let portable = try machine([
      supply.appending("type"): "Battery\n", supply.appending("status"): "Discharging\n",
    ])
    #expect(Conditions.obstacle(.onMains, on: portable) == "the machine is on battery power")
  }
}
