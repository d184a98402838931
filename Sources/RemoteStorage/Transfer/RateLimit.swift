internal import Synchronization
internal import SystemIO

/// A limit on the bytes per second, over all threads.
///
/// A token bucket whose capacity is the bytes of a quarter of a second: a thread that takes more
/// than remain waits until they are earned, and others wait behind it.
///
/// There is no limit once the user asked to stop: pending work is to end soon.
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

  /// The number of bytes per second.
  package let rate: UInt64
  private let clock: Clock
  private let isStopping: @Sendable () -> Bool
  /// The time at which all bytes taken so far are earned.
  private let paid: Mutex<Double>
  /// The time whose bytes can be taken at once, in seconds.
  private static let burst = 0.25
  /// The longest wait between two checks whether to stop, in seconds.
  private static let step = 0.2

  /// Creates a limit.
  ///
  /// - Parameters:
  ///   - rate: the number of bytes per second, at least 1.
  ///   - isStopping: whether the user asked to stop.
  package init(
    _ rate: UInt64, clock: Clock = .system, isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.rate = max(rate, 1)
    self.clock = clock
    self.isStopping = isStopping
    paid = Mutex(clock.now())
  }

  /// The number of bytes to transfer at once, so that the rate is even: those of a quarter of a
  /// second, and at least 16 KiB.
  var piece: Int { Int(clamping: max(rate / 4, 16 << 10)) }

  /// The number of bytes to send at once: those of a sixteenth of a second. A connection on which
  /// nothing is sent while others take their turn must not be silent for long, or the server ends
  /// it.
  var portion: Int { Int(clamping: max(rate / 16, 256)) }

  /// Takes bytes from the bucket, and waits until they are earned, or until the user asks to stop.
  package func take(_ bytes: Int) {
    let now = clock.now()
    let end = paid.withLock { paid in
      paid = max(paid, now - Self.burst) + Double(bytes) / Double(rate)
      return paid
    }
    var left = end - now
    while left > 0, !isStopping() {
      clock.pause(min(left, Self.step))
      left -= Self.step
    }
  }
}
