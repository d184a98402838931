@testable import Codecs

extension Target {
  /// The hash functions.
  static let hashTargets = [Target(name: "hash-lanes", run: hashLanes)]

  /// Hashes ranges of an input in lanes. Each number of lanes that the processor supports must have
  /// the same result as libsodium.
  @Sendable private static func hashLanes(_ bytes: [UInt8]) {
    let runs = HashRuns.read(bytes)
    let wanted = runs.map { Blake2b.hash(bytes.span.extracting($0)) }
    for lanes in [4, 8] where lanes <= Blake2b.processorLanes {
      let digests = Blake2b.hashInLanes(runs, of: bytes.span, lanes: lanes)
      require(digests == wanted, "\(lanes) lanes return different digests")
      let sorted = Blake2b.hash(runs, of: bytes.span, lanes: lanes)
      require(sorted == wanted, "digests of \(lanes) lanes are out of order")
    }
    for lanes in [0, 4, 8] where lanes <= Blake2b.processorLanes { hashStreams(runs, bytes, lanes) }
  }

  /// Hashes the same ranges with streams: one for each range, in portions, and a few that receive
  /// several ranges each.
  private static func hashStreams(_ runs: [Range<Int>], _ bytes: [UInt8], _ lanes: Int) {
    let wanted = runs.map { Blake2b.hash(bytes.span.extracting($0)) }
    let digests = Blake2b.hashInStreams(runs, of: bytes.span, lanes: lanes)
    require(digests == wanted, "streams in \(lanes) lanes return different digests")
    let count = HashRuns.streams(bytes)
    var streams = (0..<count).map { _ in Blake2b.Stream(lanes: lanes) }
    var all = [[UInt8]](repeating: [], count: count)
    for start in stride(from: 0, to: runs.count, by: count) {
      let some = (start..<(start + count)).map { $0 < runs.count ? runs[$0] : 0..<0 }
      Blake2b.Stream.update(&streams, by: some, of: bytes.span)
      for (number, run) in some.enumerated() { all[number] += bytes[run] }
    }
    let right = streams.map { $0.finish() } == all.map { Blake2b.hash($0) }
    require(right, "\(count) streams of several runs in \(lanes) lanes return different digests")
  }
}

/// Ranges of an input, encoded in the input itself: their number in a byte, then the start and the
/// length of each range in two bytes, each modulo its maximum.
enum HashRuns {
  private static let most = 40

  static func read(_ bytes: [UInt8]) -> [Range<Int>] {
    guard let first = bytes.first else { return [] }
    let count = min(Int(first) % (most + 1), (bytes.count - 1) / 4)
    return (0..<count).map { number in
      let start = Int(word(bytes, 1 + 4 * number)) % (bytes.count + 1)
      let length = Int(word(bytes, 3 + 4 * number)) % (bytes.count - start + 1)
      return start..<(start + length)
    }
  }

  /// The number of streams, encoded in the excess of the first byte.
  static func streams(_ bytes: [UInt8]) -> Int { max(1, Int(bytes.first ?? 0) / (most + 1)) }

  private static func word(_ bytes: [UInt8], _ location: Int) -> UInt16 {
    LittleEndian.integer(bytes.span, at: location, as: UInt16.self)
  }

  // MARK: - Seeds

  /// Inputs that use all lanes, at block boundaries and next to them; a long range with short ones;
  /// equal ranges; and the same for several streams.
  static var seeds: [(target: String, bytes: [UInt8])] {
    let lengths = [
      [0, 1, 127, 128, 129, 255, 256, 257, 300, 1000], [2000] + (0..<20).map { 7 * $0 },
      [Int](repeating: 400, count: 40), [3], [],
    ]
    return lengths.map { ("hash-lanes", seed($0)) }
      + [seed(lengths[0] + lengths[0], streams: 4), seed(lengths[2], streams: 5)]
      .map { ("hash-lanes", $0) }
  }

  private static func seed(_ lengths: [Int], streams: Int = 0) -> [UInt8] {
    var bytes = [UInt8(lengths.count + (most + 1) * streams)]
    for (number, length) in lengths.enumerated() {
      LittleEndian.append(UInt16(number * 13), to: &bytes)
      LittleEndian.append(UInt16(length), to: &bytes)
    }
    let longest = lengths.max() ?? 0
    return bytes + (0..<(longest + 13 * lengths.count)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
  }
}
