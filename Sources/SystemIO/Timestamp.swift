/// A point in time: whole seconds since 1970-01-01T00:00:00Z and nanoseconds.
package struct Timestamp: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// Seconds since 1970, negative before.
  package var seconds: Int64
  /// 0 to 999,999,999, always forward from `seconds`.
  package var nanoseconds: UInt32

  /// Creates a timestamp.
  package init(seconds: Int64, nanoseconds: UInt32 = 0) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  package static func < (left: Self, right: Self) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }

  /// Returns the seconds from `earlier` to this time, with fraction. File systems store any 64-bit
  /// number, so the difference of two may exceed 64 bits.
  package func since(_ earlier: Timestamp) -> Double {
    let (whole, isTooFar) = seconds.subtractingReportingOverflow(earlier.seconds)
    return (isTooFar ? Double(seconds) - Double(earlier.seconds) : Double(whole))
      + (Double(nanoseconds) - Double(earlier.nanoseconds)) / 1_000_000_000
  }
}
