import Foundation

/// How much of a sweep runs: a sweep lets each call fail in turn, or kills a program at each
/// moment. `make test` runs a sample with a seed that is printed; `make test-all` runs everything.
package enum Sampling {
  /// Whether complete sweeps run.
  package static let isWhole = ProcessInfo.processInfo.environment["SANDBOXCTL_TEST_ALL"] == "1"

  /// The distance between two steps of a sweep: `sample`, or 1 for complete sweeps.
  package static func stride(_ sample: Int) -> Int { isWhole ? 1 : sample }

  /// The steps of a sweep of unknown length: all from 1 on, or every n-th from a random one on.
  package static func steps(_ sample: Int, _ label: String) -> SweepSteps {
    let width = stride(sample)
    var random = Seeded.fresh(label)
    return SweepSteps(
      upcoming: width == 1 ? 1 : Int.random(in: 1...width, using: &random), width: width)
  }
}

/// An endless sequence of numbers with a fixed stride.
package struct SweepSteps: Sequence, IteratorProtocol {
  var upcoming: Int
  let width: Int

  package mutating func next() -> Int? {
    defer { upcoming += width }
    return upcoming
  }
}
