import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Removals of snapshots and repairs under hostile conditions: clock jumps, a store that becomes
/// read-only, and a pack that vanishes. No snapshot loses a file that an undisturbed run keeps, and
/// the next run completes the work.
struct HostileWorkTests {
  static let jumps = [-31_536_000.0, -3700, 3700, 31_536_000]

  /// The files that no snapshot has after an undisturbed run.
  private func lost(by work: HostileWork, _ original: PruneFixture) throws -> Set<String> {
    let fixture = try original.copy()
    try work.run(fixture)
    return try fixture.lostFiles()
  }

  /// The clock of the storage jumps, and a prune by another program then removes each expired
  /// lease.
  @Test(arguments: HostileWork.allCases, jumps)
  func jumpingClockAtMostEndsTheWork(_ work: HostileWork, seconds: Double) throws {
    let original = try work.prepare()
    let expected = try lost(by: work, original)
    try HostileSweep(label: "\(work), a clock that jumps by \(seconds) s").run { number, comment in
      let fixture = try original.copy()
      let counter = fixture.storage.act(at: number) { fixture.jump(by: seconds) }
      let error = storeError { try work.run(fixture) }
      fixture.storage.calm()
      #expect(
        error.map { [.leaseLost, .busy].contains($0.code) } ?? true, "\(comment): \(error as Any)")
      #expect(try fixture.lostFiles().isSubset(of: expected), comment)
      let isOver = counter.count < number
      try work.runLater(fixture, comment)
      #expect(try fixture.lostFiles() == expected, comment)
      try fixture.repairAndPrune(comment)
      #expect(try fixture.lostFiles() == expected, comment)
      return !isOver
    }
  }

  @Test(arguments: HostileWork.allCases) func readOnlyVolumeKeepsEverything(_ work: HostileWork)
    throws
  {
    let original = try work.prepare()
    let expected = try lost(by: work, original)
    try HostileSweep(label: "\(work), a read-only store").run { number, comment in
      let fixture = try original.copy()
      let refused = fixture.storage.becomeReadOnly(at: number)
      let error = storeError { try work.run(fixture) }
      fixture.storage.calm()
      let isOver = refused.counter.count < number
      let isDone = error == nil && refused.areOfLeases
      #expect(isDone || error?.errorCode == .readOnly, "\(comment): \(error as Any)")
      #expect(try fixture.lostFiles().isSubset(of: expected), comment)
      try work.runLater(fixture, comment)
      #expect(try fixture.lostFiles() == expected, comment)
      return !isOver
    }
  }

  /// A pack vanishes at any moment: only its own data is lost, and the repairs lead to a repository
  /// without damage.
  @Test(arguments: HostileWork.allCases) func vanishedPackLosesOnlyItsOwnData(_ work: HostileWork)
    throws
  {
    let original = try work.prepare()
    for pack in try original.packs().sorted() {
      let without = try original.copy()
      try without.memory.remove(RepositoryLayout.tested.pack(pack))
      try without.repairAndPrune()
      let expected = try lost(by: work, original).union(without.lostFiles())
      let label = "\(work), \(pack.hex.prefix(8)) vanishes"
      try HostileSweep(label: label, stride: 17).run { number, comment in
        let fixture = try original.copy()
        let counter = fixture.storage.act(at: number) { [memory = fixture.memory] in
          try? memory.remove(RepositoryLayout.tested.pack(pack))
        }
        let error = storeError { try work.run(fixture) }
        fixture.storage.calm()
        #expect(error.map { $0.kind == .damaged } ?? true, "\(comment): \(error as Any)")
        #expect(try fixture.lostFiles().isSubset(of: expected), comment)
        if counter.count < number { return false }
        try fixture.repairAndPrune(comment)
        #expect(try fixture.lostFiles().isSubset(of: expected), comment)
        return true
      }
    }
  }
}
