import SystemIO
import TestSupport
import Testing

/// Whether the machine is on mains power, with directories like those of the kernel.
struct PowerTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory("power") }

  private func supply(_ name: ByteString, _ facts: [ByteString: String]) throws {
    for (key, value) in facts { try directory.write(value + "\n", at: name.appending(key)) }
  }

  private var isOnMains: Bool { Host.isOnMainsPower(supplies: directory.path) }

  @Test func aMachineWithoutABatteryHasMainsPower() throws {
    #expect(isOnMains)
    #expect(Host.isOnMainsPower(supplies: directory.path("absent")))
  }

  @Test func aSupplyThatIsOnlineIsEnough() throws {
    try supply("BAT0", ["type": "Battery", "status": "Discharging"])
    try supply("AC", ["type": "Mains", "online": "0"])
    #expect(!isOnMains)
    try supply("AC", ["online": "1"])
    #expect(isOnMains)
  }

  @Test func aFullBatteryIsNotDischarging() throws {
    try supply("BAT0", ["type": "Battery", "status": "Not charging"])
    #expect(isOnMains)
  }

  @Test func theBatteryOfAMouseDoesNotCount() throws {
    try supply("mouse", ["type": "Battery", "scope": "Device", "status": "Discharging"])
    #expect(isOnMains)
  }
}
