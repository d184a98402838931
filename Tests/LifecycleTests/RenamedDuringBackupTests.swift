import ArchiveStore
import Glibc
import Lifecycle
import Synchronization
import SystemIO
import TestSupport
import Testing

/// What is renamed, moved or replaced between the scan and the reading is in the snapshot all the same.
@Suite(.spreadScans) struct RenamedDuringBackupTests {
  let rig: Fixture

  init() throws {
    rig = try Fixture()
    for number in 0..<20 {
      try rig.directory.write("file \(number)", at: ByteString("tree/project/\(number)"))
    }
    try rig.directory.write("other", at: "tree/archive/other")
  }

  private func tree() throws -> Directory { try Directory.open(path: rig.directory.path("tree")) }

  @Test func aRenamedDirectoryIsStoredUnderItsNewName() throws {
    let scan = try rig.scan()
    let top = try tree()
    try top.rename("project", to: "project-2026", in: top)
    let report = try rig.backup(scan)
    #expect(report.isComplete && report.warnings.isEmpty)
    _ = try rig.restore(report)
    #expect(try rig.names("back").sorted() == ["archive", "project-2026"])
    #expect(try rig.names("back/project-2026").count == 20)
  }

  @Test func aReplacedDirectoryIsStoredAsItIsNow() throws {
    let scan = try rig.scan()
    let top = try tree()
    try top.rename("project", to: "project.old", in: top)
    try rig.directory.write("new", at: "tree/project/new")
    let report = try rig.backup(scan)
    #expect(report.isComplete)
    _ = try rig.restore(report)
    #expect(try rig.text("back/project/new") == "new")
    #expect(try rig.text("back/project.old/7") == "file 7")
  }

  @Test func aDirectoryMovedIntoAnotherIsStoredThere() throws {
    let scan = try rig.scan()
    let archive = try Directory.open(path: rig.directory.path("tree/archive"))
    try tree().rename("project", to: "project", in: archive)
    let report = try rig.backup(scan)
    #expect(report.isComplete)
    _ = try rig.restore(report)
    #expect(try rig.text("back/archive/project/7") == "file 7")
  }

  /// A file with two names: the one that it is read by is gone, and so is the directory of the other, of
  /// which all else was dealt with before; the directory above is still in hand.
  @Test func aHardLinkWhoseDirectoryWasRenamedIsStoredUnderItsNewName() throws {
    let (first, later) = try unorderedPair()
    let parent = ByteString("tree").appending(later)
    try rig.directory.write("one", at: parent.appending("c/d"))
    try rig.directory.write("held", at: parent.appending("held"))
    let above = try Directory.open(path: rig.directory.path(parent))
    let near = try tree().directory(first)
    try near.createHardLink("a", to: "d", in: above.directory("c"))
    _ = try rig.backup(keeping: "cache")
    try rig.directory.write("two!", at: parent.appending("c/d"))
    try rig.directory.write("held as well", at: parent.appending("held"))
    let scan = try rig.scan()
    try near.remove("a")
    try above.rename("c", to: "moved", in: above)
    var request = rig.request(keeping: "cache")
    request.workers = 1
    let report = try BackupOperation(BackupPlan.make(scan), to: rig.repository, request).run()
    #expect(report.isComplete, "\(report.unreadable)")
    _ = try rig.restore(report)
    let restored = ByteString("back").appending(later)
    #expect(try rig.text(restored.appending("moved/d")) == "two!")
    #expect(try rig.names(restored).sorted() == ["held", "moved"])
    #expect(try rig.names(ByteString("back").appending(first)).isEmpty)
  }

  /// Two directories of which the scan finds that one first which is read later, by its name.
  private func unorderedPair() throws -> (first: ByteString, later: ByteString) {
    let names = (0..<12).map { ByteString("directory \($0)") }
    for name in names { _ = try tree().makeDirectory(name) }
    let scan = try #require(try rig.scan().containers.first)
    let found = scan.entries.indices.map { scan.path($0) }.filter(names.contains)
    let place = try #require(found.indices.dropLast().first { found[$0] > found[$0 + 1] })
    return (found[place], found[place + 1])
  }

  @Test func aDeletedDirectoryIsOnlyNoted() throws {
    let scan = try rig.scan()
    try tree().removeTree("project")
    let report = try rig.backup(scan)
    #expect(report.isComplete)
    #expect(report.warnings.map(\.path) == ["folders/tree/project"])
    _ = try rig.restore(report)
    #expect(try rig.names("back") == ["archive"])
  }

  @Test func aFileReplacedByARenameIsStoredWithItsNewContent() throws {
    try rig.directory.write("old", at: "tree/note")
    try rig.directory.write("new", at: "tree/note.tmp")
    let scan = try rig.scan()
    let top = try tree()
    try top.rename("note.tmp", to: "note", in: top)
    let report = try rig.backup(scan)
    #expect(report.isComplete)
    _ = try rig.restore(report)
    #expect(try rig.text("back/note") == "new")
    #expect(try !rig.names("back").contains("note.tmp"))
  }

  /// Renames a directory again and again, each time between the scan of a round and its reading.
  private final class RestlessDirectory: Sendable {
    private let tree: ByteString
    private let most: Int
    private let thread = pthread_self()
    private let renames = Mutex(0)

    init(_ rig: Fixture, most: Int) { (tree, self.most) = (rig.directory.path("tree"), most) }

    static func name(_ number: Int) -> ByteString {
      ByteString(number == 0 ? "project" : "project-\(number)")
    }

    /// The present time. The thread of the run asks for it when a round has been scanned; the
    /// threads that read ask, too.
    func now() -> Timestamp {
      let time = Timestamp(seconds: Host.now().seconds + 3600)
      guard pthread_equal(thread, pthread_self()) != 0 else { return time }
      renames.withLock { number in
        guard number < most, let tree = try? Directory.open(path: tree) else { return }
        try? tree.rename(Self.name(number), to: Self.name(number + 1), in: tree)
        number += 1
      }
      return time
    }
  }

  private func backupRenaming(times: Int) throws -> BackupReport {
    let directory = RestlessDirectory(rig, most: times)
    let report = try rig.backup(keeping: "cache") { $0.now = { directory.now() } }
    #expect(try rig.names("tree").contains(RestlessDirectory.name(times)))
    return report
  }

  @Test(arguments: [1, 2]) func aDirectoryRenamedInEachOfTwoRoundsIsStored(times: Int) throws {
    let report = try backupRenaming(times: times)
    #expect(report.isComplete && report.warnings.isEmpty, "\(report.unreadable)")
    _ = try rig.restore(report)
    #expect(try rig.names("back") == ["archive", RestlessDirectory.name(times)])
    #expect(try rig.names(ByteString("back").appending(RestlessDirectory.name(times))).count == 20)
  }

  /// In the third round nothing is tried again: the run ends, says what it lacks, and has all else.
  @Test func aDirectoryRenamedInEachRoundIsNamedAndTheSnapshotIsPartial() throws {
    let report = try backupRenaming(times: 3)
    #expect(!report.isComplete)
    #expect(report.unreadable.map(\.path) == ["folders/tree/project-3"])
    #expect(report.unreadable.first?.remark.contains("again and again") == true)
    #expect(report.snapshot?.snapshot.unreadable.map(\.path) == ["folders/tree/project-3"])
    _ = try rig.restore(report)
    #expect(try rig.names("back") == ["archive"])
    #expect(try rig.text("back/archive/other") == "other")
    let next = try rig.backup(keeping: "cache")
    #expect(next.isComplete)
    _ = try rig.restore(next, to: "again")
    #expect(try rig.names("again/project-3").count == 20)
  }
}
