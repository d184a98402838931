import SystemIO
import TestSupport
import Testing

/// The state of the machine, which backup conditions depend on, with simulated programs.
struct MachineStateTests {
  private func state(_ answers: [String: String]) -> MachineState {
    MachineState(root: "/nowhere") { words in answers[words[0].description] }
  }

  @Test(
    arguments: [
      ("u 1\n", true), ("u 2\n", false), ("u 3\n", true), ("u 4\n", false), ("u 0\n", nil),
      ("nonsense", nil),
    ] as [(String, Bool?)])
  func networkManagerReportsWhetherTheNetworkIsMetered(_ answer: String, _ expected: Bool?) {
    #expect(state(["busctl": answer]).isMetered == expected)
  }

  @Test func nmcliAnswersWithoutABus() {
    #expect(state(["nmcli": "no (guessed)\n\nyes\n"]).isMetered == true)
    #expect(state(["nmcli": "no (guessed)\nunknown\n"]).isMetered == false)
    #expect(state(["nmcli": "unknown\n"]).isMetered == nil)
  }

  @Test func aConnectedModemIsMetered() {
    #expect(state(["mmcli": "modem.generic.state : connected\n"]).isMetered == true)
    #expect(state(["mmcli": "modem.generic.state : disabled\n"]).isMetered == nil)
    #expect(state([:]).isMetered == nil)
  }

  @Test func logindReportsWhetherSessionsAreIdle() {
    #expect(state(["loginctl": "IdleHint=yes\n"]).areSessionsIdle == true)
    #expect(state(["loginctl": "IdleHint=no\n"]).areSessionsIdle == false)
    #expect(state([:]).areSessionsIdle == nil)
  }

  @Test func aMachineWithoutFilesHasMainsPowerAndAnUnknownLoad() {
    #expect(state([:]).isOnMainsPower)
    #expect(state([:]).load == nil)
    #expect(MachineState().load != nil)
  }
}
