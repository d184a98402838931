internal import Synchronization
internal import SystemIO

/// Reports when another host has not answered for some time, and when it answers again: a command
/// waits for it for minutes, and would otherwise seem to hang.
///
/// Thread-safe. Each repository has one. A thread checks it each second while a request is in
/// progress.
package final class OutageWatch: Sendable {
  /// The beginning or the end of an outage.
  package struct Event: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
      /// Nothing was received for some time; with the reason why requests fail, if they do.
      case began(reason: String)
      /// Something was received, this number of seconds after the previous time.
      case ended(seconds: Double)
    }

    /// The location of the repository.
    package let location: String
    package let kind: Kind
  }

  package typealias Receiver = @Sendable (Event) -> Void

  /// The receiver of the events of all repositories of this process.
  private static let receiver = Mutex<Receiver?>(nil)

  private let location: String
  private let delay: Double
  private let send: Receiver
  private let state = Mutex(State())
  /// Whether an outage was reported that has not ended.
  private let isOut = Atomic<Bool>(false)
  /// The time at which something was last received, by the monotonic clock in seconds.
  private let heard: Atomic<UInt64>

  private struct State {
    /// The number of requests in progress, with the pauses between their attempts.
    var requests = 0
    /// Whether a thread is checking.
    var isWatched = false
    /// The reason why the last attempt failed, if nothing was received since.
    var reason: String?
    /// The time from which the reported outage counts.
    var began = 0.0
  }

  /// Creates a watch of a repository.
  ///
  /// - Parameters:
  ///   - delay: the seconds without anything received after which an outage is reported.
  ///   - receiver: called for each event, on any thread (default: that of the process).
  package init(
    of location: String, delay: Double = 10,
    receiver: @escaping Receiver = { event in OutageWatch.receiver.withLock(\.self)?(event) }
  ) {
    (self.location, self.delay, send) = (location, delay, receiver)
    heard = Atomic(Host.monotonicSeconds().bitPattern)
  }

  /// Sets the receiver of the events of all repositories of this process.
  package static func onEvent(_ receiver: @escaping Receiver) {
    Self.receiver.withLock { $0 = receiver }
  }

  /// Records that a request begins.
  func begin() {
    let isFirst = state.withLock { state in
      state.requests += 1
      guard state.requests == 1 else { return false }
      heard.store(Host.monotonicSeconds().bitPattern, ordering: .relaxed)
      state.reason = nil
      defer { state.isWatched = true }
      return !state.isWatched
    }
    guard isFirst else { return }
    if let thread = try? Workers(count: 1, capacity: 1, name: "outage") {
      thread.submit { [self] in watch() }
    } else {
      state.withLock { $0.isWatched = false }
    }
  }

  /// Records that a request has ended.
  func end() { state.withLock { $0.requests -= 1 } }

  /// Records that an attempt failed and will be repeated.
  func didFail(_ reason: String) { state.withLock { $0.reason = reason } }

  /// Records that something was received, or that the host takes what is sent.
  func didHear() {
    let now = Host.monotonicSeconds()
    heard.store(now.bitPattern, ordering: .relaxed)
    guard isOut.load(ordering: .acquiring) else { return }
    state.withLock { state in
      guard isOut.exchange(false, ordering: .acquiringAndReleasing) else { return }
      state.reason = nil
      send(Event(location: location, kind: .ended(seconds: now - state.began)))
    }
  }

  /// Checks until no request is in progress.
  private func watch() {
    repeat { Host.pause(seconds: min(1, delay / 4)) } while look()
  }

  /// Reports an outage that has lasted long enough. Returns false if no request is in progress.
  private func look() -> Bool {
    state.withLock { state in
      guard state.requests > 0 else {
        state.isWatched = false
        return false
      }
      let last = Double(bitPattern: heard.load(ordering: .relaxed))
      guard !isOut.load(ordering: .relaxed), Host.monotonicSeconds() - last >= delay else {
        return true
      }
      state.began = last
      isOut.store(true, ordering: .releasing)
      let reason = state.reason ?? "it has not answered for \(Int(delay)) seconds"
      // Under the lock, so that the events are received in their order.
      send(Event(location: location, kind: .began(reason: reason)))
      return true
    }
  }
}
