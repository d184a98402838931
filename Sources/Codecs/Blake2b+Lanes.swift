internal import CBlake2b

extension Blake2b {
  /// The digests of several runs of bytes in memory, each what `hash(_:)` gives of it.
  ///
  /// Together they take a quarter of the time that they take one by one where the processor has
  /// AVX-512, half of it with AVX2: from eight or four runs on, of about the same length. Without
  /// either it is the same as one by one. Runs may overlap; each must lie within the bytes.
  public static func hash(_ runs: [Range<Int>], of bytes: Span<UInt8>) -> [Digest] {
    hash(runs, of: bytes, lanes: lanes)
  }

  /// How many runs are hashed at once: as many as the processor has lanes, and none by itself where
  /// the lanes do not give libsodium's digests.
  static let lanes = trusted(processorLanes, [hashInLanes, hashInStreams])

  /// How many lanes the processor has: 8, 4 or 0.
  static var processorLanes: Int { Int(cb_lanes()) }

  static func hash(_ runs: [Range<Int>], of bytes: Span<UInt8>, lanes: Int) -> [Digest] {
    // The longest first: else one that comes late is alone in its lane, and the others stand idle.
    let order = runs.indices.sorted { (runs[$1].count, $0) < (runs[$0].count, $1) }
    let alone = lanes == 0 ? order.count : countAlone(order.map { runs[$0].count })
    var digests = [Digest](repeating: Digest(0, 0, 0, 0), count: runs.count)
    for run in order[..<alone] { digests[run] = hash(bytes.extracting(runs[run])) }
    let together = order[alone...]
    guard !together.isEmpty else { return digests }
    for (run, digest) in zip(together, hashInLanes(together.map { runs[$0] }, bytes, lanes)) {
      digests[run] = digest
    }
    return digests
  }

  /// How many of the lengths, the longest first, are greater than all that follow together: a lane by
  /// itself gains nothing on libsodium.
  static func countAlone(_ lengths: [Int]) -> Int {
    var rest = lengths.reduce(0, +)
    return lengths.prefix { length in
      rest -= length
      return length > rest
    }.count
  }

  /// Hashes all runs in lanes, which take them in their order. The processor must have the lanes.
  static func hashInLanes(_ runs: [Range<Int>], _ bytes: Span<UInt8>, _ lanes: Int) -> [Digest] {
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

  /// The digest that is the first four words of a state.
  static func digest(_ state: cb_state) -> Digest {
    Digest(
      state.h.0.byteSwapped, state.h.1.byteSwapped, state.h.2.byteSwapped,
      state.h.3.byteSwapped)
  }
}
