import SystemIO
import TestSupport
import Testing

@testable import DatabaseCapture

/// Databases with a journal left by an interrupted transaction over several databases.
struct InterruptedCommitTests {
  let fixture: Fixture
  let shelf = Shelf()
  /// The journal up to the record that names the super-journal.
  private let journal: [UInt8]

  init() throws {
    fixture = try Fixture("commits")
    try fixture.write(pages(1, 2), .database)
    try fixture.age()
    var builder = JournalBuilder(pageCount: 2)
    builder.segment(1)
    builder.record(1, page(9))
    journal = builder.bytes
  }

  /// Writes a journal that names a super-journal. Returns its bytes.
  private func write(naming name: String) throws -> [UInt8] {
    var builder = JournalBuilder(pageCount: 2)
    builder.segment(1)
    builder.record(1, page(9))
    builder.superJournal(Array(name.utf8))
    try fixture.write(builder.bytes, .journal)
    return builder.bytes
  }

  /// The relation between the name in the journal and the actual location of the super-journal.
  private enum Place: CaseIterable {
    case beside
    case elsewhere
    /// Beside the database, but named by the path at which the app sees it.
    case behindOtherPath
  }

  /// The stored journal rolls the database back wherever it is opened.
  @Test(arguments: Place.allCases)
  private func anUncommittedTransactionIsRolledBackAnywhere(_ place: Place) throws {
    let top = fixture.temporary.string
    let (name, position) =
      switch place {
      case .beside: ("\(top)/source/main-mj0123456789", "source/main-mj0123456789")
      case .elsewhere: ("\(top)/other/main-mj0123456789", "other/main-mj0123456789")
      case .behindOtherPath: ("/no such directory/main-mj0123456789", "source/main-mj0123456789")
      }
    let whole = try write(naming: name)
    try fixture.temporary.write("the journals", at: ByteString(position))
    let result = try fixture.capture(shelf, whenBusy: .deferred)
    #expect(result?.method == .locks && result?.conflict == nil)
    #expect(result?.interruptedCommit == .uncommitted(superJournal: ByteString(name)))
    let stored = try #require(shelf.contents[.journal])
    #expect(stored.count == whole.count - name.utf8.count - 20)
    #expect(Array(stored.prefix(journal.count)) == journal)
    #expect(stored.dropFirst(journal.count).allSatisfy { $0 == 0 })
    #expect(result?.members.last?.status.size == UInt64(stored.count))
    let found = try overlay(stored, RollbackJournal(size: UInt64(stored.count)))
    #expect(try merged(pages(1, 2), stored, found) == pages(9, 2))
  }

  /// SQLite would delete the journal of a committed transaction, and treats an empty super-journal
  /// as missing. The stored journal must therefore have no effect.
  @Test(arguments: [false, true]) func aCommittedTransactionIsKept(isEmpty: Bool) throws {
    let name = fixture.temporary.string + "/source/main-mj0123456789"
    _ = try write(naming: name)
    if isEmpty { try fixture.temporary.write([], at: "source/main-mj0123456789") }
    let result = try fixture.capture(shelf, whenBusy: .deferred)
    #expect(result?.method == .locks && result?.conflict == nil)
    #expect(result?.interruptedCommit == .committed(superJournal: ByteString(name)))
    #expect(shelf.contents[.journal] == [])
    #expect(result?.members.last?.status.size == 0)
    #expect(shelf.contents[.database] == pages(1, 2))
  }

  /// The path leads to a directory without the file, but the database is in another directory,
  /// which only the app can reach by this path.
  @Test func anotherDirectoryDoesNotShowACommit() throws {
    _ = try fixture.temporary.directory.makeDirectory("other")
    let name = fixture.temporary.string + "/other/main-mj0123456789"
    let whole = try write(naming: name)
    let result = try fixture.capture(shelf, whenBusy: .deferred)
    #expect(result?.interruptedCommit == .undecided(superJournal: ByteString(name)))
    #expect(shelf.contents[.journal] == whole)
  }

  /// The file may exist at a place that only the app can see, so the copy must not be treated as
  /// consistent.
  @Test(arguments: ["/no such directory/main-mj0123456789", "main-mj0123456789", "/"])
  func aTransactionWithoutItsSuperJournalIsUndecided(name: String) throws {
    let whole = try write(naming: name)
    let result = try fixture.capture(shelf, whenBusy: .deferred)
    #expect(result?.method == .unlocked && result?.conflict == nil)
    #expect(result?.interruptedCommit == .undecided(superJournal: ByteString(name)))
    #expect(shelf.contents[.journal] == whole, "nothing is lost")
  }

  /// An incomplete record, or a journal that has ended, names no super-journal.
  @Test(arguments: [false, true]) func otherJournalsAreStoredUnchanged(isEnded: Bool) throws {
    var bytes = try write(naming: "/nowhere/main-mj0123456789")
    if isEnded { bytes[0] = 0 } else { bytes[bytes.count - 9] ^= 1 }
    try fixture.write(bytes, .journal)
    let result = try fixture.capture(shelf)
    #expect(result?.method == (isEnded ? .watching : .locks))
    #expect(result?.interruptedCommit == nil)
    #expect(shelf.contents[.journal] == bytes)
  }
}
