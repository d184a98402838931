internal import SystemIO

/// The limits for repeating a request.
package struct RetryPolicy: Sendable {
  /// The maximum number of attempts if the store answers with a possibly temporary error while it
  /// answers other requests.
  package var attempts = 8
  /// The maximum number of attempts while the store has not answered at all: the endpoint may be
  /// wrong.
  package var firstAttempts = 4
  /// The maximum number of attempts at a request that begins after the user asked to stop.
  package var attemptsAfterStop = 2
  /// The time in seconds for which requests are repeated without any answer, or while the store
  /// answers all requests with errors: a connection may be lost for minutes, and a store may
  /// restart.
  package var patience = 1200.0
  /// The pause before the second attempt in seconds; it doubles for each further one.
  package var base = 0.3
  /// The maximum pause in seconds.
  package var maximum = 15.0
  /// The clock that measures the time without an answer, and by which attempts wait.
  package var clock = RateLimit.Clock.system

  /// Reports that the store does not answer.
  package var outages: OutageWatch?

  /// Creates the default limits.
  package init() {}

  /// Returns the pause after an attempt (from 1): a random part, at least half, of the
  /// exponentially growing time, so that hosts that fail together do not return together.
  ///
  /// - Parameter jitter: A number from 0 to 1.
  package func pause(after attempt: Int, jitter: Double) -> Double {
    let doubled = base * Double(sign: .plus, exponent: min(max(attempt, 1) - 1, 30), significand: 1)
    return min(doubled, maximum) * (0.5 + 0.5 * min(max(jitter, 0), 1))
  }
}
