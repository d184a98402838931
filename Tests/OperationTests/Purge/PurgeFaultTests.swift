import Purge
import SystemIO
import TestSupport
import Testing

/// Each call of a purge fails once: units are deleted completely or not at all, databases keep
/// their logs, and every failure is reported. `make test` tests a sample of the calls.
@Suite(.spreadScans) struct PurgeFaultTests {
  private static let caches: [ByteString] = [
    "Library/Caches/img.db", "Library/Caches/img.db-wal", "Library/Caches/img.db-shm",
    "Library/Caches/one", "Library/Caches/w/fsCachedData/1", "Library/Caches/w/fsCachedData/in/2",
  ]
  private static let kept: Set<ByteString> = ["Documents/a", "Library/Preferences/p.plist"]

  @Test(arguments: [(5, false), (5, true), (13, false), (28, true)] as [(Int32, Bool)])
  func aFailedCallDeletesUnitsWholeOrNotAtAll(number: Int32, failsRepeatedly: Bool) throws {
    let fixture = try PurgeFixture()
    for path in Self.kept { try fixture.put(path, kib: 1) }
    var last = 0
    for call in Sampling.steps(5, "purge, error \(number)") {
      last = call
      for path in Self.caches { try fixture.put(path, kib: 1) }
      let plan = try fixture.plan()
      #expect(plan.volumes[0].chosen.count == 3)
      let fault = Faults.Plan(at: call, number: number, failsRepeatedly: failsRepeatedly)
      let report = Faults.inject(fault) {
        PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
      }
      let left = try fixture.files().filter { !$0.isWithin(".sandboxctl") }
      expectWhole(left, "call \(call)")
      if left != Self.kept {
        #expect(!report.failed.isEmpty || !report.changed.isEmpty, "call \(call): \(left)")
      }
      // The next purge, without faults, completes it; the one after it deletes the entries that the
      // second one rolled back.
      for _ in 1...2 {
        _ = PurgeOperation(try fixture.plan(), PurgeOptions(sign: { _, _ in nil })).run()
      }
      #expect(try fixture.files() == Self.kept, "call \(call)")
      if !fault.hasFired { break }
      guard call < 200 else {
        Issue.record("the loop does not end")
        return
      }
    }
    #expect(last > 20)
  }

  private func expectWhole(_ left: Set<ByteString>, _ what: String) {
    #expect(left.isSuperset(of: Self.kept), "\(what)")
    let hasDatabase = left.contains("Library/Caches/img.db")
    if hasDatabase { #expect(left.contains("Library/Caches/img.db-wal"), "\(what)") }
    let directory = Self.caches.suffix(2)
    let there = directory.filter { left.contains($0) }
    #expect(there.isEmpty || there.count == directory.count, "\(what): \(left)")
  }
}
