internal import SystemIO

/// A thread that keeps a lease alive until its end, whatever its program does or waits for: an
/// answer of a slow server, a reader of its output, a large plan.
final class LeaseHeartbeat: Sendable {
  private let end = BoundedQueue<Bool>(capacity: 1)
  private let workers: Workers

  /// Starts the thread, which calls `beat` at an interval.
  init(
    milliseconds: Int, _ beat: @escaping @Sendable () -> Void
  ) throws(StoreError) {
    workers = try StoreError.wrap { () throws(SystemError) in
      try Workers(count: 1, capacity: 1, name: "heartbeat")
    }
    workers.submit { [end] in
      while end.dequeue(waitingAtMost: milliseconds) == nil { beat() }
    }
  }

  /// Ends the thread. A heartbeat that has begun is complete then, so it does not create a sign in
  /// a lease that is being removed.
  func finish() {
    _ = end.offer(true)
    workers.finish()
  }

  deinit { finish() }
}

extension LeaseHeartbeat {
  /// The clock of a lease with a heartbeat, and the interval at which its thread looks whether it
  /// is due.
  struct Timing: Sendable {
    var clock: @Sendable () -> Double = Host.bootSeconds
    var milliseconds = 30_000
  }
}
