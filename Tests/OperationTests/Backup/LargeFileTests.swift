import ArchiveStore
import Codecs
import Restore
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// If a backup ends in the middle of a large file, the next one resumes there.
@Suite(.spreadScans) struct LargeFileTests {
  private static let size: UInt64 = 40 << 20
  private static let portion: UInt64 = 1 << 20
  /// The maximum part of a file that a thread has in memory, and that may be read again.
  private static let held: UInt64 = 28 << 20

  private let fixture: Fixture
  private let bytes: [UInt8]

  init() throws {
    fixture = try Fixture(inMemory: true)
    bytes = Seeded(91).someBytes(Int(Self.size))
    try fixture.directory.write(bytes, at: "tree/large")
  }

  /// Backs up until a number of bytes is done, and then interrupts the backup.
  @discardableResult private func interrupt(
    after bytes: UInt64, _ change: (inout BackupRequest) -> Void = { _ in }
  ) throws -> ProgressCounters.State {
    let counters = ProgressCounters()
    let error = #expect(throws: OperationError.self) {
      try fixture.backup(keeping: "cache") { request in
        request.counters = counters
        request.isStopping = { counters.progress.bytesDone >= bytes }
        change(&request)
      }
    }
    #expect(error?.kind == .interrupted)
    return counters.progress
  }

  /// Backs up to the end, and expects the result of an uninterrupted backup.
  private func finish() throws -> ProgressCounters.State {
    let counters = ProgressCounters()
    let report = try fixture.backup(keeping: "cache") { $0.counters = counters }
    #expect(report.isComplete)
    #expect(try fixture.restore(report).isComplete)
    #expect(try fixture.records("back") == fixture.records("tree"))
    // Chunked and stored as by a backup that reads the whole file in one run.
    let other = try Repository.create(in: MemoryStorage(), program: "test")
    let whole = try fixture.backup(to: other, keeping: "other")
    #expect(report.snapshot?.snapshot.tree == whole.snapshot?.snapshot.tree)
    return counters.progress
  }

  @Test func anInterruptedFileIsResumed() throws {
    let first = try interrupt(after: 34 << 20)
    #expect(first.bytesDone < (34 << 20) + 2 * Self.portion && first.bytesResumed == 0)
    let second = try finish()
    #expect(second.bytesDone == Self.size && second.opened == 1)
    #expect(second.bytesResumed > (34 << 20) - Self.held)
  }

  /// Each run resumes where the previous one ended, and records its own progress.
  @Test func severalInterruptionsRereadLittle() throws {
    var read: UInt64 = 0
    for end in stride(from: UInt64(12), through: 36, by: 8) {
      let progress = try interrupt(after: end << 20)
      read += progress.bytesDone - progress.bytesResumed
    }
    let last = try finish()
    read += last.bytesDone - last.bytesResumed
    #expect(last.bytesResumed > (36 << 20) - Self.held)
    #expect(read < 2 * Self.size, "\(read)")
  }

  /// A crash: from some point on, all writes fail, and nothing is cleaned up. Data that waits for
  /// compression is lost, wherever in the file it is.
  @Test func aCrashLosesOnlyDataSinceTheLastCheckpoint() throws {
    let counters = ProgressCounters()
    let storage = WatchedStorage(
      fixture.repository.storage, fails: { counters.progress.bytesDone >= 36 << 20 })
    let broken = try Repository.open(storage)
    #expect(throws: StoreError.self) {
      try fixture.backup(to: broken, keeping: "cache") { request in
        (request.counters, request.checkpointSeconds, request.workers) = (counters, 0, 1)
      }
    }
    #expect(try fixture.names("repo/snapshots").isEmpty)
    #expect(try finish().bytesResumed > (36 << 20) - Self.held)
  }

  @Test func dataThatIsNoLongerStoredIsReadAgain() throws {
    // A checkpoint after each portion makes many packs.
    try interrupt(after: 36 << 20) { $0.checkpointSeconds = 0 }
    let all = try resumedByACopy()
    let packs = try packs()
    #expect(packs.count >= 4)
    try remove(packs.prefix(packs.count / 2))
    let half = try resumedByACopy()
    #expect(half > 0 && half < all, "\(half) of \(all)")
    try remove(packs.suffix(from: packs.count / 2))
    #expect(try finish().bytesResumed == 0)
  }

  /// The repository's packs, with the names of their directories.
  private func packs() throws -> [(directory: ByteString, name: ByteString)] {
    try fixture.names("repo/packs").flatMap { directory in
      try fixture.names(ByteString("repo/packs").appending(directory)).map { (directory, $0) }
    }
  }

  private func remove(_ packs: ArraySlice<(directory: ByteString, name: ByteString)>) throws {
    for (directory, name) in packs {
      try Directory.open(
        path: fixture.directory.path(ByteString("repo/packs").appending(directory))
      )
      .remove(
        name)
    }
  }

  /// Returns the number of stored bytes that a complete run reuses; runs on a copy and changes
  /// nothing here.
  private func resumedByACopy() throws -> UInt64 {
    let copied = try Program.run(
      "/bin/bash", ["-ec", "rm -rf other; mkdir other; cp -a repo cache other"],
      in: fixture.directory.url)
    try #require(copied.code == 0, "\(copied.errors)")
    let counters = ProgressCounters()
    let other = try Repository.open(LocalStorage(path: fixture.directory.path("other/repo")))
    let report = try fixture.backup(to: other, keeping: "other/cache") { $0.counters = counters }
    #expect(report.isComplete)
    return counters.progress.bytesResumed
  }

  @Test func aChangedFileIsReadFromItsBeginning() throws {
    try interrupt(after: 34 << 20)
    var other = bytes
    other[3] ^= 1
    try fixture.directory.write(other, at: "tree/large")
    #expect(try finish().bytesResumed == 0)
  }

  /// A file that changed just before it was read may have changed again in the same tick.
  @Test func aFileChangedJustBeforeIsReadFromItsBeginning() throws {
    let written = try #require(try fixture.records("tree")["large"]).modified
    try interrupt(after: 34 << 20) { request in
      request.now = { Timestamp(seconds: written.seconds + 1) }
    }
    #expect(try finish().bytesResumed == 0)
  }

  @Test func holesArePreserved() throws {
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.remove("large")
    let file = try tree.create("sparse")
    for offset: UInt64 in [0, 30 << 20, 64 << 20] {
      try file.write(Seeded(offset).someBytes(5 << 20), at: offset)
    }
    try file.truncate(to: 90 << 20)
    try interrupt(after: 66 << 20)
    let progress = try finish()
    #expect(progress.bytesResumed > 0 && progress.bytesDone == 90 << 20)
  }

  /// The next run also resumes a large database, and still captures it as a database.
  @Test func anInterruptedDatabaseIsResumed() throws {
    var pages = bytes
    pages.replaceSubrange(..<DatabaseHead.bytes.count, with: DatabaseHead.bytes)
    try fixture.directory.write(pages, at: "tree/large")
    try interrupt(after: 34 << 20)
    let counters = ProgressCounters()
    let report = try fixture.backup(keeping: "cache") { $0.counters = counters }
    #expect(report.databases.map(\.path) == ["folders/tree/large"])
    #expect(counters.progress.bytesResumed > (34 << 20) - Self.held)
    #expect(try fixture.restore(report).isComplete)
    #expect(try fixture.directory.read("back/large") == pages)
  }

  /// Data that is already stored requires no space.
  @Test func onlyTheRemainingDataNeedsSpace() throws {
    try interrupt(after: 36 << 20)
    let storage = WatchedStorage(fixture.repository.storage)
    storage.state.withLock { $0.space = VolumeSpace(available: 32 << 20, total: 1 << 30) }
    let full = try Repository.open(storage)
    #expect(throws: OperationError.self) {
      try fixture.backup(to: full, keeping: "other") { $0.keepFree = 0 }
    }
    #expect(try fixture.backup(to: full, keeping: "cache") { $0.keepFree = 0 }.isComplete)
  }
}
