import DatabaseCapture
import Glibc
import SystemIO
import TestSupport
import Testing

/// Every call of a capture fails, once or from then on: the result is never wrong. `make test`
/// tests a sample of the calls.
struct CaptureFaultTests {
  private static let sample = 4

  private struct Outcome {
    var captured = 0
    var failed = 0
  }

  private func failEachCall(failsRepeatedly: Bool, disturbed: Bool) throws -> Outcome {
    let fixture = try Fixture("faults", inMemory: true)
    try fixture.write(content(5000, 1), .database)
    try fixture.write(log(salt: 1, 3000), .log)
    try fixture.write(journal(200), .journal)
    try fixture.write(content(100, 2), .sharedMemory)
    var outcome = Outcome()
    for call in Sampling.steps(Self.sample, "capture") {
      try fixture.age()
      // The pause ensures that another change is visible in the times.
      Host.pause(seconds: 0.005)
      let shelf = Shelf()
      let plan = Faults.Plan(at: call, number: EIO, failsRepeatedly: failsRepeatedly)
      if disturbed { disturb(shelf, fixture) }
      if let result = attempt(fixture, shelf, plan, &outcome) {
        #expect(result.members.map(\.member) == [.database, .log, .journal])
        #expect(shelf.contents[.database] == content(5000, 1))
        #expect(shelf.contents[.log] == log(salt: 1, 3000))
        #expect(shelf.contents[.journal] == journal(200))
      }
      #expect(try fixture.spool.names() == [])
      if !plan.hasFired { return outcome }
    }
    return outcome
  }

  /// Makes watching fail without any failing call.
  private func disturb(_ shelf: Shelf, _ fixture: Fixture) {
    shelf.beforeReading = { member, times in
      guard member == .database && times < 3 else { return }
      try Faults.inject(Faults.Plan(at: .max, number: 0)) {
        try fixture.source.setPermissions(times == 1 ? 0o600 : 0o644, of: "db")
      }
      Host.pause(seconds: 0.005)
    }
  }

  private func attempt(
    _ fixture: Fixture, _ shelf: Shelf, _ plan: Faults.Plan, _ outcome: inout Outcome
  ) -> CaptureResult? {
    do {
      let result = try Faults.inject(plan) { try fixture.capture(shelf) }
      outcome.captured += 1
      return result
    } catch {
      #expect((error as? SystemError)?.number == EIO)
      outcome.failed += 1
      return nil
    }
  }

  @Test(arguments: [false, true])
  func noFailureWhileWatchingGivesAWrongResult(failsRepeatedly: Bool) throws {
    let outcome = try failEachCall(failsRepeatedly: failsRepeatedly, disturbed: false)
    #expect(outcome.captured >= 1 && outcome.failed > 10 / Sampling.stride(Self.sample))
  }

  @Test(arguments: [false, true])
  func noFailureUnderLocksGivesAWrongResult(failsRepeatedly: Bool) throws {
    let outcome = try failEachCall(failsRepeatedly: failsRepeatedly, disturbed: true)
    #expect(outcome.captured >= 1 && outcome.failed > 10 / Sampling.stride(Self.sample))
  }
}
