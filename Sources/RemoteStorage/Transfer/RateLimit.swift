internal import Synchronization
internal import SystemIO

/// A limit of the bytes in a second, over all threads.
///
/// A token bucket whose capacity is the bytes of a quarter of a second: a thread that takes more
/// than are left waits for the time in which they are earned, and others wait behind it.
package final class RateLimit: Sendable {
  /// A clock, and a way to wait by it.
  package struct Clock: Sendable {
    /// Returns the time in seconds. It never decreases.
    package var now: @Sendable () -> Double
    /// Suspends the thread for a number of seconds.
    package var pause: @Sendable (Double) -> Void

    /// Creates a clock.
    package init(
      now: @escaping @Sendable () -> Double, pause: @escaping @Sendable (Double) -> Void
    ) {
      self.now = now
      self.pause = pause
    }

    /// The system's monotonic clock.
    package static let system = Clock(
      now: Host.monotonicSeconds, pause: { Host.pause(seconds: $0) })
  }

  /// The bytes in a second.
  package let rate: UInt64
  private let clock: Clock
  /// The time at which all bytes that were taken so far are earned.
  private let paid: Mutex<Double>
  /// The time whose bytes can be taken at once, in seconds.
  private static let burst = 0.25

  /// Creates a limit.
  ///
  /// - Parameter rate: the bytes in a second, at least 1.
  package init(_ rate: UInt64, clock: Clock = .system) {
    self.rate = max(rate, 1)
    self.clock = clock
    paid = Mutex(clock.now())
  }

  /// The bytes to transfer at once, so that the rate is even: those of a quarter of a second, and
  /// at least 16 KiB.
  var piece: Int { Int(clamping: max(rate / 4, 16 << 10)) }

  /// Takes bytes from the bucket, and waits until they are earned.
  package func take(_ bytes: Int) {
    let now = clock.now()
    let end = paid.withLock { paid in
      paid = max(paid, now - Self.burst) + Double(bytes) / Double(rate)
      return paid
    }
    if end > now { clock.pause(end - now) }
  }
}
