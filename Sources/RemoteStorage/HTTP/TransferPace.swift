/// The rate at which the bytes of a request move. A request whose rate stays below a minimum counts
/// as stalled: libcurl's limit ends only a request that moves less than one byte per second, so it
/// never ends that of a host that sends one each second.
struct TransferPace {
  /// The seconds over which the rate is measured.
  let window: Double
  /// The minimum rate in bytes per second.
  let minimum: Double
  private var start: Double
  /// The number of bytes that had moved at the start.
  private var base: UInt64 = 0

  /// - Parameter start: the time of a monotonic clock in seconds.
  init(window: Double, minimum: Double, from start: Double) {
    (self.window, self.minimum, self.start) = (window, minimum, start)
  }

  /// Notes a pause made by this host.
  mutating func didPause(_ seconds: Double) { start += seconds }

  /// Whether too few bytes have moved.
  ///
  /// - Parameters:
  ///   - total: the bytes that have moved since the beginning of the request.
  ///   - factor: the number of windows to wait for.
  mutating func isStalled(at now: Double, total: UInt64, factor: Double = 1) -> Bool {
    // libcurl starts over on another connection.
    base = min(base, total)
    guard now - start >= window * factor else { return false }
    if Double(total - base) < minimum * window { return true }
    (start, base) = (now, total)
    return false
  }
}
