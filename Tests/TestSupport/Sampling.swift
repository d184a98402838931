import Foundation

/// The part of a sweep that runs: a sweep makes each call fail in turn, kills a program at each
/// moment, or draws many values. `make test` runs a sample with a seed that is printed;
/// `make test-all` runs everything.
package enum Sampling {
  private static let setting = ProcessInfo.processInfo.environment["SANDBOXCTL_TEST_ALL"]

  /// Whether complete sweeps run.
  package static let isWhole = setting == "1" || isExhaustive

  /// Whether even sweeps of many minutes run completely.
  private static let isExhaustive = setting == "2"

  /// The distance between two steps of a sweep: `sample`, or `whole` for complete sweeps.
  package static func stride(_ sample: Int, whole: Int = 1) -> Int {
    isExhaustive ? 1 : isWhole ? whole : sample
  }

  /// The number of repetitions of something random: `sample`, or `whole` for complete sweeps.
  package static func count(_ sample: Int, of whole: Int) -> Int { isWhole ? whole : sample }

  /// A larger distance for an expensive sweep in the second run, over encrypted repositories: the
  /// calls are almost the same.
  package static func wider(_ sample: Int) -> Int { TestEncryption.isOn ? 2 * sample : sample }

  /// A smaller number of expensive repetitions in the second run, over encrypted repositories.
  package static func fewer(_ sample: Int) -> Int {
    TestEncryption.isOn ? (sample + 1) / 2 : sample
  }

  /// The steps of a sweep of unknown length: all from 1 on, or 1 and every n-th from a random one
  /// on; the latter even in a complete sweep if `whole` is above 1.
  package static func steps(_ sample: Int, whole: Int = 1, _ label: String) -> SweepSteps {
    var random = Seeded.fresh(label)
    return SweepSteps(width: stride(sample, whole: whole), using: &random)
  }

  /// The steps of a sweep that is known to have `count` steps.
  package static func steps(_ sample: Int, upTo count: Int, _ label: String) -> [Int] {
    Array(steps(sample, label).prefix { $0 <= count })
  }

  /// All elements, or every n-th from a random one on, at least one; the latter even in a complete
  /// sweep if `whole` is above 1.
  package static func some<Element>(
    of all: [Element], _ sample: Int, whole: Int = 1, _ label: String
  ) -> [Element] {
    let width = Swift.min(stride(sample, whole: whole), all.count)
    guard width > 1 else { return all }
    var random = Seeded.fresh(label)
    let first = Int.random(in: 0..<width, using: &random)
    return Swift.stride(from: first, to: all.count, by: width).map { all[$0] }
  }
}

/// An endless sequence of numbers: 1, and then every n-th from a random one on.
package struct SweepSteps: Sequence, IteratorProtocol {
  private var upcoming = 1
  private var afterwards: Int
  private let width: Int

  /// Steps at a distance of `width`.
  package init(width: Int, using random: inout Seeded) {
    self.width = width
    afterwards = 1 + Int.random(in: 1...width, using: &random)
  }

  package mutating func next() -> Int? {
    defer { (upcoming, afterwards) = (afterwards, afterwards + width) }
    return upcoming
  }
}
