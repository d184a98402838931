import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import RemoteStorage

/// Connections that are lost at any point: the operation in progress continues, and takes effect
/// exactly once.
@Suite(.enabled(if: SFTPFixture.isInstalled)) struct SFTPFaultTests {
  private let fixture: SFTPFixture

  init() throws { fixture = try SFTPFixture() }

  /// A thread that sends many requests before it reads the answers loses none of them, although its
  /// mailbox is limited.
  @Test func noAnswerIsDropped() throws {
    let storage = try fixture.make("answers")
    var (kept, most) = (0, 0)
    try storage.perform(.status, at: .root) { connection, _ throws(SFTPFailure) in
      let exchange = connection.exchange()
      var ids: [UInt32] = []
      for _ in 0..<200 {
        ids.append(try exchange.send(.status(storage.root)))
        most = max(most, exchange.pending)
      }
      for id in ids.reversed() {
        if case .attributes = try exchange.anyAnswer(id) { kept += 1 }
      }
    }
    #expect(kept == 200 && most <= SFTPConnection.window, "\(kept) answers, \(most) pending")
  }

  /// Runs `steps` with the connection lost at each of their requests in turn, before or after the
  /// server has carried it out.
  private func sweep(
    lacking: [SFTPExtension] = [], prepare: (SFTPStorage) throws -> Void = { _ in },
    steps: (SFTPStorage) throws -> Void, check: (SFTPStorage) throws -> Void
  ) throws {
    for loss in FaultyServer.Loss.allCases {
      var number = 1
      while true {
        let server = FaultyServer(lacking: lacking)
        let name = ByteString("\(loss)-\(number)")
        let storage = try fixture.make(name, through: server.connector)
        try prepare(storage)
        server.lose(at: number, loss)
        do { try steps(storage) } catch { Issue.record("\(loss) \(number): \(error)") }
        let count = server.count
        server.lose(at: nil, loss)
        try check(storage)
        if count < number { break }
        // The answer to a close is not waited for.
        #expect(storage.session.connectionCount <= 2, "\(loss) \(number)")
        number += 1
      }
      #expect(number > 3)
    }
  }

  private static let bytes = Seeded.some(3, count: 300_000)

  @Test func objectsAreStoredOnce() throws {
    try sweep(
      steps: { (storage: SFTPStorage) throws in
        let writer = try storage.startObject(in: path("lease"))
        for start in stride(from: 0, to: Self.bytes.count, by: 100_000) {
          try writer.append(Array(Self.bytes[start..<(start + 100_000)]))
        }
        try writer.commit(
          as: path("objects/a"), digest: Blake2b.hash(Self.bytes), isReadSoon: true)
      },
      check: { (storage: SFTPStorage) throws in
        #expect(try storage.load(path("objects/a"), limit: 1 << 20) == Self.bytes)
        #expect(try storage.list(path("objects")) == ["a"])
        // An unfinished object whose creation was not answered stays in the directory of the lease.
        #expect(try storage.list(path("lease")).count <= 1)
      })
  }

  /// There may be several servers behind one name, or the server may be replaced during a long
  /// backup.
  @Test func laterServerMayTakeShorterPieces() throws {
    let server = FaultyServer()
    let storage = try fixture.make(through: server.connector)
    let writer = try storage.startObject(in: path("lease"))
    try writer.append(Array(Self.bytes.prefix(200_000)))
    server.state.withLock { $0.lacking = [.limits] }
    server.lose(at: 1, .request)
    try writer.append(Array(Self.bytes[200_000..<299_000]))
    server.state.withLock { $0.longest = 0 }
    try writer.append(Array(Self.bytes[299_000...]))
    try writer.commit(as: path("objects/a"), digest: Blake2b.hash(Self.bytes), isReadSoon: true)
    #expect(try storage.load(path("objects/a"), limit: 1 << 20) == Self.bytes)
    #expect(server.state.withLock(\.longest) < 34_000)
  }

  /// A server without extensions needs other requests: the old object is renamed first.
  @Test func objectsAreReplacedOnceOnAPlainServer() throws {
    try sweep(
      lacking: SFTPExtension.allCases,
      prepare: { (storage: SFTPStorage) throws in
        try storage.save([9], as: path("objects/a"), by: path("lease"))
      },
      steps: { (storage: SFTPStorage) throws in
        try storage.save([1, 2], as: path("objects/a"), by: path("lease"))
      },
      check: { (storage: SFTPStorage) throws in
        #expect(try storage.load(path("objects/a"), limit: 2) == [1, 2])
        #expect(try storage.list(path("objects")) == ["a"])
      })
  }

  @Test func objectsAreReadAndListed() throws {
    try sweep(
      prepare: { (storage: SFTPStorage) throws in
        try storage.save(Self.bytes, as: path("objects/a"), by: path("lease"))
      },
      steps: { (storage: SFTPStorage) throws in
        #expect(try storage.load(path("objects/a"), limit: 1 << 20) == Self.bytes)
        let range = try storage.load(path("objects/a"), offset: 7, count: 200_000)
        #expect(range == Array(Self.bytes[7..<200_007]))
        #expect(try storage.load(path("objects/a"), offset: 0, count: 3) == Array(Self.bytes[..<3]))
        #expect(try storage.list(path("objects")) == ["a"])
        var found = 0
        try storage.forEachObject(below: .root) { _, _ in found += 1 }
        #expect(found == 1)
        #expect(try storage.status(path("objects/a"))?.size == UInt64(Self.bytes.count))
      }, check: { _ in })
  }

  @Test func changesAreMadeOnce() throws {
    try sweep(
      prepare: { (storage: SFTPStorage) throws in
        for name in ["objects/a", "objects/b", "objects/c"] {
          try storage.save([1], as: path(name), by: path("lease"))
        }
      },
      steps: { (storage: SFTPStorage) throws in
        try storage.touch(path("lease/alive"))
        try storage.makeDirectories(["new", "other"], in: path("objects"))
        try storage.rename(path("objects/a"), to: path("objects/new/a"))
        try storage.rename(path("objects/new"), to: path("objects/moved"))
        try storage.remove(path("objects/b"))
        try storage.remove(path("objects/other"))
        try storage.remove([path("objects/c"), path("objects/none")])
      },
      check: { (storage: SFTPStorage) throws in
        #expect(try storage.list(path("objects")) == ["moved"])
        #expect(try storage.list(path("objects/moved")) == ["a"])
        #expect(try storage.status(path("lease/alive"))?.size == 0)
      })
  }

  /// If the answer to a rename was lost, the object seems to be missing, but is removed
  /// nevertheless.
  @Test(arguments: [[], SFTPExtension.allCases]) func packsAreRemovedOnce(
    lacking: [SFTPExtension]
  ) throws {
    try sweep(
      lacking: lacking,
      prepare: { (storage: SFTPStorage) throws in
        for name in ["objects/a", "objects/b", "objects/c"] {
          try storage.save([1], as: path(name), by: path("lease"))
        }
      },
      steps: { (storage: SFTPStorage) throws in
        let moves = try ["a", "b"].map {
          ObjectMove(try path("objects/\($0)"), to: try path("lease/removed-\($0)"))
        }
        _ = try storage.moveAside(moves)
        #expect(try storage.list(path("lease")) == ["removed-a", "removed-b"])
        try storage.remove(moves.map(\.target))
      },
      check: { (storage: SFTPStorage) throws in
        #expect(try storage.list(path("objects")) == ["c"])
        #expect(try storage.list(path("lease")).isEmpty)
      })
  }

  /// If the answer to a rename was lost, the client must notice whether the rename took effect,
  /// even if another program has removed the lease.
  @Test func commitWithoutTheLeaseFailsAlsoAfterALostAnswer() throws {
    for (number, loss) in [
      (1, FaultyServer.Loss.request), (2, .request), (3, .request), (2, .answer),
    ] {
      let server = FaultyServer()
      let name = ByteString("store-\(number)-\(loss)")
      let storage = try fixture.make(name, through: server.connector)
      try storage.save([7], as: path("objects/a"), by: path("lease"))
      let writer = try storage.startObject(in: path("lease"))
      try writer.append([1])
      // Another program removes the lease.
      let local = try LocalStorage(path: fixture.directory.path(name))
      try local.rename(path("lease"), to: path("taken"))
      server.lose(at: number, loss)
      let error = storeError {
        try writer.commit(as: path("objects/a"), digest: Blake2b.hash([1]), isReadSoon: true)
      }
      #expect(error?.code == .missing, "\(number) \(loss): \(error as Any)")
      #expect(try local.load(path("objects/a"), limit: 1) == [7])
    }
  }

  /// If the link stays down, there is an error when the patience ends. The connection can be made
  /// again later.
  @Test func patienceEnds() throws {
    let server = FaultyServer()
    var options = SFTPFixture.options
    options.patience = 0.6
    _ = try fixture.make()
    let storage = try fixture.open(through: server.connector, options: options)
    server.lose(at: 1, .request)
    server.state.withLock { $0.isDown = true }
    let start = Host.monotonicSeconds()
    let error = storeError { try storage.list(.root) }
    #expect(error?.code == .system && error?.action == "reach the repository")
    #expect((0.5...4).contains(Host.monotonicSeconds() - start))
    server.state.withLock { $0.isDown = false }
    #expect(try storage.list(.root) == ["lease", "objects"])
  }

  /// If the link comes up again before the patience ends, the object continues where it was.
  @Test func linkThatComesUpAgainLosesNoWork() throws {
    let server = FaultyServer()
    let storage = try fixture.make(through: server.connector)
    let writer = try storage.startObject(in: path("lease"))
    for _ in 0..<4 { try writer.append([UInt8](repeating: 1, count: 1 << 20)) }
    server.state.withLock { $0.types = [] }
    server.lose(at: 1, .request)
    server.state.withLock { $0.isDown = true }
    let workers = try Workers(count: 1, capacity: 1, name: "up")
    workers.submit {
      Host.pause(seconds: 0.7)
      server.state.withLock { $0.isDown = false }
    }
    try writer.append([UInt8](repeating: 2, count: 1 << 20))
    let digest = Blake2b.hash(
      [UInt8](repeating: 1, count: 4 << 20) + [UInt8](repeating: 2, count: 1 << 20))
    try writer.commit(as: path("objects/a"), digest: digest, isReadSoon: true)
    workers.finish()
    #expect(try storage.status(path("objects/a"))?.size == 5 << 20)
    // Only pieces that were not acknowledged are sent again. The object has 20 pieces.
    let writes = server.state.withLock { $0.types.count { $0 == 6 } }
    #expect(writes < 25, "\(writes)")
  }

  @Test func stopEndsTheWaitForALink() throws {
    let server = FaultyServer()
    _ = try fixture.make()
    var options = SFTPFixture.options
    options.patience = 60
    let flag = Flag()
    options.isStopping = { flag.value.load(ordering: .relaxed) }
    let storage = try fixture.open(through: server.connector, options: options)
    server.lose(at: 1, .request)
    server.state.withLock { $0.isDown = true }
    flag.value.store(true, ordering: .relaxed)
    let error = storeError { try storage.list(.root) }
    #expect(error?.code == .interrupted, "\(error as Any)")
  }

  private final class Flag: Sendable {
    let value = Atomic<Bool>(false)
  }

  /// If the server lost bytes that it had acknowledged, this is noticed before the commit.
  @Test func lostBytesAreFoundAfterAResumption() throws {
    let server = FaultyServer()
    let storage = try fixture.make(through: server.connector)
    let writer = try storage.startObject(in: path("lease"))
    // Enough bytes that the first pieces are acknowledged, and are not sent again.
    let first = [UInt8](repeating: 1, count: 8 << 20)
    try writer.append(first)
    let store = fixture.directory.path("store")
    let name = try #require(try storage.list(path("lease")).first)
    server.lose(at: 1, .request)
    try writer.append(Self.bytes)
    // As after a crash of the server, which never wrote the first bytes to its disk.
    try Directory.open(path: store.appending("lease")).openOrCreate(name).write([0, 0, 0, 0])
    let error = storeError {
      try writer.commit(
        as: path("objects/a"), digest: Blake2b.hash(first + Self.bytes), isReadSoon: true)
    }
    #expect(error?.reason.contains("lost bytes") == true, "\(error as Any)")
    #expect(try storage.status(path("objects/a")) == nil)
  }

  /// If the server's disk fails to sync a file once, the object is written again and is intact.
  @Test(arguments: [1, 2]) func failedSyncIsRetriedWithANewFile(failures: Int) throws {
    let server = FailingSync(failures)
    let storage = try fixture.make(through: server.connector)
    let bytes = Self.bytes
    server.isArmed.store(true, ordering: .relaxed)
    let error = storeError { try storage.save(bytes, as: path("objects/a"), by: path("lease")) }
    if failures == 1 {
      #expect(error == nil)
      #expect(try storage.load(path("objects/a"), limit: 1 << 20) == bytes)
    } else {
      #expect(error?.cause?.operation == .sync)
      #expect(try storage.status(path("objects/a")) == nil)
    }
    #expect(try storage.list(path("lease")).isEmpty)
  }
}

/// A server whose first syncs of files fail.
private final class FailingSync: Sendable {
  private let rest: Atomic<Int>
  let isArmed = Atomic<Bool>(false)

  init(_ failures: Int) { rest = Atomic(failures) }

  var connector: SFTPConnector {
    let inner = SFTPFixture.connector
    return SFTPConnector(
      input: { () throws(SystemError) in Input(self, try inner.input()) },
      connect: { input throws(SystemError) in
        guard let input = input as? Input else { throw SystemError(.run, "", number: 2) }
        return try inner.connect(input.inner)
      })
  }

  private final class Input: SFTPInput {
    private let server: FailingSync
    let inner: any SFTPInput

    init(_ server: FailingSync, _ inner: any SFTPInput) {
      (self.server, self.inner) = (server, inner)
    }

    /// Replaces the handle of a sync with one that does not exist.
    func write(_ bytes: [UInt8], mayWait: () -> Bool) throws(SystemError) {
      let isSync = bytes.count > 30 && bytes[4] == 200 && bytes[13] == UInt8(ascii: "f")
      guard isSync, server.isArmed.load(ordering: .relaxed),
        server.rest.subtract(1, ordering: .relaxed).oldValue > 0
      else { return try inner.write(bytes, mayWait: mayWait) }
      try inner.write(bytes.dropLast() + [0xff], mayWait: mayWait)
    }

    func close() { inner.close() }
  }
}

extension Seeded {
  static func some(_ seed: UInt64, count: Int) -> [UInt8] {
    var random = Seeded(seed)
    return random.bytes(count)
  }
}
