extension Blake2b {
  /// Returns the given number of lanes if they produce the same digests as libsodium, otherwise 0.
  ///
  /// The digests name blobs and packs, so a processor or a compiler with faulty vector instructions
  /// must not produce them. Each method is tested once in a process, which takes 20 µs. Failures
  /// are not reported: libsodium does the same work in more time.
  static func trusted(
    _ lanes: Int, _ ways: [([Range<Int>], Span<UInt8>, Int) -> [Digest]]
  ) -> Int {
    guard lanes > 0 else { return 0 }
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: ($0 &* $0 &* 31) >> 3) }
    // Uses all lanes, some more than once, with the first lane finishing last. Ranges begin at odd
    // offsets and end before, at and after the end of a block.
    let lengths = [800, 300, 257, 256, 255, 129, 128, 127, 64, 1, 0]
    let runs = lengths.enumerated().map { ($0 * 13)..<($0 * 13 + $1) }
    let wanted = runs.map { hash(bytes.span.extracting($0)) }
    for hashInLanes in ways where hashInLanes(runs, bytes.span, lanes) != wanted { return 0 }
    return lanes
  }

  /// Hashes ranges with streams in three portions each: some end within a block, some at its end.
  static func hashInStreams(
    _ runs: [Range<Int>], of bytes: Span<UInt8>, lanes: Int
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
