import Foundation

/// How much of a sweep runs: of each call that fails in turn, of each moment at which a program is
/// killed. `make test` takes a sample of them, by a seed that is printed; `make test-all` takes all.
public enum Sampling {
  /// Whether everything runs.
  public static let isWhole = ProcessInfo.processInfo.environment["SANDBOXCTL_TEST_ALL"] == "1"

  /// From one step of a sweep to the next: `sample`, or 1 where everything runs.
  public static func stride(_ sample: Int) -> Int { isWhole ? 1 : sample }

  /// The steps of a sweep of unknown length, from 1 on: all, or each of a stride from a random one on.
  public static func steps(_ sample: Int, _ label: String) -> SweepSteps {
    let width = stride(sample)
    var random = Seeded.fresh(label)
    return SweepSteps(
      upcoming: width == 1 ? 1 : Int.random(in: 1...width, using: &random), width: width)
  }
}

/// Numbers without an end, each a stride behind the last.
public struct SweepSteps: Sequence, IteratorProtocol {
  var upcoming: Int
  let width: Int

  public mutating func next() -> Int? {
    defer { upcoming += width }
    return upcoming
  }
}
