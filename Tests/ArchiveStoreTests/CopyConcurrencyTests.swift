import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Copies and mirrors during prunes of either repository: every snapshot of the target is complete.
struct CopyConcurrencyTests {
  /// The repository that is pruned during a copy.
  enum Side: Sendable, CaseIterable {
    case source, sourceWithoutLease, target
  }

  /// A prune of the source waits for the lease of a running copy.
  @Test func aPruneOfTheSourceRemovesNothingThatIsNeeded() throws {
    var fixture = try CopyFixture()
    let memory = fixture.source.memory
    try fixture.source.forget(0)
    Self.prune(memory, at: "range packs/", of: fixture.source.storage)
    let report = try fixture.copy()
    #expect(report.copied.count == 2 && !report.hasDamage)
    try fixture.expectComplete(2)
    #expect(try fixture.source.lost().isEmpty)
  }

  /// Without a lease, packs may disappear during the copy: their blobs are then read from the new
  /// packs.
  @Test func packsOfAReadOnlySourceMayDisappear() throws {
    var fixture = try CopyFixture()
    try fixture.source.forget(0)
    Self.prune(fixture.source.memory, at: "range packs/", of: fixture.source.storage)
    let source = try Repository.open(ReadOnlyStorage(fixture.source.storage))
    let before = try fixture.source.packs()
    let report = try CopyFixture.copy(source, fixture.target.repository)
    #expect(try fixture.source.packs() != before, "the prune removed packs")
    #expect(report.copied.count == 2 && report.incomplete.isEmpty)
    try fixture.expectComplete(2)
  }

  /// A prune of the target during a copy removes nothing that the copy relies on.
  @Test(arguments: ["commit packs/", "commit index/", "commit snapshots/"])
  func aPruneOfTheTargetRemovesNothingThatIsNeeded(moment: String) throws {
    var fixture = try CopyFixture()
    // Data that is in no snapshot, and on which the copy relies.
    try fixture.target.backUp(PruneFixture.files(0..<6))
    try fixture.target.forget(0)
    Self.prune(fixture.target.memory, at: moment, of: fixture.target.storage)
    let report = try fixture.copy()
    #expect(report.copied.count == 3)
    try fixture.expectComplete(3)
    fixture.target.clock.advance(by: 7300)
    _ = try RepositoryPrune(Repository.open(fixture.target.memory)).run()
    try fixture.expectComplete(3)
  }

  /// A prune runs before each call of a copy in turn.
  @Test(arguments: Side.allCases) func aPruneBeforeAnyCallOfACopy(of side: Side) throws {
    var original = try CopyFixture()
    try original.source.forget(0)
    // Data that is in no snapshot, and on which the copy relies as long as it exists.
    try original.target.backUp(PruneFixture.files(4..<7))
    try original.target.forget(0)
    for number in Sampling.steps(5, "copy beside a prune") {
      let fixture = try original.copied()
      let pruned = side == .target ? fixture.target : fixture.source
      let call = OneCall(number)
      Self.prune(pruned.memory, at: "", of: pruned.storage, call)
      let source = try Repository.open(
        side == .sourceWithoutLease
          ? ReadOnlyStorage(fixture.source.storage) : fixture.source.storage)
      let report = try CopyFixture.copy(source, fixture.target.repository)
      pruned.storage.state.withLock { $0.action = nil }
      let text = "\(side), call \(number)"
      #expect(report.copied.count == 2 && !report.hasDamage, "\(text)")
      pruned.clock.advance(by: 7300)
      _ = try Self.prune(pruned.memory)
      try fixture.expectComplete(2, "\(text)")
      #expect(try fixture.source.lost().isEmpty && fixture.source.damage().isEmpty, "\(text)")
      if !call.isTaken { return }
    }
  }

  /// A prune runs before each call of a mirror in turn. Later runs make the mirror exact.
  @Test(arguments: Side.allCases) func aPruneBeforeAnyCallOfAMirror(of side: Side) throws {
    var original = try MirrorFixture()
    _ = try original.mirror()
    try original.source.backUp(PruneFixture.files(60..<63))
    try original.source.forget(2)
    try original.forgetInMirror(2)
    for number in Sampling.steps(9, "mirror beside a prune") {
      let fixture = try original.copied()
      let (memory, storage) =
        side == .target
        ? (fixture.memory, fixture.storage) : (fixture.source.memory, fixture.source.storage)
      let call = OneCall(number)
      Self.prune(memory, at: "", of: storage, call)
      let source = try Repository.open(
        side == .sourceWithoutLease
          ? ReadOnlyStorage(fixture.source.storage) : fixture.source.storage)
      let report = try fixture.mirror(from: source)
      storage.state.withLock { $0.action = nil }
      let text = "\(side), call \(number)"
      #expect(!report.hasDamage && report.refusal == nil, "\(text)")
      #expect(try fixture.lost().isEmpty && fixture.snapshots() == 4, "\(text)")
      for _ in 0..<2 {
        fixture.source.clock.advance(by: 7300)
        _ = try Self.prune(fixture.source.memory)
        _ = try fixture.mirror()
      }
      try fixture.expectExact("\(text)")
      #expect(try fixture.lost().isEmpty && fixture.damage().isEmpty, "\(text)")
      if !call.isTaken { return }
    }
  }

  /// Prunes a repository as far as possible.
  @discardableResult
  private static func prune(_ memory: MemoryStorage) throws -> RepositoryPrune.Report {
    var request = PruneRequest()
    request.maxUnused = .bytes(0)
    request.mayRemoveAll = true
    return try RepositoryPrune(Repository.open(memory), request).run()
  }

  /// Runs one prune of a repository before a call whose event begins with `moment`.
  private static func prune(
    _ memory: MemoryStorage, at moment: String, of storage: WatchedStorage,
    _ call: OneCall = OneCall()
  ) {
    storage.state.withLock { state in
      state.action = { event in
        guard event.hasPrefix(moment), call.take() else { return }
        _ = try? Self.prune(memory)
      }
    }
  }
}
