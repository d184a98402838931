internal import Synchronization

/// The requests to storages and the bytes that they transferred, counted by any thread.
package final class TransferCounts: Sendable {
  private let requests = Atomic<Int>(0)
  private let sent = Atomic<UInt64>(0)
  private let received = Atomic<UInt64>(0)

  /// The counts of all storages on other hosts that this process has opened.
  package static let ofProcess = TransferCounts()

  /// Counts that start at zero.
  package init() {}

  /// The counts at one time.
  package struct State: Hashable, Sendable {
    /// The calls of a storage that need an answer from the other host. Several messages can belong
    /// to one call: opening, reading and closing a file is one request.
    package var requests = 0
    /// The bytes of objects that were sent.
    package var sent: UInt64 = 0
    /// The bytes of objects that were received.
    package var received: UInt64 = 0

    /// Creates counts.
    package init(requests: Int = 0, sent: UInt64 = 0, received: UInt64 = 0) {
      (self.requests, self.sent, self.received) = (requests, sent, received)
    }

    /// Whether nothing was counted.
    package var isEmpty: Bool { self == State() }
  }

  /// The current counts.
  package var state: State {
    State(
      requests: requests.load(ordering: .relaxed), sent: sent.load(ordering: .relaxed),
      received: received.load(ordering: .relaxed))
  }

  func didRequest() { requests.add(1, ordering: .relaxed) }

  func didSend(bytes: Int) { sent.wrappingAdd(UInt64(bytes), ordering: .relaxed) }

  func didReceive(bytes: Int) { received.wrappingAdd(UInt64(bytes), ordering: .relaxed) }
}
