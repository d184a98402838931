import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Several threads that write in one session.
struct ThreadTests {
  private let storage = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// Runs `body` on several threads at once and returns the results, or throws the first error.
  private func together<Result: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) throws -> Result
  ) throws -> [Result] {
    let results = Mutex<[Int: Swift.Result<Result, any Error>]>([:])
    let workers = try Workers(count: count, capacity: count, name: "test")
    for number in 0..<count {
      workers.submit {
        let result = Swift.Result { try body(number) }
        results.withLock { $0[number] = result }
      }
    }
    workers.finish()
    return try results.withLock { $0 }.sorted { $0.key < $1.key }.map { try $0.value.get() }
  }

  /// Makes files of all sizes, many of which are equal: a number determines the content.
  private static func file(_ number: Int) -> [UInt8] {
    var random = SeededBytes(seed: UInt64(number % 150))
    switch number % 150 {
    case 0: return random.bytes(9 << 20)
    case 1: return Array(String(repeating: "text of a log ", count: 400_000).utf8)
    case 2: return DatabaseHead.bytes + random.bytes(3 << 20)
    case 3: return []
    default: return random.bytes(random.number(1..<20_000))
    }
  }

  private func store(
    _ session: WritingSession, workers: Int, files: Int
  ) throws -> [TreeEntry] {
    let next = Atomic<Int>(0)
    let done = Atomic<Int>(0)
    return try together(workers) { _ in
      let writer = try session.makeWriter()
      var entries: [TreeEntry] = []
      while true {
        let number = next.add(1, ordering: .relaxed).oldValue
        guard number < files else { break }
        let name = ByteString("file-\(number)")
        let content = try writer.storeFile(
          logicalPath: ByteString("folders/x").appending(name), bytes: Self.file(number))
        entries.append(TreeEntry(name: name, node: .file(content)))
        if number == files / 2 { try session.checkpoint() }
      }
      done.add(1, ordering: .relaxed)
      writer.helpUntilDone { done.load(ordering: .relaxed) == workers }
      try writer.flush()
      return entries
    }.flatMap { $0 }
  }

  @Test(arguments: [1, 2, 9]) func everyFileIsReadBack(workers: Int) throws {
    let files = 400
    let session = try repository.beginWriting(workers: workers)
    let tree = try session.storeTree(try store(session, workers: workers, files: files))
    let snapshot = try session.finish(repository.makeSnapshot(tree))
    let reader = try repository.beginReading()
    for number in 0..<files {
      let bytes = try reader.bytes(at: ByteString("file-\(number)"), in: snapshot)
      #expect(bytes == Self.file(number), "\(number)")
    }
    // Each blob is stored once, whichever thread had it first.
    let objects = try LoadedIndex.loadAll(from: storage).objects
    let blobs = objects.flatMap { object in (0..<object.blobs).compactMap { object.record($0)?.id }
    }
    #expect(Set(blobs).count == blobs.count)
    #expect(session.statistics.newBlobs == UInt64(blobs.count))
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  @Test func treeIsIndependentOfTheNumberOfThreads() throws {
    var trees: Set<TreeReference> = []
    for workers in [1, 3, 8] {
      let other = try Repository.create(in: MemoryStorage(), program: "test")
      let session = try other.beginWriting(workers: workers)
      trees.insert(try session.storeTree(try store(session, workers: workers, files: 200)))
      session.abandon()
    }
    #expect(trees.count == 1)
  }

  /// All threads have the same new content at once.
  @Test func equalContentIsStoredOnce() throws {
    let session = try repository.beginWriting(workers: 8)
    let bytes = SeededBytes.some(seed: 5, count: 12 << 20)
    let contents = try together(8) { _ in
      let writer = try session.makeWriter()
      let content = try writer.storeFile(logicalPath: "folders/x/a", bytes: bytes)
      try writer.flush()
      return content
    }
    #expect(Set(contents).count == 1)
    #expect(session.statistics.newBytes == 12 << 20)
    #expect(session.statistics.knownBytes == 7 * 12 << 20)
    let tree = try session.storeTree([TreeEntry(name: "a", node: .file(contents[0]))])
    let snapshot = try session.finish(repository.makeSnapshot(tree))
    #expect(try repository.beginReading().bytes(at: "a", in: snapshot) == bytes)
  }

  /// Idle threads compress frames of a large file.
  @Test func idleThreadsHelpWithALargeFile() throws {
    let session = try repository.beginWriting(workers: 3)
    let bytes = SeededBytes.some(seed: 6, count: 40 << 20)
    let isDone = Atomic<Bool>(false)
    let helping = Atomic<Int>(0)
    let offered = Atomic<Int>(0)
    _ = try together(3) { number in
      let writer = try session.makeWriter()
      guard number == 0 else {
        helping.add(1, ordering: .relaxed)
        writer.helpUntilDone { isDone.load(ordering: .relaxed) }
        return try writer.flush()
      }
      while helping.load(ordering: .relaxed) < 2 { sleepShortly() }
      sleepShortly()
      // The helping threads may not have reached the queue yet.
      let end = Host.monotonicSeconds() + 600
      while offered.load(ordering: .relaxed) == 0, Host.monotonicSeconds() < end {
        if session.queue.offer(PackFrame.Plain(bytes: [1, 2, 3], blobs: [], isOneFile: true)) {
          offered.add(1, ordering: .relaxed)
        }
        sleepShortly()
      }
      let content = try writer.storeFile(logicalPath: "folders/x/a", bytes: bytes)
      try writer.flush()
      isDone.store(true, ordering: .relaxed)
      let tree = try session.storeTree([TreeEntry(name: "a", node: .file(content))])
      _ = try session.checkpoint()
      #expect(session.contains(BlobID(kind: .tree, digest: tree.digest)))
    }
    #expect(offered.load(ordering: .relaxed) == 1)
    #expect(session.queue.next() == nil)
    #expect(session.known.unplaced == 0)
    session.abandon()
  }

  /// The buffer of a frame that another thread compressed is reused without a copy, which would
  /// cost a thousand page faults.
  @Test func helperReturnsTheBuffer() throws {
    let session = try repository.beginWriting(workers: 2)
    defer { session.abandon() }
    let writer = try session.makeWriter()
    var buffer = session.buffers.acquire(FrameBuilder.noiseLimit)
    buffer.append(contentsOf: SeededBytes.some(seed: 8, count: 1_000_000))
    let location = Self.address(of: buffer)
    var isOffered = false
    writer.helpUntilDone {
      if !isOffered {
        let frame = PackFrame.Plain(bytes: exchange(&buffer, with: []), blobs: [], isOneFile: true)
        isOffered = session.queue.offer(frame)
      }
      return true
    }
    #expect(isOffered && session.queue.next() == nil)
    #expect(Self.address(of: session.buffers.acquire(FrameBuilder.noiseLimit)) == location)
  }

  private static func address(of buffer: borrowing [UInt8]) -> Int {
    buffer.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }
  }

  @Test func busyThreadsDoNotHelp() throws {
    let queue = ContentWriter.FrameQueue(workers: 4)
    #expect(!queue.offer(PackFrame.Plain(bytes: [1], blobs: [], isOneFile: true)))
    var frames = 0
    var asked = 0
    queue.help(
      until: {
        asked += 1
        if asked == 1 {
          for _ in 0..<4 {
            #expect(queue.offer(PackFrame.Plain(bytes: [1], blobs: [], isOneFile: true)))
          }
          #expect(!queue.offer(PackFrame.Plain(bytes: [1], blobs: [], isOneFile: true)))
        }
        return true
      }, { _ in frames += 1 })
    #expect(frames == 4)
    #expect(!queue.offer(PackFrame.Plain(bytes: [1], blobs: [], isOneFile: true)))
  }

  /// Other threads may rely on blobs that a thread has claimed but not flushed, so no snapshot can
  /// be made.
  @Test func unflushedWriterPreventsTheSnapshot() throws {
    let session = try repository.beginWriting(workers: 2)
    let lazy = try session.makeWriter()
    _ = try lazy.storeFile(logicalPath: "folders/x/a", bytes: [1, 2, 3])
    let other = try session.makeWriter()
    let content = try other.storeFile(logicalPath: "folders/x/b", bytes: [1, 2, 3])
    try other.flush()
    let tree = try session.storeTree([TreeEntry(name: "b", node: .file(content))])
    let error = storeError { try session.finish(repository.makeSnapshot(tree)) }
    #expect(error?.code == .invalid)
    #expect(error?.reason.contains("1 blobs") == true)
    #expect(try repository.snapshots().snapshots.isEmpty)
  }

  /// A file with a read error may have claimed blobs on which another thread relies.
  @Test func blobsClaimedByAFailedReadAreStored() throws {
    struct ReadError: Error {}
    let bytes = SeededBytes.some(seed: 7, count: 3 << 20)
    let session = try repository.beginWriting(workers: 2)
    let (first, second) = (try session.makeWriter(), try session.makeWriter())
    var content: Content?
    #expect(throws: ReadError.self) {
      try first.storeFile(logicalPath: "folders/x/a") { file in
        try file.append(bytes)
        try file.append([UInt8](repeating: 0, count: 5 << 20))
        content = try second.storeFile(logicalPath: "folders/x/b", bytes: bytes)
        throw ReadError()
      }
    }
    try first.flush()
    try second.flush()
    let entry = TreeEntry(name: "b", node: .file(try #require(content)))
    let snapshot = try session.finish(repository.makeSnapshot(try session.storeTree([entry])))
    #expect(try repository.beginReading().bytes(at: "b", in: snapshot) == bytes)
  }

  /// The failure of one thread ends the session for all threads.
  @Test func failureOfOneThreadEndsAll() throws {
    let watched = WatchedStorage(storage)
    let session = try Repository.open(watched).beginWriting(workers: 2)
    let (first, second) = (try session.makeWriter(), try session.makeWriter())
    let bytes = SeededBytes.some(seed: 8, count: 6 << 20)
    watched.fail(at: 1)
    let error = storeError {
      _ = try first.storeFile(logicalPath: "folders/x/a", bytes: bytes)
      try first.flush()
    }
    #expect(error?.code == .system)
    #expect(storeError { try second.storeFile(logicalPath: "folders/x/b", bytes: [1]) } == error)
    #expect(storeError { try second.flush() } == error)
    #expect(storeError { try session.storeTree([]) } == error)
    #expect(storeError { try session.checkpoint() } == error)
    #expect(storeError { try session.makeWriter() } == error)
    #expect(storeError { try session.finish(repository.makeSnapshot(.init(.some))) } == error)
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  @Test func abandoningStopsTheOtherThreads() throws {
    let session = try repository.beginWriting(workers: 3)
    let started = Atomic<Int>(0)
    let errors = try together(3) { number in
      let writer = try session.makeWriter()
      if number == 0 {
        while started.load(ordering: .relaxed) < 2 { sleepShortly() }
        session.abandon()
        return storeError { try writer.flush() }
      }
      started.add(1, ordering: .relaxed)
      return storeError {
        for count in 0... {
          let path = ByteString("folders/x/\(number)-\(count)")
          let bytes = SeededBytes.some(seed: UInt64(count), count: 300_000)
          _ = try writer.storeFile(logicalPath: path, bytes: bytes)
        }
      }
    }
    #expect(errors.allSatisfy { $0?.code == .invalid })
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }
}

struct CheckpointTests {
  private let storage = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// After a run that was interrupted after its checkpoint, the next one stores nothing again.
  @Test func nextRunKnowsTheCheckpoint() throws {
    let files = (0..<20).map { ("\($0)", SeededBytes.some(seed: UInt64($0), count: 50_000)) }
    let first = try repository.beginWriting()
    try first.withWriter { writer in
      for (name, bytes) in files {
        let path = ByteString("folders/test/" + name)
        _ = try writer.storeFile(logicalPath: path, bytes: bytes)
      }
    }
    try first.checkpoint()
    let stored = first.statistics.storedBytes
    #expect(stored > 1_000_000)
    try first.checkpoint()
    #expect(first.statistics.packs == 1)
    first.abandon()
    #expect(try storage.list(RepositoryLayout.indexes).count == 1)
    let second = try repository.back(up: files)
    #expect(second.snapshot.totals.stored < 10_000)
    let reader = try repository.beginReading()
    for (name, bytes) in files {
      #expect(try reader.bytes(at: ByteString(name), in: second) == bytes)
    }
  }

  @Test func runContinuesAfterACheckpoint() throws {
    let session = try repository.beginWriting()
    let writer = try session.makeWriter()
    var entries: [TreeEntry] = []
    for round in 0..<4 {
      for name in ["same", "other-\(round)"] {
        let content = try writer.storeFile(
          logicalPath: ByteString("folders/x/\(name)"), bytes: Array(name.utf8))
        if round == 3 { entries.append(TreeEntry(name: ByteString(name), node: .file(content))) }
      }
      try writer.flush()
      if round < 3 { try session.checkpoint() }
    }
    #expect(session.statistics.newBlobs == 5)
    let snapshot = try session.finish(repository.makeSnapshot(try session.storeTree(entries)))
    #expect(try storage.list(RepositoryLayout.indexes).count < 4)
    #expect(snapshot.snapshot.totals.stored == session.statistics.storedBytes)
    let reader = try repository.beginReading()
    #expect(try reader.bytes(at: "same", in: snapshot) == Array("same".utf8))
    #expect(try reader.bytes(at: "other-3", in: snapshot) == Array("other-3".utf8))
  }

  /// Data that a writer has not flushed is not in a checkpoint, but in the next one.
  @Test func unflushedDataIsInTheNextCheckpoint() throws {
    let session = try repository.beginWriting()
    let writer = try session.makeWriter()
    let content = try writer.storeFile(logicalPath: "folders/x/a", bytes: [1, 2])
    try session.checkpoint()
    #expect(session.statistics.packs == 0)
    #expect(try storage.list(RepositoryLayout.indexes).isEmpty)
    try writer.flush()
    let tree = try session.storeTree([TreeEntry(name: "a", node: .file(content))])
    let snapshot = try session.finish(repository.makeSnapshot(tree))
    #expect(try repository.beginReading().bytes(at: "a", in: snapshot) == [1, 2])
  }

  @Test func packsAreClosedBeforeTheIndexIsWritten() throws {
    let watched = WatchedStorage(storage)
    let session = try Repository.open(watched).beginWriting()
    _ = try session.storeFile(logicalPath: "folders/x/a", bytes: [1, 2])
    let tree = try session.storeTree([])
    watched.state.withLock { $0.events = [] }
    try session.checkpoint()
    let events = { watched.state.withLock(\.events).filter { $0.hasPrefix("commit ") } }
    #expect(events().map { $0.dropFirst(7).prefix { $0 != "/" } } == ["packs", "packs", "index"])
    _ = try session.finish(repository.makeSnapshot(tree))
    #expect(events().count == 4)
  }

  @Test func checkpointIsDueAfterEnoughBytes() throws {
    let lease = try Lease(storage)
    let packs = RunPacks(lease, RunStatus(location: "test"))
    #expect(!packs.isIndexDue)
    let large = PackFrame(stored: [UInt8](repeating: 0, count: 128 << 20), plain: 1, blobs: [])
    for number in 0..<4 {
      let pack = try packs.open(isReadSoon: false)
      _ = try pack.append(large)
      #expect(pack.isFull(before: 0))
      try packs.closeSoon(pack)
      if number < 3 { try packs.wait() }
    }
    try packs.wait()
    #expect(packs.isIndexDue)
    #expect(packs.unindexed.map(\.number) == [0, 1, 2, 3])
    packs.recordIndexed([0, 1])
    #expect(!packs.isIndexDue)
    #expect(packs.counts.packs == 4)
  }

  @Test func sessionKnowsListedSnapshotsAndBlobs() throws {
    let first = try repository.back(up: [("a", [1])])
    let session = try repository.beginWriting()
    #expect(session.holds(snapshot: first.id))
    #expect(!session.holds(snapshot: .some))
    #expect(session.canRelyOnLists)
    #expect(session.contains(BlobID(kind: .tree, digest: first.snapshot.tree.digest)))
    #expect(!session.contains(BlobID(kind: .data, digest: first.snapshot.tree.digest)))
    let new = try session.storeBytes([5], kind: .data)
    #expect(session.contains(new))
    session.abandon()
  }
}
