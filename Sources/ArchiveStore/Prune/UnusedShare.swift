internal import SystemIO

/// The unused share of a frame's decoded bytes, in steps of 1/64, rounded up: 0 means that all of
/// it is used.
struct UnusedShare: Hashable, Comparable, Sendable {
  private let step: UInt8

  static let none = UnusedShare(step: 0)
  private static let steps: UInt64 = 64

  private init(step: UInt8) { self.step = step }

  /// The share of `unused` bytes in `all` bytes, which are less than 2^57.
  init(of unused: UInt64, in all: UInt64) {
    step = all == 0 ? 0 : UInt8((unused * Self.steps + all - 1) / all)
  }

  static func < (left: Self, right: Self) -> Bool { left.step < right.step }
}

extension UnusedShare {
  /// The unused stored bytes of frames by their share, of those with a share below a half.
  struct Bytes: Sendable {
    private var bytes = [UInt64](repeating: 0, count: Int(UnusedShare.steps / 2))

    /// Adds the unused bytes of a frame.
    mutating func add(_ unused: UInt64, _ share: UnusedShare) {
      if bytes.indices.contains(Int(share.step)) { bytes[Int(share.step)] += unused }
    }

    /// Adds the bytes of other frames.
    mutating func add(_ other: Self) {
      for step in bytes.indices { bytes[step] += other.bytes[step] }
    }

    /// Returns the unused bytes of the frames up to a share.
    func total(upTo share: UnusedShare) -> UInt64 { bytes.prefix(Int(share.step) + 1).clampedSum }

    /// Returns the largest share up to which the frames have at most `limit` unused bytes.
    func share(within limit: UInt64) -> UnusedShare {
      let steps = bytes.indices.prefix { total(upTo: UnusedShare(step: UInt8($0))) <= limit }
      return UnusedShare(step: UInt8(steps.last ?? 0))
    }
  }
}
