import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

struct SessionTests {
  private let storage = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  private func objects(_ directory: String) throws -> Int {
    let path = try #require(ObjectPath(directory))
    return try storage.list(path).count
  }

  private func packs() throws -> Int {
    try RepositoryLayout.packDirectories.reduce(0) { count, name in
      try count + storage.list(RepositoryLayout.packs.appending(name)).count
    }
  }

  @Test func filesAndDirectoriesAreReadBack() throws {
    var random = SeededBytes(seed: 11)
    let session = try repository.beginWriting()
    var files: [(name: ByteString, bytes: [UInt8])] = [
      ("empty", []), ("one", [1]), ("small", random.bytes(1000)),
      ("half", random.bytes(512 << 10)), ("more", random.bytes((512 << 10) + 1)),
      ("eight", random.bytes(8 << 20)), ("large", random.bytes((8 << 20) + 1)),
      ("zeros", [UInt8](repeating: 0, count: 9 << 20)),
      ("base", DatabaseHead.bytes + random.bytes(5 << 20)),
      (ByteString([0xff, 0x0a, 0x80]), random.bytes(10)),
    ]
    var entries: [TreeEntry] = []
    for file in files {
      let path = ByteString("folders/x").appending(file.name)
      let content = try session.storeFile(logicalPath: path, bytes: file.bytes)
      #expect(content.size == file.bytes.count)
      entries.append(TreeEntry(name: file.name, node: .file(content)))
    }
    let inner = try session.storeTree(entries.shuffled())
    let root = try session.storeTree([TreeEntry(name: "x", node: .directory(inner))])
    let snapshot = try session.finish(repository.makeSnapshot(root))
    #expect(snapshot.snapshot.totals.stored > 0)

    let reader = try Repository.open(storage).beginReading()
    files.sort { $0.name < $1.name }
    #expect(try reader.entries(of: inner).map(\.name) == files.map(\.name))
    for file in files {
      let bytes = try reader.bytes(at: ByteString("x").appending(file.name), in: snapshot)
      #expect(bytes == file.bytes, "\(file.name)")
    }
    #expect(try reader.entry(at: "x/none", in: root) == nil)
    #expect(try reader.entry(at: "x/one/none", in: root) == nil)
    #expect(try reader.entry(at: "", in: root) == nil)
    #expect(try objects("leases") == 0)
  }

  @Test func holesAreNeitherReadNorStored() throws {
    var random = SeededBytes(seed: 12)
    let (head, tail) = (random.bytes(5000), random.bytes(700_000))
    let session = try repository.beginWriting()
    let content = try session.storeFile(logicalPath: "folders/x/sparse") { writer in
      try writer.append(head)
      try writer.appendHole(length: 1 << 40)
      try writer.append(tail.span.extracting(0..<300_000))
      try writer.append(tail.span.extracting(300_000..<700_000))
      try writer.appendHole(length: 4096)
    }
    #expect(content.size == 5000 + 1 << 40 + 700_000 + 4096)
    #expect(content.pieces.count { if case .hole = $0 { true } else { false } } == 2)
    #expect(session.statistics.newBytes == 705_000)
    let tree = try session.storeTree([TreeEntry(name: "sparse", node: .file(content))])
    _ = try session.finish(repository.makeSnapshot(tree))
    let reader = try repository.beginReading()
    var offsets: [UInt64] = []
    var joined: [UInt8] = []
    try reader.readContent(content) { offset, bytes in
      offsets.append(offset)
      for index in 0..<bytes.count { joined.append(bytes[index]) }
    }
    #expect(offsets.prefix(2) == [0, 5000 + 1 << 40])
    #expect(joined == head + tail)
  }

  @Test func nothingIsStoredTwice() throws {
    var random = SeededBytes(seed: 13)
    let bytes = random.bytes(3 << 20)
    let files = [("a", bytes), ("b", bytes), ("c", [UInt8]("text".utf8))]
    let first = try repository.back(up: files, sequence: 1)
    let stored = try packs()
    #expect(first.snapshot.totals.stored > 3 << 20)
    #expect(first.snapshot.totals.stored < 4 << 20)
    let second = try repository.back(up: files, sequence: 2)
    #expect(second.snapshot.tree == first.snapshot.tree)
    #expect(second.snapshot.totals.stored == 0)
    #expect(try packs() == stored)
    #expect(try objects("index") == 1)
    #expect(try objects("snapshots") == 2)
  }

  @Test(
    arguments: [
      0, 1, 100, ContentWriter.smallFile, ContentWriter.smallFile + 1, 3_000_001,
      ContentWriter.wholeFile, ContentWriter.wholeFile + 1,
    ], [false, true])
  func bytesInMemoryAreStoredLikeStreamedBytes(count: Int, isDatabase: Bool) throws {
    var random = SeededBytes(seed: 15)
    var bytes = random.bytes(count)
    if isDatabase && count >= 16 {
      bytes.replaceSubrange(0..<16, with: DatabaseHead.bytes)
    }
    let hints = FileHints(size: UInt64(count), permissions: 0o640)
    let session = try repository.beginWriting()
    let whole = try session.withWriter {
      try $0.storeFile(logicalPath: "folders/x/a", bytes: bytes.span, hints: hints)
    }
    let isNew = session.statistics.newBytes
    let inPortions = try session.storeFile(logicalPath: "folders/x/b", hints: hints) { file in
      try file.append(bytes.span.extracting(0..<(count / 3)))
      try file.append(bytes.span.extracting((count / 3)..<count))
    }
    #expect(whole == inPortions)
    // The many pieces of a database are named in lists, which are blobs as well.
    #expect(isDatabase ? isNew >= UInt64(count) : isNew == UInt64(count))
    #expect(session.statistics.newBytes == isNew)
    #expect(session.statistics.knownBytes == isNew)
    session.abandon()
  }

  /// A file in memory and a file read in portions result in the same members, even if a part of the
  /// file is already stored or repeats.
  @Test func membersInMemoryEqualStreamedMembers() throws {
    var random = SeededBytes(seed: 16)
    let large = random.bytes(4 << 20)
    let (known, new) = (Array(large.prefix(5 << 19)), random.bytes(1_000_000))
    let page = DatabaseHead.bytes + random.bytes((16 << 10) - 16)
    let files: [[UInt8]] = [
      large, known, known + new, new + new, page + page + new, new + page, page + new + page + page,
    ]
    func members(_ store: (ContentWriter, [UInt8]) throws -> Content) throws -> [Set<[UInt8]>] {
      try files.map { bytes in
        let repository = try Repository.create(in: MemoryStorage(), program: "test")
        let session = try repository.beginWriting()
        let content = try session.withWriter { writer in
          _ = try writer.storeFile(logicalPath: "folders/x/known", bytes: known)
          _ = try writer.storeFile(logicalPath: "folders/x/page", bytes: page)
          return try store(writer, bytes)
        }
        let entry = TreeEntry(name: "a", node: .file(content))
        let snapshot = try session.finish(repository.makeSnapshot(try session.storeTree([entry])))
        #expect(try repository.beginReading().bytes(at: "a", in: snapshot) == bytes)
        return try names(in: repository)
      }
    }
    let inMemory = try members { try $0.storeFile(logicalPath: "folders/x/a", bytes: $1) }
    let inPortions = try members { writer, bytes in
      try writer.storeFile(logicalPath: "folders/x/a") { file in
        var start = 0
        while start < bytes.count {
          let end = min(bytes.count, start + 700_001)
          try file.append(bytes.span.extracting(start..<end))
          start = end
        }
      }
    }
    #expect(inMemory == inPortions)
    let whole = Array("folders/x/a".utf8)
    #expect(inMemory.map { $0.contains(whole) } == [false, false, false, true, false, true, false])
  }

  /// Returns the names of all members of a repository's packs.
  private func names(in repository: Repository) throws -> Set<[UInt8]> {
    let storage = repository.storage
    var names: Set<[UInt8]> = []
    for object in try LoadedIndex.loadAll(from: storage).objects {
      for pack in (0..<object.packs).map({ object.pack($0) }) {
        for frame in try PackTables.load(pack.id, size: pack.size, from: storage).frames {
          let stored = try storage.load(
            pack: pack.id, offset: frame.offset, count: Int(frame.stored))
          var decompressor = try ZstdDecompressor()
          let plain = try decompressor.decompress(stored, limit: Int(frame.plain))
          names.formUnion(try TarReader.members(of: plain).map(\.member.path))
        }
      }
    }
    return names
  }

  @Test func statisticsCountKnownBlobs() throws {
    let session = try repository.beginWriting()
    _ = try session.storeFile(logicalPath: "folders/x/a", bytes: [1, 2, 3])
    _ = try session.storeFile(logicalPath: "folders/x/b", bytes: [1, 2, 3])
    _ = try session.storeFile(logicalPath: "folders/x/c", bytes: [4])
    #expect(session.statistics.newBlobs == 2)
    #expect(session.statistics.newBytes == 4)
    #expect(session.statistics.knownBlobs == 1)
    #expect(session.statistics.knownBytes == 3)
    session.abandon()
    #expect(try objects("leases") == 0)
    #expect(try packs() == 0)
  }

  @Test func changeInALargeFileStoresOnlyItsPieces() throws {
    var random = SeededBytes(seed: 14)
    var bytes = DatabaseHead.bytes + random.bytes(20 << 20)
    try repository.back(up: [("db", bytes)], sequence: 1)
    for position in [100_000, 5_000_000, 5_000_100, 20_000_000] { bytes[position] ^= 1 }
    let session = try repository.beginWriting()
    let content = try session.storeFile(logicalPath: "folders/test/db", bytes: bytes)
    #expect(session.statistics.newBytes == 3 * 16 << 10 + listBytes(session))
    let tree = try session.storeTree([TreeEntry(name: "db", node: .file(content))])
    let snapshot = try session.finish(repository.makeSnapshot(tree, sequence: 2))
    #expect(try repository.beginReading().bytes(at: "db", in: snapshot) == bytes)
  }

  /// Returns the size of all lists, which are blobs as well.
  private func listBytes(_ session: WritingSession) -> UInt64 {
    session.known.records(ofPacks: [0, KnownBlobs.RunBlobs.unplaced]).filter { $0.kind == .list }
      .reduce(0) { $0 + UInt64($1.length) }
  }

  @Test func equalEntriesGiveEqualTrees() throws {
    let other = try Repository.create(in: MemoryStorage(), program: "other")
    let entries = TreeCodingTests.samples.filter {
      if case .directory = $0.node { false } else { true }
    }
    let first = try repository.beginWriting()
    let second = try other.beginWriting()
    #expect(try first.storeTree(entries) == second.storeTree(entries.reversed()))
  }

  @Test func largeDirectoriesHavePages() throws {
    let count = 30_000
    let entries = (0..<count).map { number in
      TreeEntry(name: ByteString("file-\(number + 100_000)"), node: .symlink(target: "x"))
    }
    let session = try repository.beginWriting()
    let tree = try session.storeTree(entries)
    let snapshot = try session.finish(repository.makeSnapshot(tree))
    let reader = try repository.beginReading()
    #expect(try reader.entries(of: tree) == entries)
    var walked = 0
    try reader.walk(snapshot.snapshot.tree) { path, entry in
      #expect(path == entry.name)
      walked += 1
      return .enter
    }
    #expect(walked == count)
    for number in [0, 1, 12_345, count - 1] {
      let name = entries[number].name
      #expect(try reader.entry(at: name, in: tree) == entries[number])
    }
    #expect(try reader.entry(at: "file", in: tree) == nil)
    #expect(try reader.entry(at: "file-100000x", in: tree) == nil)
    #expect(try reader.entry(at: "zzz", in: tree) == nil)
  }

  @Test func walkIsOrderedAndFollowsTheVisitor() throws {
    let session = try repository.beginWriting()
    let leaf = try session.storeTree([
      TreeEntry(name: "f", node: .fifo), TreeEntry(name: "g", node: .fifo),
    ])
    let root = try session.storeTree([
      TreeEntry(name: "a", node: .directory(leaf)), TreeEntry(name: "b", node: .directory(leaf)),
      TreeEntry(name: "c", node: .fifo),
    ])
    _ = try session.finish(repository.makeSnapshot(root))
    let reader = try repository.beginReading()
    var paths: [ByteString] = []
    try reader.walk(root) { path, _ in
      paths.append(path)
      return path == "b" ? .skip : .enter
    }
    #expect(paths == ["a", "a/f", "a/g", "b", "c"])
    paths = []
    try reader.walk(root) { path, _ in
      paths.append(path)
      return path == "a/f" ? .stop : .enter
    }
    #expect(paths == ["a", "a/f"])
  }

  /// Without memory for parent directories, each is read again on the way back.
  @Test func walkWithLittleMemoryGivesTheSame() throws {
    let session = try repository.beginWriting()
    var tree = try session.storeTree([TreeEntry(name: "f", node: .fifo)])
    for _ in 0..<5 {
      tree = try session.storeTree([
        TreeEntry(name: "a", node: .directory(tree)), TreeEntry(name: "b", node: .directory(tree)),
      ])
    }
    _ = try session.finish(repository.makeSnapshot(tree))
    let reader = try repository.beginReading()
    var paths: [[ByteString]] = [[], []]
    for (number, budget) in [(0, 0), (1, 32 << 20)] {
      try reader.walk(tree, budget: budget) { path, _ in
        paths[number].append(path)
        return .enter
      }
    }
    #expect(paths[0] == paths[1])
    #expect(paths[0].count == 94)
    #expect(paths[0] == paths[0].sorted { $0.components.lexicographicallyPrecedes($1.components) })
  }

  @Test func deepTreesAreRefusedWithoutRecursion() throws {
    let session = try repository.beginWriting()
    var tree = try session.storeTree([TreeEntry(name: "f", node: .fifo)])
    for _ in 0..<4095 {
      tree = try session.storeTree([TreeEntry(name: "d", node: .directory(tree))])
    }
    let allowed = tree
    for _ in 0..<10 { tree = try session.storeTree([TreeEntry(name: "d", node: .directory(tree))]) }
    _ = try session.finish(repository.makeSnapshot(tree))
    let reader = try repository.beginReading()
    var count = 0
    try reader.walk(allowed) { _, _ in
      count += 1
      return .enter
    }
    #expect(count == 4096)
    let error = storeError { try reader.walk(tree) { _, _ in .enter } }
    #expect(error?.code == .damaged)
    #expect(error?.reason.contains("4096") == true)
  }

  @Test func attributesAreReadBack() throws {
    var random = SeededBytes(seed: 15)
    let (short, long) = (random.bytes(512), random.bytes(513))
    let session = try repository.beginWriting()
    let attributes = [
      try session.makeAttribute(name: "user.z", value: short),
      try session.makeAttribute(name: "user.a", value: long),
    ]
    let tree = try session.storeTree([TreeEntry(name: "f", node: .fifo, attributes: attributes)])
    _ = try session.finish(repository.makeSnapshot(tree))
    let reader = try repository.beginReading()
    let entry = try #require(try reader.entry(at: "f", in: tree))
    #expect(entry.attributes.map(\.name) == ["user.a", "user.z"])
    #expect(try entry.attributes.map { try reader.value(of: $0) } == [long, short])
  }

  @Test func invalidEntryIsRefusedAndTheSessionContinues() throws {
    let session = try repository.beginWriting()
    for path in ["", "/etc/passwd", "a//b", "a/../b", "a/.", "a/"] as [ByteString] {
      #expect(storeError { try session.storeFile(logicalPath: path, bytes: [1]) }?.code == .invalid)
    }
    let twice = TreeEntry(name: "a", node: .fifo)
    #expect(storeError { try session.storeTree([twice, twice]) }?.code == .invalid)
    #expect(
      storeError { try session.storeTree([TreeEntry(name: "..", node: .fifo)]) }?.code == .invalid)
    #expect(storeError { try session.storeBytes([], kind: .data) }?.code == .invalid)
    let large = [UInt8](repeating: 0, count: FormatLimit.blob + 1)
    #expect(storeError { try session.storeBytes(large, kind: .data) }?.code == .invalid)
    let tree = try session.storeTree([twice])
    let snapshot = try session.finish(repository.makeSnapshot(tree))
    #expect(try repository.snapshots().snapshots == [snapshot])
  }

  /// The session continues after an error of the caller's reader, even though some bytes were
  /// already read.
  @Test func readerErrorDoesNotHarmTheSession() throws {
    struct ReadError: Error {}
    var random = SeededBytes(seed: 16)
    let bytes = random.bytes(10 << 20)
    let session = try repository.beginWriting()
    #expect(throws: ReadError.self) {
      try session.storeFile(logicalPath: "folders/x/a") { writer in
        try writer.append(bytes.span.extracting(0..<(9 << 20)))
        throw ReadError()
      }
    }
    let content = try session.storeFile(logicalPath: "folders/x/a", bytes: bytes)
    let tree = try session.storeTree([TreeEntry(name: "a", node: .file(content))])
    let snapshot = try session.finish(repository.makeSnapshot(tree))
    #expect(try repository.beginReading().bytes(at: "a", in: snapshot) == bytes)
  }

  @Test func sessionEndsOnce() throws {
    let session = try repository.beginWriting()
    let tree = try session.storeTree([])
    _ = try session.finish(repository.makeSnapshot(tree))
    session.abandon()
    #expect(storeError { try session.storeTree([]) } != nil)
    #expect(storeError { try session.finish(repository.makeSnapshot(tree)) } != nil)
    #expect(try repository.snapshots().snapshots.count == 1)
  }

  @Test func filesMustBeFinishedInTurn() throws {
    let session = try repository.beginWriting()
    let writer = try session.makeWriter()
    var late: FileWriter?
    _ = try writer.storeFile(logicalPath: "folders/x/a") { file in
      late = file
      let error = storeError { try writer.storeFile(logicalPath: "folders/x/b", bytes: [1]) }
      #expect(error?.code == .invalid)
      try file.append([1, 2])
    }
    #expect(storeError { try late?.append([3]) }?.code == .invalid)
    session.abandon()
  }
}
