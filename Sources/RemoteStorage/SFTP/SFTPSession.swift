internal import Synchronization
package import SystemIO

/// A connection that is reestablished after it was lost.
///
/// Thread-safe. Only the first connection fails at once: a name or a port may be wrong. Later ones
/// are attempted for `patience` seconds, because a link that worked before may work again.
final class SFTPSession: Sendable {
  private let connector: SFTPConnector
  private let options: SFTPOptions
  private let state = Mutex(State())

  private struct State {
    var connection: SFTPConnection?
    /// The number of attempts that failed one after another.
    var failures = 0
    /// The time of the next attempt, by the monotonic clock.
    var nextAttempt = 0.0
    var wasConnected = false
    /// A number that identifies the connection.
    var count = 0
  }

  /// The first and the longest pause between two attempts, in seconds.
  private static let pauses = 0.2...15.0

  init(_ connector: SFTPConnector, _ options: SFTPOptions) {
    (self.connector, self.options) = (connector, options)
  }

  /// The number of connections that were made.
  var connectionCount: Int { state.withLock { $0.count } }

  /// Runs `body` with a connection, and again with a new one each time it is lost.
  ///
  /// - Parameter body: the calls, which must be safe to repeat. `isRepeated` is whether they may
  ///   have been carried out already, at least in part.
  func perform<Result>(
    _ body: (_ connection: SFTPConnection, _ isRepeated: Bool) throws(SFTPFailure) -> Result
  ) throws(SFTPFailure) -> Result {
    var (isRepeated, limit) = (false, Double?.none)
    options.outages?.begin()
    defer { options.outages?.end() }
    while true {
      do throws(SFTPFailure) {
        return try body(try connection(), isRepeated)
      } catch {
        guard case .lost(let ending) = error, state.withLock({ $0.wasConnected }) else {
          throw Self.final(error)
        }
        isRepeated = true
        options.outages?.didFail(ending.description)
        limit = limit ?? Host.monotonicSeconds() + options.patience
        try pause(until: limit ?? 0, ending)
      }
    }
  }

  /// Waits for the next attempt.
  private func pause(until limit: Double, _ ending: SFTPEnding) throws(SFTPFailure) {
    while true {
      let now = Host.monotonicSeconds()
      let next = state.withLock { $0.connection?.isOpen == true ? 0 : $0.nextAttempt }
      if options.isStopping() { throw .interrupted(ending) }
      if now >= limit { throw .impossible(ending) }
      if now >= next { return }
      Host.pause(seconds: min(next - now, limit - now, 0.2))
    }
  }

  /// Returns the failure for the caller: no further attempt is made.
  private static func final(_ failure: SFTPFailure) -> SFTPFailure {
    if case .lost(let ending) = failure { .impossible(ending) } else { failure }
  }

  /// Returns the current connection, or a new one. Other threads wait meanwhile.
  private func connection() throws(SFTPFailure) -> SFTPConnection {
    try state.withLock { state throws(SFTPFailure) in
      if let open = state.connection, open.isOpen { return open }
      state.connection = nil
      let now = Host.monotonicSeconds()
      if state.wasConnected, now < state.nextAttempt {
        throw .lost(SFTPEnding(.unreachable, reason: "the connection to the server was lost"))
      }
      do throws(SFTPFailure) {
        let made = try SFTPConnection(
          connector, silence: options.silence, outages: options.outages,
          isStopping: options.isStopping)
        state.connection = made
        state.count += 1
        (state.failures, state.wasConnected) = (0, true)
        // A server that ends each connection at once is not contacted again without a pause.
        state.nextAttempt = now + Self.pauses.lowerBound
        return made
      } catch {
        state.failures += 1
        // Even with little patience there are several attempts.
        let pause = min(Self.pause(after: state.failures), options.patience / 4)
        state.nextAttempt = Host.monotonicSeconds() + pause
        throw error
      }
    }
  }

  /// The pause before the next attempt in seconds, which doubles with each failure.
  static func pause(after failures: Int) -> Double {
    let pause = pauses.lowerBound * Double(1 << min(failures, 16))
    return min(pause, pauses.upperBound)
  }

  /// Ends the connection. A later call makes a new one.
  func close() { state.withLock { $0.connection = nil } }
}

/// The options of a storage behind SSH.
package struct SFTPOptions: Sendable {
  /// The words of the program that connects: `ssh` with its own options. The program and its
  /// options are the user's; host, port, user and the subsystem are added.
  package var sshCommand: [ByteString] = ["ssh"]
  /// The seconds for which a lost connection is attempted again.
  package var patience = 600.0
  /// The seconds without any answer, or some kilobytes of one, after which a connection counts as
  /// lost. A slow disk may take long to sync; ssh itself detects a dead link.
  package var silence = 600.0
  /// Whether the user asked to stop: then lost connections are not reestablished.
  package var isStopping: @Sendable () -> Bool = StopSignals.isStopping

  /// Reports that the server does not answer.
  package var outages: OutageWatch?

  /// Creates the usual options.
  package init() {}
}
