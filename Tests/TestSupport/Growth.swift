/// How the processor time of some work grows with the number of elements.
public struct Growth: CustomStringConvertible {
  /// The least time, in seconds, that was measured for each count of elements.
  public private(set) var times: [(count: Int, seconds: Double)] = []

  /// A thousand elements and ten thousand; where tests are not sampled, a hundred thousand, too.
  public static var counts: [Int] { [1000, 10_000] + (Sampling.isWhole ? [100_000] : []) }

  /// Measures work at each count, which `prepare` makes ready. What grows as the square does ends
  /// early: after the first count that took too long there is no further one.
  public init(
    counts: [Int] = Growth.counts, _ prepare: (Int) throws -> () throws -> Void
  ) throws {
    for count in counts where isNLogN {
      times.append((count, try Self.leastSeconds(of: try prepare(count))))
    }
  }

  /// The least of up to three times. What takes long is disturbed little, and is done once.
  private static func leastSeconds(of work: () throws -> Void) throws -> Double {
    var (least, total) = (Double.infinity, 0.0)
    for _ in 0..<3 where total < 0.3 {
      let seconds = try processorSeconds(of: work)
      least = min(least, seconds)
      total += seconds
    }
    return least
  }

  /// Whether no step took more than three times what n log n makes of the one before: ten times as
  /// many elements take the square two to three times that.
  public var isNLogN: Bool {
    zip(times, times.dropFirst()).allSatisfy { few, many in
      many.seconds < 3 * few.seconds * Self.steps(many.count) / Self.steps(few.count)
    }
  }

  private static func steps(_ count: Int) -> Double {
    Double(count) * Double(count.bitWidth - count.leadingZeroBitCount)
  }

  public var description: String {
    times.map { "\($0.count): \($0.seconds) s" }.joined(separator: ", ")
  }
}
