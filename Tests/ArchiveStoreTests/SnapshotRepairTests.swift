import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Repaired snapshots: snapshots that have lost data are stored again without it.
struct SnapshotRepairTests {
  /// A lost blob, the expected notes, and the paths that disappear.
  struct Loss: Sendable, CustomTestStringConvertible {
    let blob: String
    let notes: [PathNote]
    var gone: Set<ByteString>
    /// Whether the entry stays, but loses an attribute.
    var keepsEntry = false

    init(_ blob: String, _ path: ByteString, _ note: String, gone: Set<ByteString>? = nil) {
      self.blob = blob
      notes = [PathNote(path: path, note: note)]
      self.gone = gone ?? [path]
    }

    var testDescription: String { blob }
  }

  private static let paged: Set<ByteString> = Set(
    ["p1", "p2", "q1", "q2", "r1", "r2"].map { ByteString("folders/d/paged/" + $0) })

  static let losses: [Loss] = [
    Loss("a", "folders/d/a", "its content is lost"),
    Loss("list", "folders/d/big", "its content is lost"),
    Loss("h", "folders/d/big", "its content is lost"),
    Loss("c", "folders/d/sub/c", "its content is lost"),
    Loss("attribute", "folders/d/named", "its attribute 'user.note' is lost", gone: []),
    Loss(
      "sub", "folders/d/sub", "the directory is lost",
      gone: ["folders/d/sub", "folders/d/sub/c", "folders/d/sub/e"]),
    Loss(
      "paged", "folders/d/paged", "the directory is lost",
      gone: paged.union(["folders/d/paged"])),
    Loss(
      "page p", "folders/d/paged",
      "entries of the directory are lost, the names up to 'p2'",
      gone: ["folders/d/paged/p1", "folders/d/paged/p2"]),
    Loss(
      "page q", "folders/d/paged",
      "entries of the directory are lost, the names after 'p2' up to 'q2'",
      gone: ["folders/d/paged/q1", "folders/d/paged/q2"]),
  ]

  @Test(arguments: losses) func lossIsOmittedAndEverythingElseStays(loss: Loss) throws {
    let fixture = try SnapshotRepairFixture()
    try fixture.lose(loss.blob)
    let (report, repaired) = try fixture.repair()
    #expect(report.snapshots == 1 && report.repaired == 1 && report.removed == 0)
    let new = try #require(repaired.first?.new)
    #expect(repaired[0].lost == loss.notes && repaired[0].losses == 1)
    #expect(try fixture.affected() == [fixture.stored.id])
    // A repaired snapshot is listed after the old one, which has the same time and sequence.
    #expect(try fixture.snapshots() == [fixture.stored.id, new.id])
    let entries = try fixture.entries(of: new)
    #expect(Set(fixture.entries.keys).subtracting(entries.keys) == loss.gone)
    for (path, entry) in entries { try expectSame(entry, fixture.entries[path]) }
    try expectSame(new, as: fixture, besides: loss.notes)
    let totals = new.snapshot.totals
    let files = entries.values.compactMap { entry in
      if case .file(let content) = entry.node { content.size } else { nil }
    }
    #expect(totals.entries == entries.count - 1 && totals.files == files.count)
    #expect(totals.bytes == files.reduce(0, +))
    #expect(totals.classes.reduce(0) { $0 + $1.bytes } == totals.bytes)
  }

  /// Expects the same encoding, apart from trees of directories and lost attributes.
  private func expectSame(_ entry: TreeEntry, _ before: TreeEntry?) throws {
    var before = try #require(before)
    if case .directory = before.node { before.node = entry.node }
    before.attributes = entry.attributes
    #expect(try entry.encoded() == before.encoded())
  }

  private func expectSame(
    _ new: StoredSnapshot, as fixture: SnapshotRepairFixture, besides notes: [PathNote]
  ) throws {
    var before = fixture.stored.snapshot
    let original = Snapshot.Original(repository: fixture.repository.id, id: fixture.stored.id)
    #expect(new.snapshot.original == original)
    #expect(new.snapshot.unreadable.sorted { $0.path < $1.path } == new.snapshot.unreadable)
    #expect(Set(new.snapshot.unreadable) == Set(before.unreadable + notes))
    #expect(new.snapshot.totals.stored == before.totals.stored)
    (before.tree, before.original) = (new.snapshot.tree, new.snapshot.original)
    (before.unreadable, before.totals) = (new.snapshot.unreadable, new.snapshot.totals)
    #expect(new.snapshot == before)
    #expect(try fixture.repository.snapshot(new.id) == new)
  }

  /// An empty snapshot would count as the newest backup.
  @Test(arguments: [false, true]) func snapshotWithoutItsRootIsNotReplaced(isPinned: Bool) throws {
    let fixture = try SnapshotRepairFixture()
    if isPinned { _ = try fixture.repository.pin([fixture.stored.id]) }
    try fixture.lose("root")
    let (report, repaired) = try fixture.repair()
    #expect((report.repaired, report.lost, report.isIdle) == (0, 1, false))
    let lost = try #require(repaired.first)
    #expect(lost.isLost && lost.new == nil && !lost.isRemoved)
    #expect(lost.lost == [PathNote(path: "", note: "everything is lost")])
    #expect((report.lostThatStay, report.lostThatArePinned) == (1, isPinned ? 1 : 0))
    #expect(try RepositoryListing.snapshots(fixture.memory) == [fixture.stored.id])

    let (after, removed) = try fixture.repair(forget: true)
    #expect(removed.first?.isRemoved == !isPinned)
    #expect(after.lostThatStay == (isPinned ? 1 : 0))
    #expect(after.lostThatArePinned == (isPinned ? 1 : 0))
    #expect(
      try RepositoryListing.snapshots(fixture.memory) == (isPinned ? [fixture.stored.id] : []))
  }

  @Test func intactRepositoryIsNotChanged() throws {
    let fixture = try SnapshotRepairFixture()
    let packs = try RepositoryListing.packs(fixture.memory)
    let (report, repaired) = try fixture.repair(forget: true)
    #expect(report.isIdle && report.snapshots == 1 && repaired.isEmpty && report.isUnchecked)
    #expect(try fixture.snapshots() == [fixture.stored.id])
    #expect(try RepositoryListing.packs(fixture.memory) == packs)
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty)
  }

  @Test func dryRunChangesNothing() throws {
    let fixture = try SnapshotRepairFixture()
    try fixture.lose("sub")
    fixture.storage.state.withLock { $0.events = [] }
    let dry = try fixture.repair(dry: true, forget: true)
    let changes = fixture.storage.state.withLock(\.events).filter { event in
      ["commit", "rename", "remove", "touch", "start", "folders"].contains { event.hasPrefix($0) }
    }
    #expect(changes.isEmpty, "\(changes)")
    #expect(dry.repaired.count == 1 && dry.repaired[0].new == nil && !dry.repaired[0].isRemoved)
    #expect(dry.report.repaired == 1 && dry.report.removed == 0)
    #expect(try fixture.repair().repaired.map(\.lost) == dry.repaired.map(\.lost))
  }

  /// The same losses result in the same snapshot, so a second repair adds nothing.
  @Test func repairIsRepeatable() throws {
    let fixture = try SnapshotRepairFixture()
    try fixture.lose("a")
    let new = try fixture.repair().repaired.map(\.new)
    let packs = try RepositoryListing.packs(fixture.memory)
    #expect(try fixture.repair().repaired.map(\.new) == new)
    #expect(try fixture.snapshots().count == 2)
    #expect(try RepositoryListing.packs(fixture.memory) == packs)
    #expect(try fixture.repair(of: Set(new.compactMap { $0?.id })).report.isIdle)
  }

  @Test func oldSnapshotIsRemovedOnRequest() throws {
    let fixture = try SnapshotRepairFixture()
    try fixture.lose("page q")
    let (report, repaired) = try fixture.repair(forget: true)
    #expect(report.removed == 1 && repaired.map(\.isRemoved) == [true])
    #expect(try fixture.snapshots() == repaired.compactMap { $0.new?.id })
    #expect(try fixture.affected().isEmpty)
    #expect(try fixture.repair(forget: true).report.isIdle)
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty)
  }

  @Test(arguments: [false, true]) func newSnapshotIsPinnedLikeTheOldOne(forget: Bool) throws {
    let fixture = try SnapshotRepairFixture()
    try fixture.repository.pin([fixture.stored.id])
    try fixture.lose("b")
    let repaired = try fixture.repair(forget: forget).repaired
    let new = try #require(repaired.first?.new?.id)
    #expect(repaired[0].isPinned && repaired[0].isRemoved == forget)
    #expect(try fixture.repository.pins() == (forget ? [new] : [new, fixture.stored.id]))
    #expect(try fixture.snapshots().count == (forget ? 1 : 2))
  }

  @Test func onlyNamedSnapshotsAreRepaired() throws {
    var fixture = try SnapshotRepairFixture()
    let other = try fixture.repository.back(up: [("other", [1, 2, 3])], sequence: 8)
    try fixture.lose("a")
    #expect(try fixture.repair(of: [other.id]).report.isIdle)
    #expect(try fixture.snapshots().count == 2)
    #expect(try fixture.repair(of: [fixture.stored.id]).report.repaired == 1)
    fixture = try fixture.copy()
    #expect(try fixture.repair().report.snapshots == 3)
  }

  @Test func unreadableSnapshotIsNamedAndStays() throws {
    let fixture = try SnapshotRepairFixture()
    try fixture.memory.change(RepositoryLayout.tested.snapshot(fixture.stored.id)) { $0[20] ^= 1 }
    let (report, repaired) = try fixture.repair(forget: true)
    #expect(report.unreadable.count == 1 && !report.isIdle && repaired.isEmpty)
    #expect(try RepositoryListing.snapshots(fixture.memory) == [fixture.stored.id])
  }

  @Test func anotherProgramHoldsThePruneLease() throws {
    let fixture = try SnapshotRepairFixture()
    try fixture.lose("a")
    let right = try #require(try PruneLease(Lease(fixture.memory)))
    #expect(storeError { try fixture.repair() }?.code == .busy)
    right.release()
    #expect(try fixture.repair().report.repaired == 1)
  }
}
