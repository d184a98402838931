import DatabaseCapture
import Glibc
import SystemIO
import TestSupport
import Testing

/// Every call of a capture fails once, and from then on: what is given is never wrong.
@Suite struct CaptureFaultTests {
  private struct Outcome {
    var captured = 0
    var failed = 0
  }

  private func failEachCall(staysBroken: Bool, disturbed: Bool) throws -> Outcome {
    let rig = try Fixture("faults", inMemory: true)
    try rig.write(content(5000, 1), .database)
    try rig.write(log(salt: 1, 3000), .log)
    try rig.write(journal(200), .journal)
    try rig.write(content(100, 2), .sharedMemory)
    var outcome = Outcome()
    for call in 1... {
      try rig.age()
      // Later than the change, so that a further one shows.
      Host.pause(seconds: 0.005)
      let shelf = Shelf()
      let plan = Faults.Plan(at: call, number: EIO, staysBroken: staysBroken)
      if disturbed { disturb(shelf, rig) }
      if let result = attempt(rig, shelf, plan, &outcome) {
        #expect(result.members.map(\.member) == [.database, .log, .journal])
        #expect(shelf.contents[.database] == content(5000, 1))
        #expect(shelf.contents[.log] == log(salt: 1, 3000))
        #expect(shelf.contents[.journal] == journal(200))
      }
      #expect(try rig.spool.names() == [])
      if !plan.hasFired { return outcome }
    }
    return outcome
  }

  /// Makes watching fail, by calls that do not fail themselves.
  private func disturb(_ shelf: Shelf, _ rig: Fixture) {
    shelf.beforeReading = { member, times in
      guard member == .database && times < 3 else { return }
      try Faults.inject(Faults.Plan(at: .max, number: 0)) {
        try rig.source.setPermissions(times == 1 ? 0o600 : 0o644, of: "db")
      }
      Host.pause(seconds: 0.005)
    }
  }

  private func attempt(
    _ rig: Fixture, _ shelf: Shelf, _ plan: Faults.Plan, _ outcome: inout Outcome
  ) -> CaptureResult? {
    do {
      let result = try Faults.inject(plan) { try rig.capture(shelf) }
      outcome.captured += 1
      return result
    } catch {
      #expect((error as? SystemError)?.number == EIO)
      outcome.failed += 1
      return nil
    }
  }

  @Test(arguments: [false, true])
  func whileWatching(staysBroken: Bool) throws {
    let outcome = try failEachCall(staysBroken: staysBroken, disturbed: false)
    #expect(outcome.captured >= 1 && outcome.failed > 10)
  }

  @Test(arguments: [false, true])
  func underLocks(staysBroken: Bool) throws {
    let outcome = try failEachCall(staysBroken: staysBroken, disturbed: true)
    #expect(outcome.captured >= 1 && outcome.failed > 10)
  }
}
