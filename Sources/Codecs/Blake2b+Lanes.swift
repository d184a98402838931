internal import CBlake2b

extension Blake2b {
  /// Which instructions hash several runs of bytes at once; a processor has all below its best.
  enum Lanes: Int32, CaseIterable {
    case none, avx2, avx512

    /// The best that this processor has.
    static let best = Lanes(rawValue: cb_best_set()) ?? .none
  }

  /// The digests of several runs of bytes in memory, each what `hash(_:)` gives of it.
  ///
  /// Together they take a quarter of the time that they take one by one where the processor has
  /// AVX-512, half of it with AVX2: from eight or four runs on, of about the same length. Without
  /// either it is the same as one by one.
  public static func hash(_ runs: [Range<Int>], of bytes: Span<UInt8>) -> [Digest] {
    guard runs.count > 1, Lanes.best != .none else {
      return runs.map { hash(bytes.extracting($0)) }
    }
    return hash(runs, of: bytes, in: Lanes.best)
  }

  static func hash(_ runs: [Range<Int>], of bytes: Span<UInt8>, in lanes: Lanes) -> [Digest] {
    for run in runs { precondition(run.lowerBound >= 0 && run.upperBound <= bytes.count) }
    // The longest first: else one that comes late is alone in its lane, and the others stand idle.
    let order = runs.indices.sorted { (runs[$1].count, $0) < (runs[$0].count, $1) }
    let offsets = order.map { runs[$0].lowerBound }
    let lengths = order.map { runs[$0].count }
    var words = [UInt64](repeating: 0, count: runs.count * 4)
    unsafe words.withUnsafeMutableBytes { output in
      unsafe bytes.withUnsafeBufferPointer { input in
        // Of no bytes at all there is no address, and none is needed.
        let base = unsafe input.baseAddress ?? UnsafePointer(bitPattern: 1)
        let digests = unsafe output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        unsafe cb_hash(lanes.rawValue, base, offsets, lengths, runs.count, digests)
      }
    }
    var digests = [Digest](repeating: Digest(0, 0, 0, 0), count: runs.count)
    for (place, run) in order.enumerated() {
      let first = place * 4
      digests[run] = Digest(
        words[first].bigEndian, words[first + 1].bigEndian, words[first + 2].bigEndian,
        words[first + 3].bigEndian)
    }
    return digests
  }
}
