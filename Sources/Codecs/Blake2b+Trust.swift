extension Blake2b {
  /// The given number of lanes where they give libsodium's digests, else none.
  ///
  /// Blobs and packs are named by what the lanes give, so a processor or a compiler that gets wide
  /// instructions wrong must not come that far. Each way of hashing is asked once in a process, which
  /// takes 20 µs. Nobody is told: libsodium does the same work in more time.
  static func trusted(
    _ lanes: Int, _ ways: [([Range<Int>], Span<UInt8>, Int) -> [Digest]]
  ) -> Int {
    guard lanes > 0 else { return 0 }
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: ($0 &* $0 &* 31) >> 3) }
    // All lanes are in use, some more than once, and the first is the last at work. The runs begin at
    // odd places and end before, at and behind the end of a block.
    let lengths = [800, 300, 257, 256, 255, 129, 128, 127, 64, 1, 0]
    let runs = lengths.enumerated().map { ($0 * 13)..<($0 * 13 + $1) }
    let wanted = runs.map { hash(bytes.span.extracting($0)) }
    for hashInLanes in ways where hashInLanes(runs, bytes.span, lanes) != wanted { return 0 }
    return lanes
  }

  /// Hashes all runs by streams, each in three portions: some end within a block, some with one.
  static func hashInStreams(
    _ runs: [Range<Int>], _ bytes: Span<UInt8>, _ lanes: Int
  ) -> [Digest] {
    var streams = runs.map { _ in Stream(lanes: lanes) }
    for portion in 0..<3 {
      let portions = runs.map { run in
        let ends = [0, run.count / 2, run.count - run.count / 7, run.count]
        return (run.lowerBound + ends[portion])..<(run.lowerBound + ends[portion + 1])
      }
      Stream.update(&streams, by: portions, of: bytes)
    }
    return streams.map { $0.finish() }
  }
}
