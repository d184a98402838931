import Foundation
import SystemIO
import TestSupport
import Testing

/// The moments at which runs are killed: spread evenly over the length that runs have, each by chance
/// in its part of it.
struct Moments {
  private let wanted: Int
  /// How many runs were killed.
  var count = 0
  private(set) var round = 0
  /// How long a run takes, in seconds.
  private var duration = 0.1

  init(_ wanted: Int) { self.wanted = wanted }

  /// Notes how long a run takes that comes to its end.
  mutating func measure(_ body: () throws -> Void) rethrows {
    let start = Host.monotonicSeconds()
    try body()
    duration = max(0.02, Host.monotonicSeconds() - start)
  }

  /// The next moment, in seconds after the start; nothing when enough were killed. On a machine whose
  /// speed changes a run may end before it.
  mutating func next(using random: inout Seeded) -> Double? {
    guard count < wanted, round < 5 * wanted else { return nil }
    round += 1
    let part = (Double(count) + Double.random(in: 0..<1, using: &random)) / Double(wanted)
    // A run that came to its end is followed by an earlier moment.
    return max(0.001, part * duration * (round > count + wanted ? 0.5 : 1))
  }

  /// Runs a command that is killed at a moment; whether it was. One that came to its end tells how
  /// long a run takes by now.
  mutating func run(_ cli: CommandLine, _ line: String, at moment: Double) throws -> Bool {
    let killer = ["timeout", "--signal=KILL", String(format: "%.4f", moment)]
    let start = Host.monotonicSeconds()
    let outcome = try cli.run(line, under: killer)
    #expect([0, 137, -9].contains(outcome.code), "\(outcome.code): \(outcome.errors)")
    if outcome.code == 0 { duration = max(0.02, Host.monotonicSeconds() - start) }
    return outcome.code != 0
  }
}
