internal import Synchronization
internal import SystemIO

/// The requests that are being handled. Each is answered once: by the thread that handles it, or
/// with EINTR if the program that made it is being ended. The work that it started in the
/// repository continues, because other requests may need it.
///
/// The library uses the address of a request for another one as soon as it is answered, while the
/// thread that handles it may still be working. Each request therefore has a unique number.
final class PendingRequests: Sendable {
  private struct Request {
    let number: UInt64
    let address: UInt
    let thread: Int32
    /// Whether it may be answered by any thread: the library no longer uses it on behalf of this
    /// request.
    var isStarted = false
    var isInterrupted = false

    var isToBeWatched: Bool { isStarted && isInterrupted }
  }

  private struct State {
    var requests: [Request] = []
    /// The number of requests that are being answered with EINTR.
    var ending = 0
    /// Whether a thread watches the interrupted ones.
    var isWatched = false

    /// Removes a request. Returns false if it is answered.
    mutating func remove(_ number: UInt64) -> Bool {
      guard let index = requests.firstIndex(where: { $0.number == number }) else { return false }
      requests.swapAt(index, requests.count - 1)
      requests.removeLast()
      return true
    }
  }

  private let state = Mutex(State())
  private let numbers = Atomic<UInt64>(0)
  /// Returns whether the program of a thread is being ended. The second argument is whether the
  /// request has been waiting since the signal, for at most the interval.
  private let isEnding: @Sendable (Int32, Bool) -> Bool
  /// Answers a request with EINTR.
  private let interrupt: @Sendable (UInt) -> Void
  /// The time in seconds between two checks of programs with interrupted requests.
  private let interval: Double

  init(
    interval: Double = 1,
    isEnding: @escaping @Sendable (Int32, Bool) -> Bool = {
      RequesterSignals.areEnding($0, hasWaited: $1)
    },
    interrupt: @escaping @Sendable (UInt) -> Void
  ) {
    (self.interval, self.isEnding, self.interrupt) = (interval, isEnding, interrupt)
  }

  /// Whether no request is being handled or answered.
  var isEmpty: Bool { state.withLock { $0.requests.isEmpty && $0.ending == 0 } }

  /// Returns a number that no other request has.
  func newNumber() -> UInt64 { numbers.add(1, ordering: .relaxed).newValue }

  /// Adds a request of a thread. It is not answered before `start`.
  func add(_ number: UInt64, at address: UInt, of thread: Int32) {
    let request = Request(number: number, address: address, thread: thread)
    state.withLock { $0.requests.append(request) }
  }

  /// Lets any thread answer a request.
  func start(_ number: UInt64) {
    let request = state.withLock { state -> Request? in
      guard let index = state.requests.firstIndex(where: { $0.number == number }) else {
        return nil
      }
      state.requests[index].isStarted = true
      return state.requests[index]
    }
    if let request, request.isToBeWatched { look(at: request) }
  }

  /// Notes that the kernel interrupted a request: its program has received a signal. The library
  /// keeps the request during the call, so no other one has its address.
  func didInterrupt(_ address: UInt) {
    let request = state.withLock { state -> Request? in
      guard let index = state.requests.firstIndex(where: { $0.address == address }) else {
        return nil
      }
      state.requests[index].isInterrupted = true
      return state.requests[index]
    }
    if let request, request.isToBeWatched { look(at: request) }
  }

  /// Whether a request has no answer yet.
  func contains(_ number: UInt64) -> Bool {
    state.withLock { $0.requests.contains { $0.number == number } }
  }

  /// Takes the right to answer a request. Returns false if another thread has answered it.
  func claim(_ number: UInt64) -> Bool { state.withLock { $0.remove(number) } }

  // MARK: - Interrupted requests

  /// Answers an interrupted request if its program is being killed; otherwise, watches it.
  private func look(at request: Request) {
    if isEnding(request.thread, false) { end(request) } else { watch() }
  }

  /// Starts a thread that checks interrupted requests, unless there is one. The kernel reports only
  /// the first signal, so the thread checks until they are answered.
  private func watch() {
    let isFirst = state.withLock { state in
      defer { state.isWatched = true }
      return !state.isWatched
    }
    guard isFirst else { return }
    if let thread = try? Workers(count: 1, capacity: 1, name: "fuse-interrupt") {
      thread.submit { [self] in
        repeat { Host.pause(seconds: interval) } while answerEnding()
      }
    } else {
      state.withLock { $0.isWatched = false }
      // No later signal would be noticed.
      for request in interrupted() { end(request) }
    }
  }

  /// Answers the interrupted requests of programs that are being ended. Returns false if no
  /// interrupted ones are left.
  private func answerEnding() -> Bool {
    for request in interrupted() where isEnding(request.thread, true) { end(request) }
    return state.withLock { state in
      state.isWatched = state.requests.contains { $0.isToBeWatched }
      return state.isWatched
    }
  }

  /// Answers a request with EINTR, unless it was answered meanwhile.
  private func end(_ request: Request) {
    let isClaimed = state.withLock { state in
      guard state.remove(request.number) else { return false }
      state.ending += 1
      return true
    }
    guard isClaimed else { return }
    interrupt(request.address)
    state.withLock { $0.ending -= 1 }
  }

  private func interrupted() -> [Request] {
    state.withLock { $0.requests.filter { $0.isToBeWatched } }
  }
}
