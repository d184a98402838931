import ArchiveStore
import SystemIO
import TestSupport
import Testing

@testable import Backup
@testable import Restore

/// Notes on more paths than fit into a snapshot.
@Suite(.spreadScans) struct NoteLimitTests {
  private static func remarks(_ count: Int, in directory: ByteString) -> [PathRemark] {
    (0..<count).map {
      PathRemark(
        path: directory.appending(ByteString("sub/file \($0)")), remark: "permission denied")
    }
  }

  @Test func aFewNotesAreAllKept() {
    let notes = NoteLimit.limited(Self.remarks(3, in: "folders/a"))
    #expect(notes.map(\.path) == (0..<3).map { ByteString("folders/a/sub/file \($0)") })
    #expect(notes.allSatisfy { $0.note == "permission denied" })
  }

  @Test func manyNotesAreCombined() throws {
    let all = Self.remarks(40_000, in: "folders/a") + Self.remarks(7, in: "apps/org.example.b")
    let notes = NoteLimit.limited(all)
    #expect(notes.count < 32_000 && notes.count > 10_000, "\(notes.count)")
    #expect(notes.suffix(2).map(\.path) == ["apps/org.example.b", "folders/a"])
    let left = 40_000 - (notes.count - 2)
    #expect(notes.suffix(2).map(\.note).first?.hasPrefix("7 more in it") == true)
    #expect(notes.last?.note.hasPrefix("\(left) more in it") == true)
    // `--delete` deletes none of these files, listed or not.
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("text", at: "tree/file")
    var snapshot = try #require(try fixture.backup().snapshot).snapshot
    snapshot.unreadable = notes
    for path: ByteString in ["folders/a/sub/file 3", "folders/a/sub/file 39999", "folders/a/x"] {
      #expect(SparedPaths(snapshot).reasonToSpare(path) != nil, "\(path)")
    }
    #expect(SparedPaths(snapshot).reasonToSpare("folders/other/file") == nil)
  }

  private static func excluded(_ count: Int, in directory: ByteString) -> [Exclusion] {
    (0..<count).map {
      Exclusion(
        path: directory.appending(ByteString("\($0)/inner/cache")), rule: "caches", files: 2,
        bytes: 3)
    }
  }

  @Test func aFewExcludedDirectoriesAreAllNamed() {
    let few = Self.excluded(3, in: "folders/a") + Self.excluded(2, in: "apps/b/data")
    #expect(NoteLimit.limited(few) == few)
  }

  @Test func manyExcludedDirectoriesAreCountedTogether() throws {
    let all =
      Self.excluded(40_000, in: "folders/tree")
      + [Exclusion(path: "groups/c/Library/Caches", rule: "platform", files: 1, bytes: 9)]
    let kept = NoteLimit.limited(all)
    #expect(kept.count < 32_000 && kept.count > 10_000, "\(kept.count)")
    // The path nearest to the root is listed, although it comes last.
    #expect(kept.dropLast().last == all.last)
    let sum = try #require(kept.last)
    #expect(sum.path == "folders/tree" && sum.rule == Exclusion.unnamed)
    let unnamed = UInt64(40_001 - (kept.count - 1))
    #expect(sum.files == 2 * unnamed && sum.bytes == 3 * unnamed)
    // `--delete` deletes none of them. Single files are counted for their container by rule,
    // without their names.
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("text", at: "tree/file")
    var snapshot = try #require(try fixture.backup().snapshot).snapshot
    #expect(snapshot.device.containers.map(\.path) == ["folders/tree"])
    snapshot.excluded = kept
    for path: ByteString in ["folders/tree/3/inner/cache", "folders/tree/39999/inner/cache"] {
      #expect(SparedPaths(snapshot).reasonToSpare(path) != nil, "\(path)")
      #expect(SparedPaths(snapshot, deletesExcluded: true).reasonToSpare(path) == nil, "\(path)")
    }
    snapshot.excluded = [Exclusion(path: "folders/tree", rule: "caches", files: 9, bytes: 9)]
    #expect(SparedPaths(snapshot).reasonToSpare("folders/tree/3/inner/cache") == nil)
  }

  /// More notes than a snapshot could store one by one: the backup succeeds, and the snapshot can
  /// be read.
  @Test func aBackupWithTooManyNotesSucceeds() throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("text", at: "tree/file")
    let plan = BackupPlan.make(try fixture.scan())
    let many = BackupPlan(
      device: plan.device, began: plan.began, scans: plan.scans, policy: plan.policy,
      summaries: plan.summaries, excluded: Self.excluded(420_000, in: "folders/tree"),
      bundlesOutsideCloud: plan.bundlesOutsideCloud)
    let report = try BackupOperation(
      many, to: fixture.repository, BackupRequest(program: "test")
    ).run()
    let id = try #require(report.snapshot).id
    let read = try #require(try fixture.repository.snapshots().snapshots.first { $0.id == id })
    #expect(read.snapshot.excluded.last?.rule == Exclusion.unnamed)
    #expect(read.snapshot.excluded.map(\.files).reduce(0, +) == 840_000)
    #expect(try fixture.restore(report).isComplete)
  }

  @Test func manyDatabasesAreCountedTogether() {
    let all = (0..<60_000).map {
      DatabaseRecord(path: ByteString("folders/a/\($0).sqlite"), how: "watched")
    }
    let kept = NoteLimit.limited(all)
    #expect(kept.count < 50_000 && kept.first == all.first)
    #expect(kept.last?.path == "folders/a" && kept.last?.how.contains("more in it") == true)
  }
}
