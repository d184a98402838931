import ArchiveStore
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import RemoteStorage

/// The number of times that a program waits for a server: on a link with a delay these are the cost
/// of a short command, whatever the number of messages that are sent at the same time.
@Suite(.enabled(if: SFTPFixture.isInstalled)) struct SFTPWaitTests {
  /// A link on which answers arrive once all messages of a flight, those that are expected to be
  /// sent without an answer in between, are sent. A program that waits for one of them earlier
  /// waits for a minute, and is found out.
  private final class Link: Sendable {
    private struct State {
      var flights: [Int] = []
      /// The messages that were sent of the next flight.
      var sent = 0
      /// The begin of a message whose rest is sent later.
      var rest: [UInt8] = []
      var isLate = false
    }

    private let state = Mutex(State())
    /// The kind of the message that closes a file. Nothing waits for its answer, so it is in no
    /// flight.
    private static let close: UInt8 = 4

    /// Expects the messages of some flights.
    func expect(_ flights: [Int]) { state.withLock { $0.flights = flights } }

    /// Whether all flights were complete, and no message followed.
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

    /// Counts the messages that end in these bytes.
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

  /// Checks the flights of a call.
  private func counting<Result>(
    _ flights: [Int], _ name: String, _ body: () throws -> Result
  ) rethrows -> Result {
    link.expect(flights)
    let result = try body()
    #expect(link.areComplete, "\(name)")
    return result
  }

  /// The parts of a restore.
  @Test func aRestoreWaitsForFewAnswers() throws {
    // The greeting; the limits, and the root with its directories.
    let storage = try counting([1, 9], "opening") { try fixture.open(through: link.connector) }
    // The file, which is opened; its bytes.
    let repository = try counting([2, 1], "settings") { try Repository.open(storage) }
    // The new directory, and two that are opened; their syncs; three signs.
    let lease = try counting([3, 2, 3], "lease") { try ReaderLease(repository) }
    // The pack, which is opened, with the directory above it; its bytes.
    let bytes = try counting([3, 1], "range") {
      try storage.load(try objectPath("packs/00/p"), offset: 2, count: 3)
    }
    #expect(bytes == [3, 4, 5])
    // All signs, and the directory as a file and as a directory.
    counting([5], "release") { lease.release() }
    link.expect([])
    #expect(try storage.list(objectPath("leases")).isEmpty)
  }
}
