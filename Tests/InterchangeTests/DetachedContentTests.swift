import ArchiveStore
import Interchange
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Contents that other threads store while the source continues.
struct DetachedContentTests {
  /// Files, some of which are larger than those that are batched, and some of which are equal.
  private static func items() -> [ListedSource.Item] {
    var random = Seeded(9)
    let large = (0..<12).map { random.bytes(300_000 + 70_000 * $0) }
    return (0..<60).map { number in
      let bytes = number % 3 == 0 ? large[number / 3 % large.count] : random.bytes(number * 40)
      return ListedSource.Item.file("d\(number % 7)/f\(number)", bytes)
    }
  }

  @Test(arguments: [1, 2, 3, 5])
  func theSnapshotIsThatOfASequentialImport(workers: Int) throws {
    let fixture = try Fixture()
    let items = Self.items()
    let expected = try Fixture().run(items)
    var source = DetachingSource(items)
    let report = try fixture.run(&source) { $0.workers = workers }
    #expect(report.isComplete)
    #expect(report.snapshot.snapshot.tree == expected.snapshot.snapshot.tree)
    #expect(report.statistics.newBytes == expected.statistics.newBytes)
    #expect(source.detached == (workers == 1 ? 0 : 20))
    #expect(try fixture.bytes("folders/x/d3/f3", report).count == 370_000)
  }

  @Test func aDamagedContentCostsOneFile() throws {
    let fixture = try Fixture()
    var items = Self.items()
    items[9].parts.append(.failure(.damagedEntry))
    var source = DetachingSource(items)
    let report = try fixture.run(&source)
    #expect(report.skipped.entryCount == 1 && report.skipped.listed.map(\.path) == ["d2/f9"])
    let entries = try fixture.entries(report)
    #expect(entries["folders/x/d2/f9"] == nil && entries["folders/x/d3/f59"] != nil)
  }

  /// An error that does not concern a single file ends the import, whichever thread finds it.
  @Test func anotherErrorMakesNoSnapshot() throws {
    let fixture = try Fixture()
    var items = Self.items()
    items[30].parts = [.failure(.system)]
    var source = DetachingSource(items)
    let error = #expect(throws: InterchangeError.self) { try fixture.run(&source) }
    #expect(error?.kind == .system)
    #expect(try fixture.repository.snapshots().snapshots.isEmpty)
  }

  /// Contents that other threads stored before an interruption are not stored again.
  @Test func anInterruptionKeepsWhatIsStored() throws {
    let fixture = try Fixture()
    let reads = Atomic<Int>(0)
    var source = DetachingSource(Self.items()) { reads.add(1, ordering: .relaxed) }
    let error = #expect(throws: OperationError.self) {
      try fixture.run(&source) { $0.isStopping = { reads.load(ordering: .relaxed) > 24 } }
    }
    #expect(error?.kind == .interrupted)
    #expect(try fixture.repository.snapshots().snapshots.isEmpty)
    let all = try Fixture().run(Self.items()).statistics.newBytes
    let rest = try fixture.run(Self.items())
    #expect(rest.isComplete && rest.statistics.newBytes < all)
  }
}

/// A source whose contents can be read on other threads.
private struct DetachingSource: EntrySource {
  private var list: ListedSource
  private var item = ListedSource.Item.entry("", .directory)
  private var items: [ListedSource.Item]
  /// Called before each reading of a detached content.
  private let onRead: @Sendable () -> Void
  /// The number of contents that were detached.
  private(set) var detached = 0

  init(_ items: [ListedSource.Item], onRead: @escaping @Sendable () -> Void = {}) {
    (self.items, self.onRead) = (items, onRead)
    list = ListedSource(items)
  }

  var skipped: SkippedEntries { list.skipped }

  mutating func next() throws(InterchangeError) -> ForeignEntry? {
    if !items.isEmpty { item = items.removeFirst() }
    return try list.next()
  }

  mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    try list.read(into: buffer)
  }

  mutating func detachContent() -> (any DetachedContent)? {
    detached += 1
    return ItemContent(item, onRead)
  }
}

/// The content of an item of a list.
private final class ItemContent: DetachedContent {
  private let rest: Mutex<ListedSource>
  private let onRead: @Sendable () -> Void

  init(_ item: ListedSource.Item, _ onRead: @escaping @Sendable () -> Void) {
    var source = ListedSource([item])
    _ = try? source.next()
    rest = Mutex(source)
    self.onRead = onRead
  }

  func append(to bytes: inout [UInt8]) throws(InterchangeError) -> Int {
    onRead()
    let read = rest.withLock { source -> Result<[UInt8], InterchangeError> in
      Result { () throws(InterchangeError) in
        var piece: [UInt8] = []
        try piece.append(addingCapacity: 1 << 20) {
          (output: inout OutputSpan<UInt8>) throws(InterchangeError) in
          try output.withUnsafeMutableBufferPointer {
            (target: UnsafeMutableBufferPointer<UInt8>, filled: inout Int)
              throws(InterchangeError) in
            filled = try source.read(into: UnsafeMutableRawBufferPointer(target))
          }
        }
        return piece
      }
    }
    let piece = try read.get()
    bytes += piece
    return piece.count
  }
}
