import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import RemoteStorage

/// The number of round trips to a store: on a link with latency they determine the time of a short
/// command, whatever the number of concurrent requests.
struct S3WaitTests {
  /// Delays each request until all requests that should be concurrent have begun. If a program
  /// waits for the answer to one of them before it makes another, the test waits for a minute and
  /// fails.
  private final class Flights: Sendable {
    private struct State {
      var rest: [Int]
      var arrived = 0
      var isLate = false
    }

    private let state: Mutex<State>

    /// - Parameter counts: the number of requests in each flight.
    init(_ counts: [Int] = []) { state = Mutex(State(rest: counts)) }

    /// Sets the expected flights.
    func expect(_ counts: [Int]) { state.withLock { $0 = State(rest: counts) } }

    /// Whether all flights were complete, and no further request was made.
    var areComplete: Bool { state.withLock { $0.rest.isEmpty && $0.arrived == 0 && !$0.isLate } }

    /// Waits until the flight that a request belongs to is complete.
    func begin() {
      let number = state.withLock { state -> Int in
        state.arrived += 1
        let number = state.rest.count
        if state.rest.first == state.arrived {
          state.rest.removeFirst()
          state.arrived = 0
        }
        return number
      }
      let limit = Host.monotonicSeconds() + 60
      while state.withLock({ !$0.isLate && $0.rest.count == number && number > 0 }) {
        if Host.monotonicSeconds() > limit { state.withLock { $0.isLate = true } }
        Host.pause(seconds: 0.001)
      }
    }
  }

  private let server: StoreServer
  private let directory: TemporaryDirectory
  private let flights = Flights()

  init() throws {
    server = try StoreServer()
    directory = try TemporaryDirectory("waits")
  }

  private func storage(isWatched: Bool = true) throws -> S3Storage {
    var options = testOptions()
    options.spool = directory.path
    if isWatched { options.http.onRequest = { [flights] in flights.begin() } }
    return try testStorage(server.endpoint, options)
  }

  @Test func severalObjectsAreTouchedAtOnce() throws {
    let storage = try storage()
    flights.expect([3])
    try storage.touch([objectPath("a/1"), objectPath("a/2"), objectPath("b/3")])
    #expect(flights.areComplete)
    flights.expect([2])
    let found = try storage.listAll([objectPath("a"), objectPath("b")])
    #expect(found.map { $0?.names } == [["1", "2"], ["3"]])
    #expect(flights.areComplete)
  }

  @Test func theFirstFailureIsThrown() throws {
    let body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
    let rules = [2, 3].map { number in
      #"{"method": "PUT", "path": "a/\#(number)", "times": 0, "status": 403, "body": "\#(body)"}"#
    }
    let server = try StoreServer("[\(rules.joined(separator: ", "))]")
    let storage = try testStorage(server.endpoint)
    let error = failure { try storage.touch((1...4).map { try objectPath("a/\($0)") }) }
    #expect(error?.subject.contains("a/2") == true, "\(String(describing: error))")
  }

  /// Backs up one file, and returns the snapshot. The index is in the cache.
  private func backUp(
    _ bytes: [UInt8], cache: IndexCache
  ) throws -> (stored: StoredSnapshot, content: Content) {
    let repository = try Repository.create(in: storage(isWatched: false), program: "test")
    let session = try repository.beginWriting(cache: cache)
    let writer = try session.makeWriter()
    let content = try writer.storeFile(logicalPath: "folders/test/file", bytes: bytes.span)
    try writer.flush()
    let tree = try session.storeTree([TreeEntry(name: "file", node: .file(content))])
    let snapshot = Snapshot(
      repository: repository.id, source: Blake2b.hash([]), sequence: 1,
      time: Timestamp(seconds: 1_793_529_000), host: "host", user: "user",
      device: DeviceRecord(identity: "device", platform: "linux", layout: "folder", root: "/x"),
      policy: PolicyRecord(name: "everything", digest: Blake2b.hash([])), tree: tree,
      program: "test")
    return (try session.finish(snapshot), content)
  }

  /// The requests of a restore, in the same order as in the program.
  @Test func aRestoreWaitsForFewAnswers() throws {
    let cache = IndexCache(directory: directory.path.appending("cache"), isEncrypted: false)
    var random = Seeded(3)
    let bytes = random.bytes(1000)
    let (stored, content) = try backUp(bytes, cache: cache)
    // The flights: the settings, two listings and a connection for later use; two signs of the
    // lease, the snapshot and the trees; both listings again; the data; the release of the lease.
    flights.expect([4, 4, 2, 1, 1])
    try restore(stored, content, cache: cache) { #expect($0 == bytes) }
    #expect(flights.areComplete)
    #expect(try storage(isWatched: false).list(objectPath("leases")).isEmpty)
  }

  private func restore(
    _ stored: StoredSnapshot, _ content: Content, cache: IndexCache,
    _ check: ([UInt8]) -> Void
  ) throws {
    let storage = ReadAheadStorage(
      TransferStorage(
        try storage(), counts: TransferCounts(), connections: 4, isSpooling: true),
      connections: 4)
    storage.listAhead(Repository.listedByQueries, connects: true)
    let repository = try Repository.open(storage)
    let reader = try repository.beginReading(
      cache: cache, early: EarlyLease(repository, through: storage.base))
    reader.expectTrees()
    #expect(try repository.heads(cache: nil).heads.map(\.id) == [stored.id])
    var names: [ByteString] = []
    try reader.walkPastDamage(stored.snapshot.tree) { path, _ in
      names.append(path)
      return .enter
    }
    #expect(names == ["file"])
    try reader.requireKept(stored.id)
    var bytes: [UInt8] = []
    try reader.readContent(content) { _, part in
      for number in part.indices { bytes.append(part[number]) }
    }
    check(bytes)
    reader.endReading()
  }
}
