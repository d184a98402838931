import Lifecycle
import SystemIO
import TestSupport
import Testing

/// What is renamed, moved or replaced between the scan and the reading is in the snapshot all the same.
@Suite struct RenamedDuringBackupTests {
  let rig: Rig

  init() throws {
    rig = try Rig()
    for number in 0..<20 {
      try rig.folder.write("file \(number)", at: ByteString("tree/project/\(number)"))
    }
    try rig.folder.write("other", at: "tree/archive/other")
  }

  private func tree() throws -> Folder { try Folder.open(path: rig.folder.path("tree")) }

  @Test func aRenamedFolderIsStoredUnderItsNewName() throws {
    let scan = try rig.scan()
    let top = try tree()
    try top.rename("project", to: "project-2026", in: top)
    let report = try rig.backup(scan)
    #expect(report.isComplete && report.warnings.isEmpty)
    _ = try rig.restore(report)
    #expect(try rig.names("back").sorted() == ["archive", "project-2026"])
    #expect(try rig.names("back/project-2026").count == 20)
  }

  @Test func aReplacedFolderIsStoredAsItIsNow() throws {
    let scan = try rig.scan()
    let top = try tree()
    try top.rename("project", to: "project.old", in: top)
    try rig.folder.write("new", at: "tree/project/new")
    let report = try rig.backup(scan)
    #expect(report.isComplete)
    _ = try rig.restore(report)
    #expect(try rig.text("back/project/new") == "new")
    #expect(try rig.text("back/project.old/7") == "file 7")
  }

  @Test func aFolderMovedIntoAnotherIsStoredThere() throws {
    let scan = try rig.scan()
    let archive = try Folder.open(path: rig.folder.path("tree/archive"))
    try tree().rename("project", to: "project", in: archive)
    let report = try rig.backup(scan)
    #expect(report.isComplete)
    _ = try rig.restore(report)
    #expect(try rig.text("back/archive/project/7") == "file 7")
  }

  @Test func aDeletedFolderIsOnlyNoted() throws {
    let scan = try rig.scan()
    try tree().removeTree("project")
    let report = try rig.backup(scan)
    #expect(report.isComplete)
    #expect(report.warnings.map(\.path) == ["folders/tree/project"])
    _ = try rig.restore(report)
    #expect(try rig.names("back") == ["archive"])
  }

  @Test func aFileReplacedByARenameIsStoredWithItsNewContent() throws {
    try rig.folder.write("old", at: "tree/note")
    try rig.folder.write("new", at: "tree/note.tmp")
    let scan = try rig.scan()
    let top = try tree()
    try top.rename("note.tmp", to: "note", in: top)
    let report = try rig.backup(scan)
    #expect(report.isComplete)
    _ = try rig.restore(report)
    #expect(try rig.text("back/note") == "new")
    #expect(try !rig.names("back").contains("note.tmp"))
  }
}
