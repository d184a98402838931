import ArchiveStore
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import RemoteStorage

/// The number of round trips to a server: on a link with latency they determine the time of a short
/// command, whatever the number of concurrent messages.
@Suite(.enabled(if: SFTPFixture.isInstalled)) struct SFTPWaitTests {
  /// A link that delays answers until all messages of a flight have been sent, that is, those that
  /// should be sent without waiting for an answer in between. If a program waits for an answer
  /// earlier, the test waits for a minute and fails.
  private final class Link: Sendable {
    private struct State {
      var flights: [Int] = []
      /// The number of messages of the current flight that have been sent.
      var sent = 0
      /// The beginning of a message whose rest has not been sent yet.
      var rest: [UInt8] = []
      var isLate = false
    }

    private let state = Mutex(State())
    /// The type of the message that closes a file. It belongs to no flight, since nothing waits for
    /// its answer.
    private static let close: UInt8 = 4

    /// Sets the expected flights.
    func expect(_ flights: [Int]) { state.withLock { $0.flights = flights } }

    /// Whether all flights were complete, and no further message was sent.
    var areComplete: Bool {
      state.withLock { $0.flights.isEmpty && $0.sent == 0 && !$0.isLate }
    }

    var connector: SFTPConnector {
      let inner = SFTPFixture.connector
      return SFTPConnector(
        input: { () throws(SystemError) in Input(link: self, inner: try inner.input()) },
        connect: { input throws(SystemError) in
          guard let input = input as? Input else { throw SystemError(.run, "ssh", number: 2) }
          return Peer(link: self, inner: try inner.connect(input.inner))
        })
    }

    /// Counts the messages that are complete with these bytes.
    private func count(_ bytes: [UInt8]) {
      state.withLock { state in
        state.rest += bytes
        while state.rest.count >= 4 {
          let size = 4 + state.rest[..<4].reduce(0) { $0 << 8 | Int($1) }
          guard state.rest.count >= size else { return }
          let kind = state.rest[4]
          state.rest.removeFirst(size)
          if kind == Self.close { continue }
          state.sent += 1
          if state.flights.first == state.sent {
            state.flights.removeFirst()
            state.sent = 0
          }
        }
      }
    }

    private func awaitFlight() {
      let limit = Host.monotonicSeconds() + 60
      while state.withLock({ $0.sent > 0 && !$0.isLate && !$0.flights.isEmpty }) {
        if Host.monotonicSeconds() > limit { state.withLock { $0.isLate = true } }
        Host.pause(seconds: 0.001)
      }
    }

    private struct Input: SFTPInput {
      let link: Link
      let inner: any SFTPInput

      func write(_ bytes: [UInt8], mayWait: () -> Bool) throws(SystemError) {
        link.count(bytes)
        try inner.write(bytes, mayWait: mayWait)
      }

      func close() { inner.close() }
    }

    private final class Peer: SFTPPeer {
      private let link: Link
      private let inner: any SFTPPeer

      init(link: Link, inner: any SFTPPeer) { (self.link, self.inner) = (link, inner) }

      func read(into buffer: inout [UInt8], isStopping: () -> Bool) throws(SystemError) -> Int? {
        let count = try inner.read(into: &buffer, isStopping: isStopping)
        if let count, count > 0 { link.awaitFlight() }
        return count
      }

      func lastErrorLines(_ count: Int) -> [ByteString] { inner.lastErrorLines(count) }
      var code: Int? { inner.code }
      func waitForEnd(isStopping: () -> Bool) throws(SystemError) -> Int? {
        try inner.waitForEnd(isStopping: isStopping)
      }
      func end() { inner.end() }
    }
  }

  private let fixture: SFTPFixture
  private let link = Link()

  init() throws {
    fixture = try SFTPFixture()
    _ = try Repository.create(
      in: try LocalStorage.create(path: fixture.directory.path("store")), program: "test")
    try fixture.directory.write([1, 2, 3, 4, 5, 6] as [UInt8], at: "store/packs/00/p")
  }

  /// Runs `body` and checks its flights.
  private func counting<Result>(
    _ flights: [Int], _ name: String, _ body: () throws -> Result
  ) rethrows -> Result {
    link.expect(flights)
    let result = try body()
    #expect(link.areComplete, "\(name)")
    return result
  }

  /// The steps of a restore.
  @Test func aRestoreWaitsForFewAnswers() throws {
    // The flights: the greeting; the limits, and the root with its directories.
    let storage = try counting([1, 9], "opening") { try fixture.open(through: link.connector) }
    // Open the file; read its bytes.
    let repository = try counting([2, 1], "settings") { try Repository.open(storage) }
    // Create the directory and open two; sync them; create three signs.
    let lease = try counting([3, 2, 3], "lease") { try ReaderLease(repository) }
    // Open the pack and its parent directory; read the bytes.
    let bytes = try counting([3, 1], "range") {
      try storage.load(try objectPath("packs/00/p"), offset: 2, count: 3)
    }
    #expect(bytes == [3, 4, 5])
    // Remove all signs, and the directory both as a file and as a directory.
    counting([5], "release") { lease.release() }
    link.expect([])
    #expect(try storage.list(objectPath("leases")).isEmpty)
  }
}
