import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Mount

/// The rate of requests, which decides whether a thread polls for the next one instead of blocking.
struct RequestRateTests {
  /// Records requests, with enough time for `looks` counts of the running programs.
  private func receive(_ rate: RequestRate, looks: Int, helpers: Int = 0) {
    for _ in 0..<looks {
      Host.pause(seconds: 0.006)
      for _ in 0..<64 { rate.didReceive(helpers: helpers) }
    }
  }

  /// The simulated number of running programs.
  private final class Programs: Sendable {
    let count = Atomic<Int>(1)
  }

  /// A pause may take longer than quick requests do, so this tries until the rate has the wanted
  /// value.
  private func isQuick(_ rate: RequestRate, _ wanted: Bool, helpers: Int = 0) -> Bool {
    for _ in 0..<100 where rate.isQuick != wanted { receive(rate, looks: 1, helpers: helpers) }
    return rate.isQuick
  }

  @Test func quickRequestsOfOneProgramAreNoticed() {
    let programs = Programs()
    let rate = RequestRate { programs.count.load(ordering: .relaxed) }
    #expect(!rate.isQuick)
    #expect(isQuick(rate, true))
    programs.count.store(3, ordering: .relaxed)
    #expect(!isQuick(rate, false), "other programs run")
    #expect(isQuick(rate, true, helpers: 2), "threads of this program")
    programs.count.store(-1, ordering: .relaxed)
    #expect(!isQuick(rate, false), "not known")
  }

  @Test func slowRequestsAreNoticed() {
    let rate = RequestRate { 1 }
    #expect(isQuick(rate, true))
    Host.pause(seconds: 0.03)
    for _ in 0..<64 { rate.didReceive(helpers: 0) }
    #expect(!rate.isQuick)
  }

  @Test func runningProgramsAreCounted() {
    #expect(RequestRate.runningPrograms > 0, "this program runs")
  }
}
