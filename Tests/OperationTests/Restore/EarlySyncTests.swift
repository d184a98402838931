import Dispatch
import Synchronization
import SystemIO
import Testing

@testable import Restore

/// Restored data is written to the disk while further data is restored.
@Suite(.spreadScans) struct EarlySyncTests {
  /// A sync that blocks until it is released.
  private final class Gate: Sendable {
    let begins = DispatchSemaphore(value: 0)
    let mayEnd = DispatchSemaphore(value: 0)
    private let passed = Atomic<Int>(0)

    var count: Int { passed.load(ordering: .relaxed) }

    func pass() {
      begins.signal()
      mayEnd.wait()
      passed.add(1, ordering: .relaxed)
    }
  }

  @Test func onePortionIsSyncedAtATime() throws {
    let gate = Gate()
    let early = try EarlySync { gate.pass() }
    early.record(EarlySync.portion - 1)
    early.record(1)
    gate.begins.wait()
    // While one sync runs, no other begins, however much data is written.
    early.record(3 * EarlySync.portion)
    early.record(EarlySync.portion)
    gate.mayEnd.signal()
    // The data written in the meantime starts the next sync as soon as that one ends; each attempt
    // gives it time.
    var tries = 0
    while gate.begins.wait(timeout: .now() + .milliseconds(10)) == .timedOut, tries < 60_000 {
      early.record(1)
      tries += 1
    }
    gate.mayEnd.signal()
    try early.finish()
    #expect(gate.count == 2)
  }

  @Test func lessThanAPortionIsNotSyncedEarly() throws {
    let gate = Gate()
    gate.mayEnd.signal()
    let early = try EarlySync { gate.pass() }
    for _ in 1..<8 { early.record(EarlySync.portion / 8) }
    try early.finish()
    #expect(gate.count == 0)
  }

  /// The disk may report an error only once, so it must not be lost.
  @Test func aSyncErrorIsThrownAtTheEnd() throws {
    let early = try EarlySync { () throws(SystemError) in
      throw SystemError(.sync, "staged", number: 5)
    }
    early.record(EarlySync.portion)
    let error = #expect(throws: SystemError.self) { try early.finish() }
    #expect(error?.number == 5)
  }
}
