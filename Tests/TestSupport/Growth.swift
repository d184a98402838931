/// The growth of the processor time of a task with the number of elements.
package struct Growth: CustomStringConvertible {
  /// The shortest measured time for each number of elements, in seconds.
  package private(set) var times: [(count: Int, seconds: Double)] = []

  /// 1,000 and 10,000 elements; also 100,000 if tests are not sampled.
  package static var counts: [Int] { [1000, 10_000] + (Sampling.isWhole ? [100_000] : []) }

  /// Measures work for each count; `prepare` prepares it. Quadratic work ends early: after the
  /// first count that takes too long, no other is measured.
  package init(
    counts: [Int] = Growth.counts, _ prepare: (Int) throws -> () throws -> Void
  ) throws {
    for count in counts where isNLogN {
      times.append((count, try Self.leastSeconds(of: try prepare(count))))
    }
  }

  /// The shortest of up to three times. Long runs are hardly disturbed, and are measured once.
  private static func leastSeconds(of work: () throws -> Void) throws -> Double {
    var (least, total) = (Double.infinity, 0.0)
    for _ in 0..<3 where total < 0.3 {
      let seconds = try processorSeconds(of: work)
      least = min(least, seconds)
      total += seconds
    }
    return least
  }

  /// Whether no step took more than three times the time that n log n predicts from the previous
  /// one: with ten times as many elements, quadratic work takes two to three times that limit.
  package var isNLogN: Bool {
    zip(times, times.dropFirst()).allSatisfy { few, many in
      many.seconds < 3 * few.seconds * Self.steps(many.count) / Self.steps(few.count)
    }
  }

  private static func steps(_ count: Int) -> Double {
    Double(count) * Double(count.bitWidth - count.leadingZeroBitCount)
  }

  package var description: String {
    times.map { "\($0.count): \($0.seconds) s" }.joined(separator: ", ")
  }
}
