import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import Mount

/// Content that is put into the kernel's cache ahead of reads. A recorder replaces the kernel.
struct ContentAheadTests {
  private let fixture: MountFixture
  private let recorder = Recorder()

  init() throws { fixture = try MountFixture() }

  /// The bytes that were put, by node number and offset.
  private final class Recorder: Sendable {
    private let all = Mutex<[UInt64: [UInt64: [UInt8]]]>([:])
    private let calls = Mutex(0)

    var count: Int { calls.withLock { $0 } }

    subscript(number: UInt64) -> [UInt64: [UInt8]] { all.withLock { $0[number] ?? [:] } }

    func put(_ number: UInt64, _ offset: UInt64, _ bytes: UnsafeRawBufferPointer) -> Bool {
      calls.withLock { $0 += 1 }
      let copy = Array(bytes)
      all.withLock { $0[number, default: [:]][offset] = copy }
      return true
    }
  }

  private func ahead(_ files: SnapshotFileSystem) throws -> ContentAhead {
    try ContentAhead(files) { [recorder] in recorder.put($0, $1, $2) }
  }

  /// Stores a snapshot of a directory `d` of small files and a file `large`. Returns their file
  /// system.
  private func makeFiles(
    _ count: Int = 200, large: [UInt8] = MountFixture.large,
    bytes: (Int) -> [UInt8] = { ContentAheadTests.text(ByteString("f\(1000 + $0)")) }
  ) throws -> SnapshotFileSystem {
    let session = try fixture.repository.beginWriting()
    let writer = try session.makeWriter()
    let names = (0..<count).map { ByteString("f\(1000 + $0)") }
    var entries: [TreeEntry] = []
    for (position, name) in names.enumerated() {
      let content = try writer.storeFile(logicalPath: name, bytes: bytes(position).span)
      entries.append(TreeEntry(name: name, node: .file(content)))
    }
    let content = try writer.storeFile(logicalPath: "large", bytes: large.span)
    try writer.flush()
    let directory = try session.storeTree(entries)
    let root = try session.storeTree([
      TreeEntry(name: "d", node: .directory(directory)),
      TreeEntry(name: "large", node: .file(content)),
    ])
    let stored = try session.finish(fixture.snapshot(root, 1))
    let reader = try fixture.repository.beginSharedReading()
    return try SnapshotFileSystem(reader, snapshot: SnapshotHead(stored)) { [fixture] in
      fixture.reports.add($0)
    }
  }

  private static func text(_ name: ByteString) -> [UInt8] {
    (0..<20).flatMap { _ in name.bytes }
  }

  /// Reads a range, as a request does.
  private func read(
    _ ahead: ContentAhead, _ files: SnapshotFileSystem, _ number: UInt64, from offset: UInt64 = 0,
    count: Int = 131_072
  ) throws {
    let parts = try files.read(number, from: offset, count: count)
    ahead.didRead(number, from: offset, count: count, parts)
  }

  @Test func siblingsOfAReadFileArePut() throws {
    let files = try makeFiles()
    let ahead = try ahead(files)
    let known = ["f1000", "f1001", "f1127", "f1128"] as [ByteString]
    let numbers = try known.map { try files.find(ByteString("d").appending($0)).number }
    try read(ahead, files, numbers[0])
    try read(ahead, files, numbers[0])
    ahead.workers.finish()
    // Only files among the same 128 entries that the kernel knows are put, once each, except for
    // the one that was read.
    #expect(recorder.count == 2)
    #expect(recorder[numbers[1]] == [0: Self.text("f1001")])
    #expect(recorder[numbers[2]] == [0: Self.text("f1127")])
  }

  @Test func listedFilesArePutWhileFilesAreRead() throws {
    let files = try makeFiles()
    let ahead = try ahead(files)
    let directory = try files.find("d").number
    let handle = try files.openDirectory(directory).handle
    let (end, numbers) = try enterAll(of: handle, files)
    ahead.willList(handle, from: end)
    // No file has been read yet.
    let first = try #require(numbers["f1000"])
    _ = try files.read(first, from: 0, count: 10)
    ahead.didListAttributes(of: first)
    ahead.willList(handle, from: end)
    ahead.workers.finish()
    #expect(recorder.count == 200 && numbers.count == 200)
    for (name, number) in numbers { #expect(recorder[number] == [0: Self.text(name)]) }
  }

  /// Enters all entries of a directory. Returns the offset of its end, and the numbers of the
  /// entries.
  private func enterAll(
    of handle: UInt64, _ files: SnapshotFileSystem
  ) throws -> (end: Int64, numbers: [ByteString: UInt64]) {
    var (end, numbers): (Int64, [ByteString: UInt64]) = (0, [:])
    try files.readDirectory(handle, from: 0) { item in
      if let entered = try? files.enter(item, of: handle) { numbers[item.name] = entered.number }
      end = item.next
      return true
    }
    return (end, numbers)
  }

  /// The kernel certainly has an entry once it requests the next ones.
  @Test func partsAreNewOnceAllTheirEntriesWerePassed() throws {
    let files = try makeFiles()
    let handle = try files.openDirectory(try files.find("d").number).handle
    #expect(files.newParts(of: handle, before: 2 + 127).isEmpty, "a part that is not whole")
    #expect(files.newParts(of: handle, before: 2 + 130).map(\.number) == [0])
    #expect(files.newParts(of: handle, before: 2 + 200).map(\.number) == [1])
    #expect(files.newParts(of: handle, before: 2 + 200).isEmpty)
  }

  /// cp(1) reads files in the order of their numbers, which is the order of their content in the
  /// packs.
  @Test func numbersAscendInTheOrderOfNames() throws {
    let files = try makeFiles()
    let handle = try files.openDirectory(try files.find("d").number).handle
    let numbers = try enterAll(of: handle, files).numbers
    #expect(numbers.count == 200)
    #expect(numbers.keys.sorted().map { numbers[$0] ?? 0 } == numbers.values.sorted())
  }

  /// If files are read in order, the following ones are decoded and put, 128 to 256 entries ahead.
  @Test func filesAfterReadsInOrderAreDecoded() throws {
    let contents = (0..<400).map { MountFixture.large.dropFirst($0 * 4096).prefix(8192) }
    let files = try makeFiles(400) { Array(contents[$0]) }
    let ahead = try ahead(files)
    let handle = try files.openDirectory(try files.find("d").number).handle
    let numbers = try enterAll(of: handle, files).numbers.sorted { $0.key < $1.key }.map(\.value)
    try read(ahead, files, numbers[0])
    let before = files.reader.decodedFrames
    try read(ahead, files, numbers[1])
    ahead.didListAttributes(of: numbers[1])
    ahead.didListAttributes(of: numbers[129])
    ahead.workers.finish()
    for (position, number) in numbers.enumerated() where position > 0 && position < 384 {
      let isPut = recorder[number] == [0: Array(contents[position])]
      #expect(isPut, "\(position)")
    }
    #expect(numbers[384...].allSatisfy { recorder[$0].isEmpty })
    #expect(files.reader.decodedFrames > before)
  }

  @Test func directoriesAreReadAheadOnlyInOrder() {
    var streams = DirectoryStreams()
    func part(_ number: UInt32, page: UInt32 = 0, _ directory: UInt64 = 1) -> DirectoryPart {
      DirectoryPart(directory: directory, page: page, number: number)
    }
    func work(_ part: DirectoryPart, _ includesPart: Bool) -> DirectoryStreams.Work {
      DirectoryStreams.Work(part: part, includesPart: includesPart)
    }
    #expect(streams.didList(part(0)) == nil && streams.didRead(5, in: part(0)) == nil)
    #expect(streams.didList(part(1)) == nil, "one file")
    #expect(streams.didRead(4, in: part(0)) == nil, "backwards")
    #expect(streams.didRead(600, in: part(4)) == nil, "far away")
    #expect(streams.didRead(1, in: part(0, 2)) == nil, "another directory")
    #expect(streams.didRead(601, in: part(4)) == work(part(4), true))
    #expect(streams.didRead(602, in: part(4)) == nil, "once")
    #expect(streams.didList(part(5)) == work(part(5), false))
    #expect(streams.didList(part(4)) == nil && streams.didList(part(5)) == nil)
    #expect(streams.didRead(1 << 20, in: part(0, page: 1)) == work(part(0, page: 1), false))
    #expect(streams.didRead(1 << 20 | 300, in: part(2, page: 1)) == work(part(2, page: 1), true))
    #expect(DirectoryPart(1, of: 1 << 20 | 300) == part(2, page: 1))
    for directory in UInt64(10)..<40 { _ = streams.didRead(0, in: part(0, directory)) }
    #expect(streams.didRead(1 << 20 | 301, in: part(2, page: 1)) == nil, "only the last ones")
  }

  @Test func nothingIsPutForListingsAlone() throws {
    let files = try makeFiles(10)
    let ahead = try ahead(files)
    let first = try files.find("d/f1000").number
    _ = try files.read(first, from: 0, count: 10)
    let handle = try files.openDirectory(files.find("d").number).handle
    ahead.willList(handle, from: 12)
    ahead.workers.finish()
    #expect(recorder.count == 0)
  }

  @Test func largeFilesArePutAheadOfReadsInOrder() throws {
    let large = MountFixture.large + [1, 2, 3]
    let files = try makeFiles(1, large: large)
    let ahead = try ahead(files)
    let number = try files.find("large").number
    try read(ahead, files, number)
    try read(ahead, files, number, from: 131_072)
    ahead.workers.finish()
    let isNext = recorder[number] == [262_144: Array(large[262_144..<524_288])]
    #expect(isNext, "\(recorder[number].mapValues(\.count))")
    var streams = ReadStreams()
    let size = UInt64(large.count)
    var (offset, ranges): (UInt64, [Range<UInt64>]) = (0, [])
    while offset < size {
      let range = streams.next(7, from: offset, count: 131_072, size: size)
      if let range { ranges.append(range) }
      offset = range?.upperBound ?? offset + 131_072
    }
    #expect(ranges.last?.upperBound == size, "\(ranges)")
    #expect(ranges.count == 5, "the ranges grow: \(ranges)")
  }

  /// Random reads, as in databases, put nothing.
  @Test func scatteredReadsPutNothing() {
    var streams = ReadStreams()
    let size: UInt64 = 1 << 40
    for number in UInt64(0)..<200 {
      let offset = (number * 7_919 % 200) << 24
      #expect(streams.next(number % 5, from: offset, count: 4096, size: size) == nil)
    }
    // Two sequential readers at once, whose requests overtake each other.
    #expect(streams.next(8, from: 0, count: 131_072, size: size) == nil)
    #expect(streams.next(9, from: 0, count: 131_072, size: size) == nil)
    #expect(streams.next(8, from: 262_144, count: 131_072, size: size) == 393_216..<655_360)
    #expect(streams.next(9, from: 131_072, count: 131_072, size: size) == 262_144..<524_288)
    #expect(streams.next(8, from: 131_072, count: 131_072, size: size) != nil)
  }

  /// Work ahead of reads neither puts damaged content nor reports the damage.
  @Test func damagedContentIsNotPut() throws {
    let files = try makeFiles(1)
    let number = try files.find("large").number
    let reader = try fixture.repository.beginReading()
    let tree = try #require(try fixture.repository.heads().heads.first).tree
    let entry = try #require(try reader.entry(at: "large", in: tree))
    guard case .file(let content) = entry.node else { return }
    let blobs = content.pieces.compactMap { $0.digest.map { BlobID(kind: .data, digest: $0) } }
    try fixture.damage(Array(blobs.dropFirst()))
    let ahead = try ahead(files)
    try read(ahead, files, number, count: 4096)
    let end = try #require(content.pieces.first).length
    let offset = end / 4096 * 4096 - 131_072
    try read(ahead, files, number, from: offset, count: 4096)
    try read(ahead, files, number, from: offset + 4096, count: 4096)
    ahead.workers.finish()
    for (offset, bytes) in recorder[number] {
      let isStored = bytes.elementsEqual(MountFixture.large[Int(offset)...].prefix(bytes.count))
      #expect(isStored, "\(offset)")
      #expect(offset + UInt64(bytes.count) <= end)
    }
    #expect(fixture.reports.all.isEmpty)
  }
}
