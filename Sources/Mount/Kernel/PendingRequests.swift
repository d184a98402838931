internal import Synchronization
internal import SystemIO

/// The requests that are being handled. Each is answered once: by the thread that handles it, or
/// with EINTR if the program that made it is ended meanwhile. What was asked of the repository for
/// it continues, since others may need it.
///
/// A request is named by its address, which the library does not use for another one before the
/// request is answered.
final class PendingRequests: Sendable {
  private struct Request {
    let address: UInt
    let thread: Int32
    /// Whether it may be answered by any thread: the library no longer uses it for this one.
    var isStarted = false
    var isInterrupted = false
  }

  private struct State {
    var requests: [Request] = []
    /// Whether a thread watches the interrupted ones.
    var isWatched = false
  }

  private let state = Mutex(State())
  /// Returns whether the program of a thread is being ended.
  private let isEnding: @Sendable (Int32) -> Bool
  /// Answers a request with EINTR.
  private let interrupt: @Sendable (UInt) -> Void
  /// The seconds between two looks at programs with interrupted requests.
  private let interval: Double

  init(
    interval: Double = 1,
    isEnding: @escaping @Sendable (Int32) -> Bool = { RequesterSignals.areEnding($0) },
    interrupt: @escaping @Sendable (UInt) -> Void
  ) {
    (self.interval, self.isEnding, self.interrupt) = (interval, isEnding, interrupt)
  }

  /// Whether no request is being handled.
  var isEmpty: Bool { state.withLock { $0.requests.isEmpty } }

  /// Adds a request of a thread. It is not answered before `start`.
  func add(_ address: UInt, of thread: Int32) {
    state.withLock { $0.requests.append(Request(address: address, thread: thread)) }
  }

  /// Lets any thread answer a request.
  func start(_ address: UInt) {
    let isInterrupted = state.withLock { state in
      guard let index = state.requests.firstIndex(where: { $0.address == address }) else {
        return false
      }
      state.requests[index].isStarted = true
      return state.requests[index].isInterrupted
    }
    if isInterrupted { watch() }
  }

  /// Notes that the kernel interrupted a request: its program has received a signal.
  func didInterrupt(_ address: UInt) {
    let isStarted = state.withLock { state in
      guard let index = state.requests.firstIndex(where: { $0.address == address }) else {
        return false
      }
      state.requests[index].isInterrupted = true
      return state.requests[index].isStarted
    }
    if isStarted { watch() }
  }

  /// Whether a request has no answer yet.
  func contains(_ address: UInt) -> Bool {
    state.withLock { $0.requests.contains { $0.address == address } }
  }

  /// Takes the right to answer a request. Returns false if another thread has answered it.
  func claim(_ address: UInt) -> Bool {
    state.withLock { state in
      guard let index = state.requests.firstIndex(where: { $0.address == address }) else {
        return false
      }
      state.requests.swapAt(index, state.requests.count - 1)
      state.requests.removeLast()
      return true
    }
  }

  // MARK: - Interrupted requests

  /// Starts a thread that looks at interrupted requests, unless there is one. The kernel reports
  /// the first signal only, so it looks until they are answered.
  private func watch() {
    let isFirst = state.withLock { state in
      defer { state.isWatched = true }
      return !state.isWatched
    }
    guard isFirst else { return }
    if let thread = try? Workers(count: 1, capacity: 1, name: "fuse-interrupt") {
      thread.submit { [self] in
        while answerEnding() { Host.pause(seconds: interval) }
      }
    } else {
      state.withLock { $0.isWatched = false }
      // No later signal would be noticed.
      for request in interrupted() where claim(request.address) { interrupt(request.address) }
    }
  }

  /// Answers the interrupted requests of programs that are being ended. Returns false if no
  /// interrupted ones are left.
  private func answerEnding() -> Bool {
    for request in interrupted() where isEnding(request.thread) {
      if claim(request.address) { interrupt(request.address) }
    }
    return state.withLock { state in
      state.isWatched = state.requests.contains { $0.isStarted && $0.isInterrupted }
      return state.isWatched
    }
  }

  private func interrupted() -> [Request] {
    state.withLock { $0.requests.filter { $0.isStarted && $0.isInterrupted } }
  }
}
