public import SystemIO

/// The start of a run by the clock of the file system that it reads, and the reliability of the
/// files' times there.
public struct RunClock: Sendable, Hashable {
  public let start: Timestamp
  public let times: VolumeTimes
  /// The number of seconds for which a store through a mapping may leave the change time unchanged.
  public let mappingDelay: Double

  /// The minimum number of seconds between a change and the start of a run, on a local volume. With
  /// less, the run may have read the file before a second change with the same time.
  static let localMargin = 2.0

  /// Creates a clock.
  public init(
    start: Timestamp, times: VolumeTimes = .exact, mappingDelay: Double = Host.writebackDelay
  ) {
    (self.start, self.times, self.mappingDelay) = (start, times, mappingDelay)
  }

  /// The number of seconds by which a change must precede the start: ten minutes if the clock is
  /// another machine's.
  var margin: Double { times == .remote ? 600 : Self.localMargin }

  /// Whether the run began long enough after a change that a second change in the run has another
  /// time.
  public func hasSettled(_ changed: Timestamp) -> Bool { start.since(changed) > margin }

  /// Returns the clock with a start no later than `moment`: entries that a scan found before count
  /// as read then.
  public func starting(noLaterThan moment: Timestamp) -> RunClock {
    RunClock(start: min(start, moment), times: times, mappingDelay: mappingDelay)
  }

  /// Returns the clock for entries on volumes with these times; the least reliable one decides.
  public func reading(_ volumes: [VolumeTimes]) -> RunClock {
    let worst = [VolumeTimes.loose, .remote].first { volumes.contains($0) } ?? .exact
    return RunClock(start: start, times: worst, mappingDelay: mappingDelay)
  }
}
