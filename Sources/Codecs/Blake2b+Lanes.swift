internal import CBlake2b

extension Blake2b {
  /// Returns the digests of several byte ranges, each equal to `hash(_:)` of the range.
  ///
  /// Hashing them together takes a quarter of the time with AVX-512 and half with AVX2, from eight
  /// or four ranges of similar length. Without either it takes the same time. Ranges may overlap;
  /// each must be within the bytes.
  package static func hash(_ runs: [Range<Int>], of bytes: Span<UInt8>) -> [Digest] {
    hash(runs, of: bytes, lanes: lanes)
  }

  /// The number of ranges hashed at once: the number of lanes of the processor, or 0 if the lanes
  /// do not produce the same digests as libsodium.
  static let lanes = trusted(processorLanes, [hashInLanes, hashInStreams])

  /// The number of lanes of the processor: 8, 4 or 0.
  static var processorLanes: Int { Int(cb_lanes()) }

  static func hash(_ runs: [Range<Int>], of bytes: Span<UInt8>, lanes: Int) -> [Digest] {
    // The longest first: a long range that starts late would run alone in its lane while the others
    // idle.
    let order = runs.indices.sorted { (runs[$1].count, $0) < (runs[$0].count, $1) }
    let alone = lanes == 0 ? order.count : countAlone(order.map { runs[$0].count })
    var digests = [Digest](
      repeating: Digest(word0: 0, word1: 0, word2: 0, word3: 0), count: runs.count)
    for run in order[..<alone] { digests[run] = hash(bytes.extracting(runs[run])) }
    let together = order[alone...]
    guard !together.isEmpty else { return digests }
    for (run, digest) in zip(
      together, hashInLanes(together.map { runs[$0] }, of: bytes, lanes: lanes))
    {
      digests[run] = digest
    }
    return digests
  }

  /// Returns the number of lengths, sorted in descending order, that are greater than the sum of
  /// all following ones: a single lane is no faster than libsodium.
  static func countAlone(_ lengths: [Int]) -> Int {
    var rest = lengths.reduce(0, +)
    return lengths.prefix { length in
      rest -= length
      return length > rest
    }.count
  }

  /// Hashes ranges in lanes, in their order. The processor must have the lanes.
  static func hashInLanes(_ runs: [Range<Int>], of bytes: Span<UInt8>, lanes: Int) -> [Digest] {
    for run in runs { precondition(run.lowerBound >= 0 && run.upperBound <= bytes.count) }
    return unsafe bytes.withUnsafeBufferPointer { buffer in
      var inputs = unsafe runs.map { run in
        var input = unsafe cb_input()
        unsafe input.bytes = buffer.baseAddress.map { unsafe $0 + run.lowerBound }
        unsafe input.length = run.count
        return unsafe input
      }
      unsafe cb_hash(Int32(lanes), &inputs, inputs.count)
      return unsafe inputs.map { unsafe digest($0.state) }
    }
  }

  /// Returns the digest, which is the first four words of a state.
  static func digest(_ state: cb_state) -> Digest {
    Digest(
      word0: state.h.0.byteSwapped, word1: state.h.1.byteSwapped, word2: state.h.2.byteSwapped,
      word3: state.h.3.byteSwapped)
  }
}
