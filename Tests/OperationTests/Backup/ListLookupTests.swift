import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import Backup

/// Unchanged large files after a prune: their blobs are looked up, and the lists of these blobs are
/// read from the state file.
@Suite(.spreadScans) struct ListLookupTests {
  private let fixture: Fixture
  private let storage: WatchedStorage
  private let repository: Repository

  /// Files with more pieces than an entry can hold, so that their pieces are in lists.
  init() throws {
    fixture = try Fixture(inMemory: true)
    storage = WatchedStorage(fixture.repository.storage)
    repository = try Repository.open(storage)
    for number in 0..<3 {
      let file = try Directory.open(path: fixture.directory.path("tree"))
        .create(ByteString("large \(number)"))
      var random = Seeded(UInt64(number))
      for piece in 0..<UInt64(300) {
        try file.seek(to: piece << 20)
        try file.write(random.bytes(4096))
      }
    }
  }

  /// Backs up. Returns the number of files that were read, the packs that were read from, and the
  /// report.
  private func backUp() throws -> (opened: UInt64, loads: [String], report: BackupReport) {
    storage.state.withLock { $0.events = [] }
    let report = try fixture.backup(to: repository, keeping: "cache")
    #expect(report.isComplete && report.remarks.isEmpty, "\(report.remarks)")
    let loads = storage.state.withLock(\.events).filter { $0.hasPrefix("range packs/") }
    return (UInt64(report.opened), loads, report)
  }

  private func requireLists(_ report: BackupReport) throws {
    let tree = try #require(report.snapshot).snapshot.tree
    let entry = try repository.beginReading().entry(at: "folders/tree/large 1", in: tree)
    guard case .file(let content) = try #require(entry).node else { throw Fixture.Missing() }
    try #require(content.level > 0, "the file has no list")
  }

  /// Stores a list of condemned packs with a pack that does not exist.
  private func condemn() throws {
    let bytes = CondemnedObject(packs: [Blake2b.hash([1])]).encode()
    let name = "\(Blake2b.hash(bytes).hex).json"
    try fixture.directory.write(bytes, at: ByteString("repo/condemned/\(name)"))
  }

  private func forget(_ report: BackupReport) throws {
    let id = try #require(report.snapshot).id.hex
    let name = ByteString("\(id).json\(TestEncryption.suffix)")
    try fixture.directory.directory.remove(ByteString("repo/snapshots").appending(name))
  }

  @Test func noListIsReadAfterAPrune() throws {
    try fixture.directory.write("first", at: "tree/small")
    var reports = [try backUp().report]
    try requireLists(reports[0])
    for text in ["second", "third"] {
      try fixture.directory.write(text, at: "tree/small")
      reports.append(try backUp().report)
    }
    for report in reports.dropLast() { try forget(report) }
    #expect(try RepositoryPrune(repository).run().removedPacks > 0)
    for _ in 0..<2 {
      let again = try backUp()
      #expect(again.opened == 0 && again.loads.isEmpty, "\(again.loads)")
      #expect(again.report.snapshot?.snapshot.tree == reports.last?.snapshot?.snapshot.tree)
    }
  }

  /// While a condemned object exists, each run looks up all blobs.
  @Test func noListIsReadBesideACondemnedObject() throws {
    try requireLists(try backUp().report)
    try condemn()
    for _ in 0..<2 {
      let again = try backUp()
      #expect(again.opened == 0 && again.loads.isEmpty, "\(again.loads)")
    }
  }

  /// If the record of lists is damaged, the lists are read from the repository, with no other
  /// effect.
  @Test func damagedRecordsOfListsAreReadFromTheRepository() throws {
    let first = try backUp().report
    try requireLists(first)
    let tree = try #require(first.snapshot).snapshot.tree
    let entry = try repository.beginReading().entry(at: "folders/tree/large 1", in: tree)
    guard case .file(let content) = try #require(entry).node else { throw Fixture.Missing() }
    let list = try repository.beginReading().readBlob(
      BlobID(kind: .list, digest: try #require(content.pieces[0].digest)))
    let state = try #require(fixture.stateFiles("cache", ".state").first)
    var bytes = try fixture.directory.read(state)
    let start = try #require(bytes.firstRange(of: list)).lowerBound
    bytes[start + 20] ^= 1
    try fixture.directory.write(bytes, at: state)
    let above = try Directory.open(path: fixture.directory.path(state.parent))
    try above.setPermissions(0o600, of: try #require(state.lastComponent))
    try condemn()
    let again = try backUp()
    #expect(again.opened == 0 && !again.loads.isEmpty)
    #expect(again.report.snapshot?.snapshot.tree == tree)
  }

  /// The lists of files are kept when the state file is rewritten without its unused records.
  @Test func listsSurviveARewriteOfTheState() throws {
    let fixture = try StateFixture()
    let inner = (1...2).map { number in
      ContentCoding.encodeList(
        level: 0, pieces: [.blob(Blake2b.hash([UInt8(number)]), length: 10), .hole(length: 5)])
    }
    let lists = inner.map { Blake2b.hash($0) }
    let outer = ContentCoding.encodeList(level: 1, pieces: lists.map { .blob($0, length: 15) })
    let top = Blake2b.hash(outer)
    let content = Content(size: 30, level: 2, pieces: [.blob(top, length: 30)])
    let encoded = try TreeEntry(name: "large", node: .file(content)).encoded()
    let status = FileStatus(
      .file, identity: FileIdentity(device: 1, inode: 9), size: 2 << 20,
      modified: StateFixture.time, changed: StateFixture.time)
    let key = DirectoryKey(container: "folders/tree")
    var (largest, last) = (0, 0)
    for run in 0..<12 {
      let state = try fixture.open()
      var record = state.makeRecord()
      if run == 0 {
        for (list, bytes) in zip(lists, inner) {
          state.lists.add(WritingSession.StoredList(digest: list, bytes: bytes, lists: []))
        }
        #expect(state.lists.write(of: encoded, status) == nil, "a list is missing")
        for (list, bytes) in zip(lists, inner) {
          state.lists.add(WritingSession.StoredList(digest: list, bytes: bytes, lists: []))
        }
        state.lists.add(WritingSession.StoredList(digest: top, bytes: outer, lists: lists))
        let pointer = try #require(state.lists.write(of: encoded, status))
        ByteString("large").withSpan {
          record.add($0, status, isStable: true, encoded: encoded, record: pointer)
        }
      } else {
        var known = state.directory(state.containers[0].entry, key: key)
        let found = known.find("large", status)
        record.reuse(try #require(found))
      }
      let unused = try StateFixture.record(state, 0..<4000, tree: 0)
      let sub = try TreeEntry(name: "sub", node: .directory(StateFixture.tree(1))).encoded()
      ByteString("sub").withSpan {
        record.add(
          $0, StateFixture.status(1, .directory), isStable: true, encoded: sub, record: unused)
      }
      let start = state.write(record, tree: StateFixture.tree(2))
      try state.finish(
        [try StateFixture.container("folders/tree", start)], snapshot: StateFixture.snapshot,
        packs: [])
      last = try fixture.bytes().count
      largest = max(largest, last)
    }
    #expect(last < largest, "the state was not rewritten")
    let state = try fixture.open()
    var known = state.directory(state.containers[0].entry, key: key)
    let kept = known.find("large", status)
    let entry = try #require(kept)
    let found = RecordedLists.OfFile(
      at: try #require(entry.lists), in: try #require(state.known?.file))
    #expect(
      found.pieces(of: top, level: 1, length: 30) == lists.map { .blob($0, length: 15) })
    #expect(found.pieces(of: lists[1], level: 0, length: 15)?.count == 2)
    #expect(found.pieces(of: lists[1], level: 0, length: 16) == nil)
    #expect(found.pieces(of: Blake2b.hash([7]), level: 0, length: 15) == nil)
  }
}
