import ArchiveStore
import Backup
import DeviceScan
import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Entries renamed, moved or replaced between the scan and the reading are in the snapshot.
@Suite(.spreadScans) struct RenamedDuringBackupTests {
  let fixture: Fixture

  init() throws {
    fixture = try Fixture()
    try fixture.writeProject()
  }

  @Test func aRenamedDirectoryIsStoredUnderItsNewName() throws {
    let scan = try fixture.scan()
    let top = try fixture.tree()
    try top.rename("project", to: "project-2026", in: top)
    let report = try fixture.backup(scan)
    #expect(report.isComplete && report.warnings.isEmpty)
    _ = try fixture.restore(report)
    #expect(try fixture.names("back").sorted() == ["archive", "project-2026"])
    #expect(try fixture.names("back/project-2026").count == 20)
  }

  @Test func aReplacedDirectoryIsStoredAsItIsNow() throws {
    let scan = try fixture.scan()
    let top = try fixture.tree()
    try top.rename("project", to: "project.old", in: top)
    try fixture.directory.write("new", at: "tree/project/new")
    let report = try fixture.backup(scan)
    #expect(report.isComplete)
    _ = try fixture.restore(report)
    #expect(try fixture.text("back/project/new") == "new")
    #expect(try fixture.text("back/project.old/7") == "file 7")
  }

  @Test func aDirectoryMovedIntoAnotherIsStoredThere() throws {
    let scan = try fixture.scan()
    let archive = try Directory.open(path: fixture.directory.path("tree/archive"))
    try fixture.tree().rename("project", to: "project", in: archive)
    let report = try fixture.backup(scan)
    #expect(report.isComplete)
    _ = try fixture.restore(report)
    #expect(try fixture.text("back/archive/project/7") == "file 7")
  }

  /// A file with two names: the name under which it is read is gone, and so is the directory of the
  /// other name, whose other entries were already read; the directory above is still in progress.
  @Test func aHardLinkWhoseDirectoryWasRenamedIsStoredUnderItsNewName() throws {
    let (first, later) = try unorderedPair()
    let parent = ByteString("tree").appending(later)
    try fixture.directory.write("one", at: parent.appending("c/d"))
    try fixture.directory.write("held", at: parent.appending("held"))
    let above = try Directory.open(path: fixture.directory.path(parent))
    let near = try fixture.tree().directory(first)
    try near.createHardLink("a", to: "d", in: above.directory("c"))
    _ = try fixture.backup(keeping: "cache")
    try fixture.directory.write("two!", at: parent.appending("c/d"))
    try fixture.directory.write("held as well", at: parent.appending("held"))
    let scan = try fixture.scan()
    try near.remove("a")
    try above.rename("c", to: "moved", in: above)
    var request = fixture.request(keeping: "cache")
    request.workers = 1
    let report = try BackupOperation(BackupPlan.make(scan), to: fixture.repository, request).run()
    #expect(report.isComplete, "\(report.unreadable)")
    _ = try fixture.restore(report)
    let restored = ByteString("back").appending(later)
    #expect(try fixture.text(restored.appending("moved/d")) == "two!")
    #expect(try fixture.names(restored).sorted() == ["held", "moved"])
    #expect(try fixture.names(ByteString("back").appending(first)).isEmpty)
  }

  /// All names of a file are tried before the file counts as removed, however many there are.
  @Test func aFileWithManyNamesMayVanish() throws {
    try fixture.directory.write("content", at: "tree/many/first")
    let many = try fixture.tree().directory("many")
    for number in 0..<2000 {
      try many.createHardLink(ByteString("name \(number)"), to: "first", in: many)
    }
    let scan = try fixture.scan()
    for name in try many.names() { try many.remove(name) }
    let report = try fixture.backup(scan)
    #expect(report.isComplete, "\(report.unreadable.count)")
    _ = try fixture.restore(report)
    #expect(try fixture.names("back/many").isEmpty)
    #expect(try fixture.text("back/project/7") == "file 7")
  }

  /// Two directories in an order in which the scan first finds the one that sorts last and is read
  /// last.
  private func unorderedPair() throws -> (first: ByteString, later: ByteString) {
    let names = (0..<12).map { ByteString("directory \($0)") }
    for name in names { _ = try fixture.tree().makeDirectory(name) }
    let scan = try #require(try fixture.scan().containers.first)
    let found = scan.entries.indices.map { scan.path($0) }.filter(names.contains)
    let position = try #require(found.indices.dropLast().first { found[$0] > found[$0 + 1] })
    return (found[position], found[position + 1])
  }

  @Test func aDeletedDirectoryIsAWarning() throws {
    let scan = try fixture.scan()
    try fixture.tree().removeTree("project")
    let report = try fixture.backup(scan)
    #expect(report.isComplete)
    #expect(report.warnings.map(\.path) == ["folders/tree/project"])
    _ = try fixture.restore(report)
    #expect(try fixture.names("back") == ["archive"])
  }

  @Test func aFileReplacedByARenameIsStoredWithItsNewContent() throws {
    try fixture.directory.write("old", at: "tree/note")
    try fixture.directory.write("new", at: "tree/note.tmp")
    let scan = try fixture.scan()
    let top = try fixture.tree()
    try top.rename("note.tmp", to: "note", in: top)
    let report = try fixture.backup(scan)
    #expect(report.isComplete)
    _ = try fixture.restore(report)
    #expect(try fixture.text("back/note") == "new")
    #expect(try !fixture.names("back").contains("note.tmp"))
  }

  /// Renames a directory repeatedly, each time between the scan and the reading of a round.
  private final class RestlessDirectory: Sendable {
    private let tree: ByteString
    private let most: Int
    private let thread = pthread_self()
    private let renames = Mutex(0)

    init(_ fixture: Fixture, most: Int) {
      (tree, self.most) = (fixture.directory.path("tree"), most)
    }

    static func name(_ number: Int) -> ByteString {
      ByteString(number == 0 ? "project" : "project-\(number)")
    }

    /// The current time. The thread of the run requests it after the scan of a round; the reader
    /// threads also request it.
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
    let directory = RestlessDirectory(fixture, most: times)
    let report = try fixture.backup(keeping: "cache") { $0.now = { directory.now() } }
    #expect(try fixture.names("tree").contains(RestlessDirectory.name(times)))
    return report
  }

  @Test(arguments: [1, 2]) func aDirectoryRenamedInEachOfTwoRoundsIsStored(times: Int) throws {
    let report = try backupRenaming(times: times)
    #expect(report.isComplete && report.warnings.isEmpty, "\(report.unreadable)")
    _ = try fixture.restore(report)
    #expect(try fixture.names("back") == ["archive", RestlessDirectory.name(times)])
    #expect(
      try fixture.names(ByteString("back").appending(RestlessDirectory.name(times))).count == 20)
  }

  /// After the third round there is no further attempt: the backup ends, reports the missing
  /// directory, and stores everything else.
  @Test func aDirectoryRenamedInEachRoundIsReportedAsUnreadable() throws {
    let report = try backupRenaming(times: 3)
    #expect(!report.isComplete)
    #expect(report.unreadable.map(\.path) == ["folders/tree/project-3"])
    #expect(report.unreadable.first?.remark.contains("replaced repeatedly") == true)
    #expect(report.snapshot?.snapshot.unreadable.map(\.path) == ["folders/tree/project-3"])
    _ = try fixture.restore(report)
    #expect(try fixture.names("back") == ["archive"])
    #expect(try fixture.text("back/archive/other") == "other")
    let next = try fixture.backup(keeping: "cache")
    #expect(next.isComplete)
    _ = try fixture.restore(next, to: "again")
    #expect(try fixture.names("again/project-3").count == 20)
  }
}
