import ArchiveStore
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// A backup is refused before it reads if its data classes have more paths than fit into a
/// snapshot.
@Suite(.spreadScans) struct ClassLimitTests {
  private func runs(_ count: Int, _ name: (Int) -> ByteString) -> [ClassRun] {
    (0..<count).map { number in
      ClassRun(
        path: ByteString("folders/tree").appending(name(number)), name: "cache")
    }
  }

  /// A snapshot in which all lists are at their limits can be read again.
  @Test func aSnapshotAtTheLimitCanBeRead() throws {
    let bound = ClassLimit()
    let longest = String(repeating: "\\", count: 8)
    let paths = runs(bound.runs) { ByteString("\(longest)\($0)") }
    try bound.require(paths, of: "/device")
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("text", at: "tree/file")
    var snapshot = try #require(try fixture.backup().snapshot).snapshot
    snapshot.sequence += 1
    snapshot.classes = paths
    let remarks = (0..<60_000).map {
      PathRemark(path: ByteString("folders/tree/\($0)"), remark: "permission denied")
    }
    snapshot.unreadable = NoteLimit.limited(remarks)
    snapshot.warnings = snapshot.unreadable
    snapshot.excluded = NoteLimit.limited(
      remarks.map { Exclusion(path: $0.path, rule: "caches", files: 1, bytes: 1) })
    snapshot.databases = NoteLimit.limited(
      remarks.map { DatabaseRecord(path: $0.path, how: "watched") })
    #expect(snapshot.unreadable.count < 60_000 && snapshot.excluded.count < 60_000)
    let stored = try fixture.repository.beginWriting().finish(snapshot)
    #expect(stored.snapshot.classes.count == bound.runs)
  }

  @Test func tooManyPathsAreRefused() throws {
    let bound = ClassLimit(runs: 2, bytes: 1000)
    try bound.require(runs(2) { _ in "short" }, of: "/device")
    let error = #expect(throws: OperationError.self) {
      let more = [ClassRun(path: "apps/org.example.b/data", name: "support")]
      try bound.require(runs(2) { _ in "short" } + more, of: "/device")
    }
    let text = "\(try #require(error))"
    #expect(text.contains("'/device'") && text.contains("gives 3 paths"), "\(text)")
    #expect(text.contains("2 of them are in 'folders/tree'"), "\(text)")
    #expect(error?.hint?.contains("--exclude") == true)
  }

  @Test(arguments: [
    (ByteString([UInt8](repeating: 0xff, count: 80)), false),
    (ByteString([UInt8](repeating: 1, count: 80)), false),
    (ByteString([UInt8](repeating: 0x61, count: 250)), true),
  ]) func escapedCharactersCountTowardsTheLimit(name: ByteString, fits: Bool) throws {
    let bound = ClassLimit(runs: 10, bytes: 400)
    if fits { return try bound.require(runs(1) { _ in name }, of: "/device") }
    #expect(throws: OperationError.self) {
      try bound.require(runs(1) { _ in name }, of: "/device")
    }
  }

  /// The operation checks the limit, and nothing is stored.
  @Test func aBackupIsRefusedBeforeItReads() throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("text", at: "tree/file")
    let error = #expect(throws: OperationError.self) {
      try fixture.backup(keeping: "cache") { $0.classLimit = ClassLimit(runs: 0, bytes: 1000) }
    }
    #expect("\(try #require(error))".contains("gives 1 paths"))
    #expect(try fixture.names("repo/leases").isEmpty && fixture.names("repo/snapshots").isEmpty)
    #expect(try fixture.backup(keeping: "cache").snapshot != nil)
  }
}
