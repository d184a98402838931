import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A prune in which each call of the storage fails, once (a transient error) or from then on (a
/// crash). Every snapshot stays complete, and the next prune does the rest.
struct PruneFaultTests {
  @Test(arguments: [false, true]) func eachFailedCallLeavesAllSnapshotsComplete(
    failsRepeatedly: Bool
  ) throws {
    let original = try PruneFixture.withUnusedPacks()
    for number in Sampling.steps(7, "prune") {
      let fixture = try original.copy()
      fixture.storage.fail(at: number, failsRepeatedly: failsRepeatedly)
      let error = storeError { try fixture.prune() }
      let hasFailed = fixture.storage.hasFailed
      fixture.storage.fail(at: nil)
      #expect(try fixture.lost().isEmpty, "call \(number), \(error?.description ?? "no error")")
      let next = try fixture.pruneLater()
      #expect(next.waitingPacks == 0, "call \(number)")
      #expect(try fixture.lost().isEmpty, "call \(number), after the next prune")
      let findings = try fixture.findings()
      #expect(findings.isEmpty, "call \(number): \(findings)")
      #expect(try fixture.prune().plan.isIdle, "call \(number)")
      if !hasFailed { return }
    }
  }
}
