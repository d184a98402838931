import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Audit

/// The rules about marks, and the commands that set and remove marks.
struct MarkTests {
  private static let tag = Array("Signature: 8a477f597d28d172789f06886806bc55\n".utf8)
  private static let attribute: ByteString =
    "user.com.apple.metadata:com_apple_backup_excludeItem"

  // MARK: Rules

  @Test func markedUserDataIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/Album/a", bytes: 100)
    try fixture.put("Documents/Album/b", bytes: 50)
    try fixture.mark("Documents/Album")
    try fixture.mark("Documents/Album/b")
    let found = try fixture.audit().findings.filter { $0.rule == .userDataMarked }
    #expect(found.map(\.path.lastComponent) == ["Album"])
    #expect(found.first?.bytes == 150 && found.first?.files == 2)
    #expect(
      found.first?.command
        == "sandboxctl include apps/org.example.app/data/Documents/Album --root device")
  }

  @Test func markedSupportFilesAreNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/Application Support/Models/a")
    try fixture.mark("Library/Application Support/Models")
    try fixture.put("Documents/cloud")
    try fixture.mark("Documents/cloud", "com.apple.metadata:com_apple_cloudBackup_excludeItem")
    try fixture.putInGroup("models/a")
    try fixture.markInGroup("models")
    #expect(try fixture.paths(.userDataMarked).isEmpty)
    #expect(try fixture.paths(.systemDirectoryMarked).isEmpty)
  }

  @Test(arguments: ["Documents", "Library", "Library/Application Support"] as [ByteString])
  func markedSystemDirectoryIsFound(path: ByteString) throws {
    let fixture = try AuditFixture()
    try fixture.put(path.appending("x/y"))
    try fixture.mark(path)
    #expect(try fixture.paths(.systemDirectoryMarked) == [path])
    #expect(try fixture.paths(.userDataMarked).isEmpty)
  }

  /// Backups exclude them even without the mark.
  @Test func markedSystemCachesAreNotFound() throws {
    let fixture = try AuditFixture()
    for path in ["Library/Caches", "tmp"] as [ByteString] {
      try fixture.put(path.appending("x/y"))
      try fixture.mark(path)
    }
    #expect(try fixture.paths(.systemDirectoryMarked).isEmpty)
  }

  @Test func tagInUserDataIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/Thesis/a", bytes: 100)
    try fixture.put("Documents/Thesis/CACHEDIR.TAG", content: Self.tag)
    #expect(try fixture.paths(.tagInUserData) == ["Documents/Thesis"])
  }

  @Test func tagInACacheIsNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/Caches/a/CACHEDIR.TAG", content: Self.tag)
    // A file with only the name of a tag is not a tag.
    try fixture.put("Documents/b/CACHEDIR.TAG")
    #expect(try fixture.paths(.tagInUserData).isEmpty)
  }

  // MARK: Commands

  private func operation(
    _ fixture: AuditFixture, _ path: ByteString, version: String? = nil
  ) throws -> MarkOperation {
    try MarkOperation(
      LogicalPath(AuditFixture.prefix.appending(path)), on: fixture.device(),
      policy: AuditFixture.policy(version))
  }

  private func attributes(_ fixture: AuditFixture, _ path: ByteString) throws -> [ByteString] {
    let above = try Directory.open(path: fixture.real(path.parent))
    return try above.attributes(of: path.lastComponent ?? "").names()
  }

  @Test func excludeMarksAsThePlatformDoes() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/maps/a")
    let outcome = try operation(fixture, "Documents/maps").exclude(
      for: Destination(), force: false, dryRun: false)
    #expect(outcome.changed == ["excluded-from-backup"] && outcome.isStored == false)
    #expect(outcome.isOfPlatform && outcome.dataClass == .userData)
    #expect(try attributes(fixture, "Documents/maps") == [Self.attribute])
    // The value is a binary property list, as on macOS.
    let documents = try Directory.open(path: fixture.real("Documents"))
    let value = try documents.attributes(of: "maps").value(of: Self.attribute)
    #expect(value?.starts(with: "bplist00".utf8) == true)
    let again = try operation(fixture, "Documents/maps").exclude(
      for: Destination(), force: false, dryRun: false)
    #expect(again.changed.isEmpty && again.isStored == false)
  }

  @Test(
    arguments: [
      ("5.0.1", "user.com.apple.MobileBackup", true), ("5.0", "user.xdg.robots.backup", false),
      ("17.5", "user.com.apple.metadata:com_apple_backup_excludeItem", true),
    ] as [(String, String, Bool)])
  func markDependsOnTheVersion(version: String, name: String, isOfPlatform: Bool) throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/a")
    let outcome = try operation(fixture, "Documents/a", version: version).exclude(
      for: Destination(), force: false, dryRun: false)
    #expect(try attributes(fixture, "Documents/a") == [ByteString(name)])
    #expect(outcome.isOfPlatform == isOfPlatform && outcome.isStored == false)
  }

  @Test func excludeForADestinationLeavesOthers() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/a")
    let outcome = try operation(fixture, "Documents/a").exclude(
      for: Destination(isCloud: true), force: false, dryRun: false)
    #expect(outcome.changed == ["excluded-from-cloud-backup"] && outcome.isStored == true)
  }

  @Test func includeRemovesEveryMarkAndATag() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/maps/a")
    try fixture.put("Documents/maps/CACHEDIR.TAG", content: Self.tag)
    try fixture.mark("Documents/maps")
    try fixture.mark("Documents/maps", "com.apple.MobileBackup")
    try fixture.mark("Documents/maps", "org.example.color")
    let dry = try operation(fixture, "Documents/maps").include(dryRun: true)
    #expect(dry.changed.count == 3 && dry.isStored == nil)
    let outcome = try operation(fixture, "Documents/maps").include(dryRun: false)
    #expect(Set(outcome.changed) == Set(dry.changed) && outcome.isStored == true)
    #expect(try attributes(fixture, "Documents/maps") == ["user.org.example.color"])
    #expect(try Directory.open(path: fixture.real("Documents/maps")).names() == ["a"])
    #expect(try operation(fixture, "Documents/maps").include(dryRun: false).changed.isEmpty)
  }

  @Test func includeKeepsAFileThatIsNotATag() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/maps/CACHEDIR.TAG", content: Array("my own".utf8))
    #expect(try operation(fixture, "Documents/maps").include(dryRun: false).changed.isEmpty)
    #expect(
      try Directory.open(path: fixture.real("Documents/maps")).names() == ["CACHEDIR.TAG"])
  }

  @Test func includeReportsTheMarkAbove() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/maps/a")
    try fixture.mark("Documents/maps")
    let outcome = try operation(fixture, "Documents/maps/a").include(dryRun: false)
    #expect(outcome.changed.isEmpty && outcome.isStored == false)
    #expect(outcome.stillMarked == ["apps/org.example.app/data/Documents/maps"])
  }

  @Test func systemDirectoryIsMarkedByForceOnly() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/a")
    for path in ["Documents", ""] as [ByteString] {
      let operation = try operation(fixture, path)
      let error = #expect(throws: OperationError.self) {
        _ = try operation.exclude(for: Destination(), force: false, dryRun: false)
      }
      #expect(error?.code == .invalidTarget)
    }
    let outcome = try operation(fixture, "Documents").exclude(
      for: Destination(), force: true, dryRun: false)
    #expect(outcome.changed == ["excluded-from-backup"])
  }

  @Test func missingEntriesAndLinksAreRefused() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/a")
    try Directory.open(path: fixture.real("Documents")).createLink("link", to: "a")
    try Directory.open(path: fixture.real("")).createLink("Outside", to: "/")
    for (path, code) in [
      ("Documents/none", .notFound), ("Documents/link", .notAFile), ("Outside/etc", nil),
    ] as [(ByteString, ErrorCode?)] {
      let operation = try operation(fixture, path)
      let error = #expect(throws: OperationError.self) {
        _ = try operation.exclude(for: Destination(), force: false, dryRun: false)
      }
      if let code { #expect(error?.code == code, "\(path)") }
    }
    #expect(try attributes(fixture, "Documents/a").isEmpty)
  }

  @Test func dryRunChangesNothing() throws {
    let fixture = try AuditFixture()
    try fixture.put("Documents/a")
    let outcome = try operation(fixture, "Documents/a").exclude(
      for: Destination(), force: false, dryRun: true)
    #expect(outcome.changed == ["excluded-from-backup"] && outcome.isStored == nil)
    #expect(try attributes(fixture, "Documents/a").isEmpty)
  }
}
