import Lifecycle
import SystemIO
import TestSupport
import Testing

/// Every call that a purge makes fails once: units are whole or gone, databases have their logs, and
/// nothing is passed over in silence.
@Suite(.spreadScans) struct PurgeFaultTests {
  private static let caches: [ByteString] = [
    "Library/Caches/img.db", "Library/Caches/img.db-wal", "Library/Caches/img.db-shm",
    "Library/Caches/one", "Library/Caches/w/fsCachedData/1", "Library/Caches/w/fsCachedData/in/2",
  ]
  private static let kept: Set<ByteString> = ["Documents/a", "Library/Preferences/p.plist"]

  @Test(arguments: [(5, false), (5, true), (13, false), (28, true)] as [(Int32, Bool)])
  func eachCallMayFail(number: Int32, staysBroken: Bool) throws {
    let rig = try PurgeFixture()
    for path in Self.kept { try rig.put(path, kib: 1) }
    var call = 0
    while true {
      call += 1
      for path in Self.caches { try rig.put(path, kib: 1) }
      let plan = try rig.plan()
      #expect(plan.volumes[0].chosen.count == 3)
      let fault = Faults.Plan(at: call, number: number, staysBroken: staysBroken)
      let report = Faults.inject(fault) {
        PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
      }
      let left = try rig.files().filter { !$0.isWithin(".sandboxctl") }
      expectWhole(left, "call \(call)")
      if left != Self.kept {
        #expect(!report.failed.isEmpty || !report.changed.isEmpty, "call \(call): \(left)")
      }
      // The next one, without faults, ends it; the one after it what that took back.
      for _ in 1...2 {
        _ = PurgeOperation(try rig.plan(), PurgeOptions(sign: { _, _ in nil })).run()
      }
      #expect(try rig.files() == Self.kept, "call \(call)")
      if !fault.hasFired { break }
      guard call < 200 else {
        Issue.record("it does not end")
        return
      }
    }
    #expect(call > 20)
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
