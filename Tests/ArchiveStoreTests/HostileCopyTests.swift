import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Copies and mirrors under hostile conditions: clock jumps, a target that becomes read-only, and
/// packs that vanish on either side. Each snapshot of the target is complete.
struct HostileCopyTests {
  enum Side: Sendable, CaseIterable {
    case source, target

    func of(_ fixture: CopyFixture) -> PruneFixture {
      self == .source ? fixture.source : fixture.target
    }
  }

  /// A source with data that a prune removes, and a target with data on which a copy relies.
  private func original() throws -> CopyFixture {
    var fixture = try CopyFixture()
    try fixture.source.forget(0)
    try fixture.target.backUp(PruneFixture.files(4..<7))
    try fixture.target.forget(0)
    return fixture
  }

  @Test(arguments: Side.allCases, HostileWorkTests.jumps)
  func jumpingClockAtMostEndsACopy(of side: Side, seconds: Double) throws {
    let original = try original()
    try HostileSweep(label: "copy, the \(side)'s clock jumps by \(seconds) s").run {
      number, comment in
      let fixture = try original.copied()
      let disturbed = side.of(fixture)
      let counter = disturbed.storage.act(at: number) { disturbed.jump(by: seconds) }
      let error = storeError { try fixture.copy() }
      disturbed.storage.calm()
      #expect(
        error.map { [.leaseLost, .busy].contains($0.code) } ?? true, "\(comment): \(error as Any)")
      #expect(try fixture.differences().isEmpty && fixture.target.damage().isEmpty, comment)
      #expect(try fixture.source.lost().isEmpty && fixture.source.damage().isEmpty, comment)
      if counter.count < number { return false }
      for _ in 0..<3 {
        for one in [fixture.source, fixture.target] {
          one.clock.advance(by: 3700)
          _ = storeError { try RepositoryPrune(Repository.open(one.memory)).run() }
        }
        _ = storeError { try fixture.copy() }
      }
      #expect(try !fixture.copy(check: true).hasDamage, comment)
      try fixture.expectComplete(2, comment)
      return true
    }
  }

  @Test(arguments: HostileWorkTests.jumps) func jumpingClockAtMostEndsAMirror(seconds: Double)
    throws
  {
    var original = try MirrorFixture()
    _ = try original.mirror()
    try original.source.backUp(PruneFixture.files(60..<63))
    try original.source.forget(2)
    _ = try original.source.prune()
    for ofSource in [true, false] {
      let label = "mirror, a clock that jumps by \(seconds) s, of the source: \(ofSource)"
      try HostileSweep(label: label, stride: 17).run { number, comment in
        let fixture = try original.copied()
        let storage = ofSource ? fixture.source.storage : fixture.storage
        let memory = ofSource ? fixture.source.memory : fixture.memory
        let counter = storage.act(at: number) { [clock = fixture.source.clock] in
          clock.advance(by: seconds)
          guard let other = try? Repository.open(memory) else { return }
          _ = try? RepositoryPrune(other).run()
        }
        let error = storeError { try fixture.mirror() }
        storage.calm()
        #expect(
          error.map { [.leaseLost, .busy].contains($0.code) } ?? true,
          "\(comment): \(error as Any)")
        #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, comment)
        if counter.count < number { return false }
        try fixture.mirrorLater(comment)
        return true
      }
    }
  }

  /// The target becomes read-only at any moment.
  @Test func readOnlyMirrorKeepsEverything() throws {
    var original = try MirrorFixture()
    let empty = try original.copied()
    _ = try original.mirror()
    try original.source.backUp(PruneFixture.files(60..<63))
    try original.source.forget(2)
    _ = try original.source.prune()
    for (what, first) in [("a new mirror", empty), ("a mirror", original)] {
      try HostileSweep(label: "\(what) that becomes read-only", stride: 17).run { number, comment in
        let fixture = try first.copied()
        let refused = fixture.storage.becomeReadOnly(at: number)
        let error = storeError { try fixture.mirror() }
        fixture.storage.calm()
        let isOver = refused.counter.count < number
        let isDone = error == nil && refused.areOfLeases
        #expect(isDone || error?.errorCode == .readOnly, "\(comment): \(error as Any)")
        #expect(try fixture.lost().isEmpty, comment)
        try fixture.mirrorLater(comment)
        return !isOver
      }
    }
  }

  // MARK: - Packs that vanish

  /// A pack of the source vanishes: the copies are complete, and the snapshots that need the pack
  /// are reported.
  @Test(arguments: [false, true]) func vanishedPackOfTheSource(isChecking: Bool) throws {
    let original = try original()
    for pack in try original.source.packs().sorted() {
      let label = "copy, check: \(isChecking), the source's \(pack.hex.prefix(8)) vanishes"
      try HostileSweep(label: label, stride: 17).run { number, comment in
        let fixture = try original.copied()
        let counter = fixture.source.storage.act(at: number) { [memory = fixture.source.memory] in
          try? memory.remove(RepositoryLayout.tested.pack(pack))
        }
        let error = storeError { try fixture.copy(check: isChecking) }
        fixture.source.storage.calm()
        #expect(error.map { $0.kind == .damaged } ?? true, "\(comment): \(error as Any)")
        #expect(try fixture.differences().isEmpty && fixture.target.damage().isEmpty, comment)
        return counter.count >= number
      }
    }
  }

  /// A pack of the target vanishes: the copies lack only data of that pack, which a check finds.
  @Test(arguments: [false, true]) func vanishedPackOfTheTarget(isChecking: Bool) throws {
    let original = try original()
    for pack in try original.target.packs().sorted() {
      let label = "copy, check: \(isChecking), the target's \(pack.hex.prefix(8)) vanishes"
      try HostileSweep(label: label, stride: 17).run { number, comment in
        let fixture = try original.copied()
        let counter = fixture.target.storage.act(at: number) { [memory = fixture.target.memory] in
          try? memory.remove(RepositoryLayout.tested.pack(pack))
        }
        let error = storeError { try fixture.copy(check: isChecking) }
        fixture.target.storage.calm()
        #expect(error.map { $0.kind == .damaged } ?? true, "\(comment): \(error as Any)")
        let shared = Set(PruneFixture.files(4..<7).map(\.name))
        let differences = try fixture.differences()
        #expect(
          differences.allSatisfy { text in shared.contains { text.hasSuffix(": \($0)") } },
          "\(comment): \(differences)")
        if counter.count < number { return false }
        try fixture.expectRepair(comment)
        return true
      }
    }
  }

  /// A pack vanishes on either side of a mirror. If it was the source's, the mirror's snapshots
  /// stay complete; if it was the mirror's, the next run copies it again.
  @Test func vanishedPackOfAMirror() throws {
    var original = try MirrorFixture()
    _ = try original.mirror()
    try original.source.backUp(PruneFixture.files(60..<63))
    for (ofSource, packs) in [
      (true, try original.source.packs()), (false, try RepositoryListing.packs(original.memory)),
    ] {
      for pack in packs.sorted() {
        let label = "mirror, \(pack.hex.prefix(8)) vanishes, of the source: \(ofSource)"
        try HostileSweep(label: label, stride: 29).run { number, comment in
          let fixture = try original.copied()
          let storage = ofSource ? fixture.source.storage : fixture.storage
          let memory = ofSource ? fixture.source.memory : fixture.memory
          let counter = storage.act(at: number) { [memory] in
            try? memory.remove(RepositoryLayout.tested.pack(pack))
          }
          let error = storeError { try fixture.mirror() }
          storage.calm()
          #expect(error.map { $0.kind == .damaged } ?? true, "\(comment): \(error as Any)")
          if ofSource {
            #expect(try fixture.lost().isEmpty, comment)
          } else {
            try fixture.mirrorLater(comment)
          }
          return counter.count >= number
        }
      }
    }
  }
}

extension CopyFixture {
  /// Expects that a check of the target and the repairs lead to a complete next copy. Repaired
  /// snapshots, which lack the lost data, stay beside it.
  fileprivate func expectRepair(_ comment: Comment) throws {
    try target.repairAndPrune(comment)
    let report = try copy(check: true)
    #expect(!report.hasDamage, comment)
    let complete = Set(source.snapshots.map(\.stored.snapshot.tree))
    let (whole, repaired) = try copies().reduce(into: ([StoredSnapshot](), [StoredSnapshot]())) {
      if complete.contains($1.snapshot.tree) { $0.0.append($1) } else { $0.1.append($1) }
    }
    #expect(Set(whole.map(\.snapshot.tree)) == complete, comment)
    #expect(
      repaired.allSatisfy { $0.snapshot.original?.repository == target.repository.id }, comment)
    let differences = try differences()
    #expect(differences.count == repaired.count, "\(comment): \(differences)")
  }
}

extension MirrorFixture {
  /// Mirrors hours later, so that leases have expired: the mirror is then exact.
  fileprivate func mirrorLater(_ comment: Comment) throws {
    for _ in 0..<3 {
      source.clock.advance(by: 3700)
      _ = storeError { try source.prune() }
      _ = storeError { try mirror() }
    }
    let last = try mirror()
    #expect(!last.hasDamage && last.waitingPacks == 0, comment)
    try expectExact(comment)
    #expect(try lost().isEmpty && damage().isEmpty, comment)
  }
}
