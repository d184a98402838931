import ArchiveStore
import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Imports of a newer backup of the same device read only the files that changed according to its
/// manifest.
struct LaterImportTests {
  typealias Item = MobileSyncFixture.Item

  private static let app = "AppDomain-com.example.app"
  private let fixture: Fixture
  private let cache: TemporaryDirectory

  init() throws {
    (fixture, cache) = (try Fixture(), try TemporaryDirectory("cache"))
  }

  /// A file that had not changed for a long time before the backup.
  private static func item(_ path: String, _ text: String, at time: Int64 = 1_600_000_000) -> Item {
    Item(app, path, .file(Array(text.utf8))) { item in
      (item.file.modified, item.file.changed) = (time, time)
      item.file.inode = UInt64(path.utf8.reduce(7) { $0 &* 31 &+ Int($1) } & 0xffff) + 1
    }
  }

  private struct Outcome {
    let report: ImportReport
    let opened: Int
  }

  private func run(
    _ directory: TemporaryDirectory, password: String? = nil, to fixture: Fixture? = nil,
    isReread: Bool = false
  ) throws -> Outcome {
    let secret = password.map { BackupPassword(SecretBytes(copying: Array($0.utf8).span)) }
    var source = try MobileSyncSource(
      try MobileSyncBackup(path: directory.path, password: secret))
    let counters = ProgressCounters()
    let report = try (fixture ?? self.fixture).run(&source) { request in
      request.counters = counters
      request.contents = .init(in: cache.path("repository"), isReread: isReread)
    }
    #expect(counters.progress.unchanged == report.unchanged)
    return Outcome(report: report, opened: counters.progress.opened)
  }

  private func text(_ path: String, _ outcome: Outcome) throws -> String {
    try fixture.text(ByteString("folders/x/apps/com.example.app/data/" + path), outcome.report)
  }

  /// Replaces a content with other bytes of the same size, or of a given one.
  private func spoil(
    _ path: String, in directory: TemporaryDirectory, _ form: MobileSyncFixture.Form = .database,
    size: Int? = nil
  ) throws {
    let name = MobileSyncFixture.name(of: Self.item(path, ""))
    let place =
      form == .records ? name : ByteString(name.bytes.prefix(2)).appending(name)
    let bytes = try directory.read(place).map { ~$0 }
    try directory.directory.remove(at: place)
    try directory.write(Array(bytes.prefix(size ?? bytes.count)), at: place)
  }

  /// Unchanged files keep the stored content although the backup has other bytes for them.
  @Test(arguments: MobileSyncFixture.Form.allCases, [nil, "a password"])
  func onlyChangedContentsAreRead(_ form: MobileSyncFixture.Form, _ password: String?) throws {
    var backup = MobileSyncFixture([
      Item(Self.app, "", .directory), Self.item("same", "the same text"),
      Self.item("changed", "before"), Self.item("empty", ""), Self.item("gone", "removed"),
    ])
    (backup.form, backup.password) = (form, password)
    let first = try run(try backup.write(), password: password)
    #expect(first.report.isComplete && first.report.unchanged == 0 && first.opened == 4)
    backup.items[2] = Self.item("changed", "after.", at: 1_600_000_001)
    backup.items[4] = Self.item("new", "added")
    // The metadata is that of the newer backup.
    backup.items[1].file.attributes = [.init(name: "note", value: [1])]
    let directory = try backup.write()
    try spoil("same", in: directory, form)
    let second = try run(directory, password: password)
    #expect(second.report.isComplete, "\(second.report.skipped.listed)")
    #expect(second.report.unchanged == 2 && second.opened == 2)
    #expect(try text("same", second) == "the same text")
    #expect(try text("changed", second) == "after.")
    #expect(try text("empty", second).isEmpty)
    #expect(try text("new", second) == "added")
    let entries = try fixture.entries(second.report)
    #expect(entries["folders/x/apps/com.example.app/data/gone"] == nil)
    let same = entries["folders/x/apps/com.example.app/data/same"]
    #expect(same?.attributes.map(\.name) == ["user.note"])
    #expect(second.report.snapshot.snapshot.totals.files == 4)
    // The record of the second import is also complete.
    #expect(try run(directory, password: password).report.unchanged == 4)
    let again = try run(directory, password: password, isReread: true)
    #expect(again.report.unchanged == 0 && again.opened == 4)
  }

  /// Each recorded property in the manifest counts.
  @Test(arguments: 0..<7) func aChangedFactIsAChangedContent(_ fact: Int) throws {
    var backup = MobileSyncFixture([Self.item("file", "before")])
    _ = try run(try backup.write())
    var item = Self.item("file", "after.")
    switch fact {
    case 0: item.file.modified += 1
    case 1: item.file.changed += 1
    case 2: item.file.born += 1
    case 3: item.file.inode += 1
    case 4: item.file.mode = 0o100600
    case 5: item.file.protectionClass = 2
    default: item.file.key = WrappedKey(classNumber: 3, wrapped: [UInt8](repeating: 1, count: 40))
    }
    backup.items = [item]
    let second = try run(try backup.write())
    #expect(second.opened == 1)
    #expect(try text("file", second) == "after.")
  }

  /// The times of a file that changed shortly before the backup do not prove that it is unchanged:
  /// the content in the backup has to be the same file.
  @Test(arguments: ["recent", "without inode", "without status change"])
  func aRecentFileIsReadUnlessItsContentIsTheSameFile(_ reason: String) throws {
    var item = Self.item("file", "before", at: reason == "recent" ? 1_678_307_100 : 1_600_000_000)
    if reason == "without inode" { item.file.inode = 0 }
    if reason == "without status change" { item.file.changed = 0 }
    let directory = try MobileSyncFixture([item]).write()
    _ = try run(directory)
    #expect(try run(directory).opened == 0)
    try spoil("file", in: directory)
    let third = try run(directory)
    #expect(third.opened == 1)
    let read = try fixture.bytes("folders/x/apps/com.example.app/data/file", third.report)
    #expect(read == "before".utf8.map { ~$0 })
  }

  @Test func aMissingContentIsNamedAlthoughItIsStored() throws {
    let backup = MobileSyncFixture([Self.item("file", "text"), Self.item("other", "more")])
    let directory = try backup.write()
    _ = try run(directory)
    let name = MobileSyncFixture.name(of: backup.items[0])
    try directory.directory.remove(at: ByteString(name.bytes.prefix(2)).appending(name))
    let second = try run(directory)
    #expect(!second.report.isComplete && second.report.unchanged == 1)
    let named = try #require(second.report.skipped.listed.first)
    #expect(named.path == ByteString(Self.app + "/file"))
    #expect(named.reason.hasSuffix("is missing in the backup"))
  }

  /// The log of a database, whose size may differ, is read and reported each time.
  @Test func aContentOfAnotherSizeIsRead() throws {
    let directory = try MobileSyncFixture([Self.item("db-wal", "text")]).write()
    _ = try run(directory)
    try spoil("db-wal", in: directory, size: 2)
    for _ in 0..<2 {
      let next = try run(directory)
      #expect(next.opened == 1 && next.report.skipped.propertyCount == 1)
      #expect(next.report.isComplete)
    }
  }

  /// A truncated content is reported each time, although it is stored completely.
  @Test func aTruncatedContentIsNamed() throws {
    let directory = try MobileSyncFixture([
      Self.item("file", "text"), Self.item("other", "more"),
    ]).write()
    _ = try run(directory)
    try spoil("file", in: directory, size: 2)
    for _ in 0..<2 {
      let next = try run(directory)
      #expect(!next.report.isComplete && next.report.unchanged == 1 && next.opened == 0)
      #expect(next.report.skipped.listed.map(\.path) == [ByteString(Self.app + "/file")])
    }
  }

  /// The record of one repository is not used for another, so nothing refers to missing data.
  @Test func contentsThatTheRepositoryLacksAreRead() throws {
    let directory = try MobileSyncFixture([Self.item("file", "text")]).write()
    _ = try run(directory)
    let other = try run(directory, to: try Fixture())
    #expect(other.opened == 1 && other.report.unchanged == 0)
  }

  /// A damaged record costs time and is never trusted.
  @Test func aDamagedRecordIsNotUsed() throws {
    let directory = try MobileSyncFixture([Self.item("file", "text")]).write()
    _ = try run(directory)
    let files = try Directory.open(path: cache.path("repository"))
    let name = try #require(try files.names().first { $0.description.hasPrefix("imported-") })
    let path = ByteString("repository").appending(name)
    let whole = try cache.read(path)
    for offset in stride(from: 0, to: whole.count, by: 5) {
      var bytes = whole
      bytes[offset] ^= 0x10
      try rewrite(bytes, path)
      #expect(try run(directory).opened == 1, "at byte \(offset)")
    }
    for count in [0, 1, 95, 96, whole.count - 1] {
      try rewrite(Array(whole.prefix(count)), path)
      #expect(try run(directory).opened == 1, "of \(count) bytes")
    }
    try rewrite(whole, path)
    #expect(try run(directory).opened == 0)
    try files.setPermissions(0o666, of: name)
    #expect(try run(directory).opened == 1, "another user may have written it")
  }

  private func rewrite(_ bytes: [UInt8], _ path: ByteString) throws {
    try cache.directory.remove(at: path)
    try cache.write(bytes, at: path)
    try Directory.open(path: cache.path("repository")).setPermissions(
      0o600, of: path.lastComponent ?? "")
  }
}

extension Directory {
  /// Removes a file below the directory.
  fileprivate func remove(at path: ByteString) throws {
    try Directory.open(path: self.path.appending(path.parent)).remove(path.lastComponent ?? "")
  }
}
