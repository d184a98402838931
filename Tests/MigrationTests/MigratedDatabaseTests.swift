import Foundation
import Migration
import SystemIO
import TestSupport
import Testing

/// A database, its log and its journal are copied together or not at all: SQLite would apply a log
/// to any database next to it.
struct MigratedDatabaseTests {
  private static let route = makeRoute(
    "firefox", from: .deb, to: "org.mozilla.firefox", as: .flatpak)
  private static let profile: ByteString = ".mozilla/firefox/x"
  private static let target: ByteString = ".var/app/org.mozilla.firefox"
  private static let files: [ByteString] = ["db", "db-journal", "db-shm", "db-wal"]

  private func file(_ path: ByteString, size: UInt64 = 1) -> MigrationEntry {
    MigrationEntry(path, kind: .file, size: size)
  }

  private func source(_ names: [ByteString]) -> [MigrationEntry] {
    names.map { file(Self.profile.appending($0)) }
  }

  /// Returns the plan for files while the profile in the target has others.
  private func plan(
    _ names: [ByteString], beside present: [(ByteString, UInt64)], _ kind: FileKind = .file
  ) -> MigrationPlan {
    let directory = Self.target.appending(Self.profile)
    var known = Dictionary(
      uniqueKeysWithValues: present.map { name, size in
        let path = directory.appending(name)
        return (path, MigrationEntry(path, kind: kind, size: size))
      })
    var above = directory
    while !above.isEmpty {
      known[above] = MigrationEntry(above, kind: .directory)
      above = above.parent
    }
    return MigrationPlanner(Self.route) { known[$0] }.plan(source(names))
  }

  private func names(_ moves: [MigrationPlan.Move]) -> [ByteString] {
    moves.compactMap(\.destination.lastComponent)
  }

  @Test func nothingIsCopiedBesideAnotherDatabase() {
    let plan = plan(Self.files, beside: [("db", 9)])
    #expect(plan.moves.isEmpty)
    #expect(names(plan.conflicts.map(\.move)) == Self.files)
    #expect(
      plan.conflicts.last?.reason
        == "it belongs to '.mozilla/firefox/x/db', which is not copied")
  }

  @Test(arguments: ["db-wal", "db-journal"] as [ByteString])
  func aDatabaseIsNotCopiedBesideAnotherLog(log: ByteString) {
    let plan = plan(Self.files, beside: [(log, 9)])
    #expect(plan.moves.isEmpty)
    #expect(names(plan.conflicts.map(\.move)) == Self.files)
    #expect(plan.conflicts.first?.reason.hasPrefix("the target has the log of another one") == true)
    #expect(self.plan(["db"], beside: [(log, 9)]).conflicts.count == 1)
  }

  /// It is not copied either if an entry of another type prevents the copy of its log.
  @Test(arguments: [FileKind.directory, .symlink], ["db-wal", "db-journal"] as [ByteString])
  func aDatabaseIsNotCopiedBesideAnotherEntry(kind: FileKind, log: ByteString) {
    let plan = plan(Self.files, beside: [(log, 9)], kind)
    #expect(plan.moves.isEmpty)
    #expect(names(plan.conflicts.map(\.move)) == Self.files)
    let alone = self.plan(["db"], beside: [(log, 9)], kind)
    #expect(names(alone.moves) == (kind == .directory ? ["db"] : []))
  }

  @Test(arguments: ["db-wal", "db-journal"] as [ByteString])
  func aLogAloneIsNotCopiedBesideADatabase(log: ByteString) {
    let plan = plan([log], beside: [("db", 1)])
    #expect(plan.moves.isEmpty)
    #expect(plan.conflicts.first?.reason.contains("the log of another file") == true)
    #expect(names(self.plan([log], beside: []).moves) == [log])
  }

  @Test func wholeDatabasesAndRemainingLogsAreCopied() {
    #expect(names(plan(Self.files, beside: []).moves) == Self.files)
    #expect(
      names(plan(Self.files, beside: [("db-shm", 9)]).moves) == ["db", "db-journal", "db-wal"])
    let rest = plan(Self.files, beside: [("db", 1), ("db-journal", 1)])
    #expect(names(rest.present) == ["db", "db-journal"])
    #expect(names(rest.moves) == ["db-shm", "db-wal"])
    let again = plan(Self.files, beside: [("db-wal", 1)])
    #expect(names(again.moves) == ["db", "db-journal", "db-shm"] && again.conflicts.isEmpty)
  }

  /// A place can be a single file: its log is listed with it and gets the same place.
  @Test func theLogOfAFileIsListedAndPlacedWithIt() throws {
    let directory = try TemporaryDirectory("databases")
    for name: ByteString in [".notes.db", ".notes.db-journal", ".notes.db-wal", ".other-wal"] {
      try directory.write("text", at: ByteString("old").appending(name))
    }
    _ = try Directory.make(path: directory.path("new"))
    let found = AppPairing(
      from: .init(.host, home: directory.path("old")),
      to: .init(.host, home: directory.path("new")), in: builtin, installed: []
    ).all()
    #expect(found.routes.map(\.from.app) == [".notes.db", ".other-wal"])
    let plan = try AppMigration.make(#require(found.routes.first)).plan
    #expect(names(plan.moves) == [".notes.db", ".notes.db-journal", ".notes.db-wal"])
    try directory.write("another", at: "new/.notes.db")
    let other = try AppMigration.make(#require(found.routes.first)).plan
    #expect(other.moves.isEmpty && other.withoutPlace.isEmpty)
    #expect(
      names(other.conflicts.map(\.move)) == [".notes.db", ".notes.db-journal", ".notes.db-wal"])
  }

  /// The super-journal of a transaction over several databases.
  private enum SuperJournal: CaseIterable {
    case beside
    /// Missing from the database's directory, although its path is there.
    case gone
    case notFound
  }

  /// The journal of an uncommitted transaction over several databases is copied without the path of
  /// the super-journal, which the app may not be able to access. The journal of a committed one is
  /// emptied.
  @Test(arguments: SuperJournal.allCases)
  private func theJournalOfSeveralDatabasesNeedsNoOtherFile(_ other: SuperJournal) throws {
    func word(_ value: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(value >> $0 & 0xff) } }
    let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    let fixture = try MigrationFixture()
    let beside = MigrationFixture.source("main-mj0123456789")
    let path = other == .gone ? fixture.directory.path(beside) : "/elsewhere/main-mj0123456789"
    let name = path.withSpan { span in span.indices.map { span[$0] } }
    let header = magic + word(0) + word(1) + word(1) + word(512) + word(512)
    let journal = header + [UInt8](repeating: 0, count: 512 - header.count)
    let sum = name.reduce(0) { $0 + Int($1) }
    let record = word(0x4000_0000 / 512 + 1) + name + word(name.count) + word(sum) + magic
    try fixture.directory.write(
      journal + record, at: MigrationFixture.source("places.sqlite-journal"))
    if other == .beside { try fixture.directory.write("journals", at: beside) }
    let report = try fixture.run(fixture.plan())
    let copy = try fixture.directory.read(MigrationFixture.target("places.sqlite-journal"))
    switch other {
    case .beside: #expect(copy == journal)
    case .gone: #expect(copy.isEmpty)
    case .notFound: #expect(copy == journal + record)
    }
    #expect(report.isComplete == (other != .notFound), "\(report.remarks)")
  }

  /// If a log could not be copied, its database is not copied either.
  @Test func aDatabaseIsNotCopiedWithoutItsLog() throws {
    let fixture = try MigrationFixture()
    let log: ByteString = "places.sqlite-wal"
    try fixture.directory.write("log", at: MigrationFixture.source(log))
    let migration = try fixture.plan()
    let profile = try Directory.open(
      path: fixture.directory.path(ByteString("old").appending(MigrationFixture.profile)))
    try profile.remove(log)
    try profile.createDirectory(log, permissions: 0o700)
    let report = try fixture.run(migration)
    #expect(report.failed.compactMap(\.lastComponent).sorted() == ["places.sqlite", log])
    #expect(
      report.remarks.map(\.remark) == [
        "it is no longer a file", "it is not copied without 'places.sqlite-wal'",
      ])
    let copy = try Directory.open(path: fixture.directory.path(MigrationFixture.target("")))
    #expect(try copy.names().isEmpty)
  }

  /// Writes a database without the magic bytes of SQLite, like an encrypted one.
  private func writeEncrypted(in fixture: MigrationFixture) throws {
    try fixture.directory.write(
      [UInt8](repeating: 7, count: 1024), at: MigrationFixture.source("keys.db"))
  }

  /// The app was opened, although the migration detected no sign of use.
  @Test(arguments: ["keys.db-wal", "keys.db-journal"] as [ByteString])
  func aLogThatAppearsDuringTheMigrationIsReported(log: ByteString) throws {
    let fixture = try MigrationFixture()
    try writeEncrypted(in: fixture)
    let migration = try fixture.plan()
    let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    try fixture.directory.write(
      magic + [UInt8](repeating: 0, count: 504), at: MigrationFixture.source(log))
    let report = try fixture.run(migration)
    #expect(report.failed.isEmpty)
    #expect(
      report.remarks.map(\.remark) == [
        "it got a log while it was copied: close the app and migrate it again"
      ])
    #expect(report.remarks.first?.path.lastComponent == "keys.db")
  }

  /// For example, a checkpoint between the copies of a database and of its log.
  @Test func aDatabaseThatChangesBeforeItsLogIsCopiedIsReported() throws {
    let fixture = try MigrationFixture()
    try writeEncrypted(in: fixture)
    try fixture.directory.write("log", at: MigrationFixture.source("keys.db-wal"))
    let source = fixture.directory.string + "/" + MigrationFixture.source("keys.db").description
    let target = fixture.directory.string + "/new"
    let report = try fixture.run(
      fixture.plan(),
      isStopping: {
        guard Self.isCopied("keys.db", size: 1024, to: target) else { return false }
        let file = FileHandle(forWritingAtPath: source)
        _ = try? file?.seekToEnd()
        try? file?.write(contentsOf: Data("page".utf8))
        return false
      })
    #expect(report.failed.isEmpty)
    #expect(
      report.remarks.map(\.remark) == [
        "it was modified after it was copied: close the app and migrate it again"
      ])
    #expect(report.remarks.first?.path.lastComponent == "keys.db")
  }

  /// Whether a file of this name and size is anywhere below a directory.
  private static func isCopied(_ name: String, size: Int, to directory: String) -> Bool {
    let paths = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String }
    return (paths ?? []).contains { path in
      let facts = try? FileManager.default.attributesOfItem(atPath: directory + "/" + path)
      return path.hasSuffix("/" + name) && facts?[.size] as? Int == size
    }
  }

  /// A journal that has been removed since the plan was made belonged to a database.
  @Test func anEncryptedDatabaseIsNotCopiedWithoutItsJournal() throws {
    let fixture = try MigrationFixture()
    try writeEncrypted(in: fixture)
    let journal: ByteString = "keys.db-journal"
    try fixture.directory.write("journal", at: MigrationFixture.source(journal))
    let migration = try fixture.plan()
    try Directory.open(
      path: fixture.directory.path(ByteString("old").appending(MigrationFixture.profile))
    ).remove(journal)
    let report = try fixture.run(migration)
    #expect(report.failed.compactMap(\.lastComponent).sorted() == ["keys.db", journal])
  }
}
