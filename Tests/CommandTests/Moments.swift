import Foundation
import SystemIO
import TestSupport
import Testing

/// The moments at which runs are killed: spread evenly over the duration of a run, each random
/// within its part.
struct Moments {
  private let wanted: Int
  /// The number of killed runs.
  var count = 0
  private(set) var round = 0
  /// The duration of a run in seconds.
  private var duration = 0.1

  init(_ wanted: Int) { self.wanted = wanted }

  /// Measures the duration of a complete run.
  mutating func measure(_ body: () throws -> Void) rethrows {
    let start = Host.monotonicSeconds()
    try body()
    duration = max(0.02, Host.monotonicSeconds() - start)
  }

  /// Returns the next moment in seconds after the start, or nil if enough runs were killed. If the
  /// speed of the machine changes, a run may end before it.
  mutating func next(using random: inout Seeded) -> Double? {
    guard count < wanted, round < 5 * wanted else { return nil }
    round += 1
    let part = (Double(count) + Double.random(in: 0..<1, using: &random)) / Double(wanted)
    // After a complete run, the next moment is earlier.
    return max(0.001, part * duration * (round > count + wanted ? 0.5 : 1))
  }

  /// Runs a command that is killed at a moment. Returns whether it was killed; a complete run
  /// updates the duration.
  mutating func run(_ cli: CommandLine, _ line: String, at moment: Double) throws -> Bool {
    let killer = ["timeout", "--signal=KILL", String(format: "%.4f", moment)]
    let start = Host.monotonicSeconds()
    let outcome = try cli.run(line, under: killer)
    #expect([0, 137, -9].contains(outcome.code), "\(outcome.code): \(outcome.errors)")
    if outcome.code == 0 { duration = max(0.02, Host.monotonicSeconds() - start) }
    return outcome.code != 0
  }
}
