import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Audit

/// Files that stay in Documents/Inbox and tmp.
struct LeftoverTests {
  @Test func oldFilesInTheInboxAreFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/Inbox/letter.pdf", bytes: 60)
    try fixture.put("Documents/Inbox/Folder/inner", bytes: 5)
    #expect(try fixture.paths(.inboxLeftover, days: 6).isEmpty)
    let found = try fixture.audit(days: 8).findings.filter { $0.rule == .inboxLeftover }
    #expect(found.map(\.path.lastComponent) == ["Folder", "letter.pdf"])
    #expect(found.map(\.bytes) == [5, 60] && found.last?.detail == "unchanged for 8 days")
  }

  @Test func theCommandDependsOnWhetherAFileCanBeClaimed() throws {
    let fixture = try AuditFixture()
    for name in ["a letter.pdf", "-x.pdf"] {
      try fixture.put(ByteString("Documents/Inbox/\(name)"))
    }
    try Directory.open(path: fixture.real("Documents/Inbox")).createLink("link", to: "/nowhere")
    let found = try fixture.audit(days: 8).findings.filter { $0.rule == .inboxLeftover }
    let documents = ShellWord.text(fixture.real("Documents/."))
    func moved(_ name: ByteString) -> String {
      "mv -n -- \(ShellWord.text(fixture.real("Documents/Inbox").appending(name))) \(documents)"
    }
    #expect(
      found.map(\.command) == [
        moved("-x.pdf"),
        "sandboxctl interapp inbox claim 'a letter.pdf' --app \(AuditFixture.app) --root device",
        moved("link"),
      ])
  }

  /// The modification time of a delivered file is that of the sender's file.
  @Test func newlyDeliveredOldFileIsNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/Inbox/letter.pdf")
    let inbox = try Directory.open(path: fixture.real("Documents/Inbox"))
    try inbox.setModified(Timestamp(seconds: 1_000_000_000), of: "letter.pdf")
    #expect(try fixture.paths(.inboxLeftover, days: 1).isEmpty)
  }

  @Test func inboxThatIsALinkIsReportedAndNotFollowed() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/a")
    try fixture.put("Elsewhere/old.pdf")
    try Directory.open(path: fixture.real("Documents")).createLink(
      "Inbox", to: fixture.real("Elsewhere"))
    let found = try fixture.audit(days: 30).findings.filter { $0.rule == .inboxLeftover }
    #expect(found.map(\.path.lastComponent) == ["Inbox"])
    #expect(found.first?.detail == "it is not a directory, so the system cannot deliver files")
  }

  @Test func inboxThatIsAFileIsReported() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/Inbox", bytes: 3)
    #expect(try fixture.paths(.inboxLeftover, days: 30) == ["Documents/Inbox"])
  }

  @Test func oldTemporaryFilesAreFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("tmp/upload/part", bytes: 70)
    _ = try Directory.make(path: fixture.real("tmp/empty"))
    #expect(try fixture.paths(.temporaryLeftover, days: 2).isEmpty)
    let found = try fixture.audit(days: 4).findings.filter { $0.rule == .temporaryLeftover }
    #expect(found.map(\.path.lastComponent) == ["upload"] && found.first?.bytes == 70)
    #expect(found.first?.command == "rm -r -- \(ShellWord.text(fixture.real("tmp/upload")))")
  }

  /// The command of this rule deletes a file, but that of `user-data-in-cache` keeps a document.
  @Test func documentsInTheTemporaryDirectoryAreNotToBeDeleted() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo([
      .init(
        "CFBundleDocumentTypes",
        .array([
          .dictionary([
            .init("CFBundleTypeName", .string("Drawing")),
            .init("CFBundleTypeRole", .string("Editor")),
            .init("CFBundleTypeExtensions", .array([.string("drawing")])),
          ])
        ]))
    ])
    for path in ["tmp/a.drawing", "tmp/export/1/b.Drawing", "tmp/export/c", "tmp/part"] {
      try fixture.put(ByteString(path))
    }
    #expect(try fixture.paths(.temporaryLeftover, days: 4) == ["tmp/part"])
    #expect(
      try fixture.paths(.userDataInCache, days: 4) == ["tmp/a.drawing", "tmp/export/1/b.Drawing"])
  }

  /// If the clock was set back, no file counts as old.
  @Test func changeInTheFutureIsNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("tmp/a")
    try fixture.put("Documents/Inbox/b")
    #expect(try fixture.paths(.temporaryLeftover, days: -10).isEmpty)
    #expect(try fixture.paths(.inboxLeftover, days: -10).isEmpty)
  }
}
