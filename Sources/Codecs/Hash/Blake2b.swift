internal import CBlake2b
internal import CSodium

/// BLAKE2b with 32 bytes of output and no key (RFC 7693), as computed by `b2sum -l 256`.
///
/// The static functions hash bytes in memory. A value hashes incrementally and can be reused after
/// `finish()`.
///
/// libsodium is initialized, which selects its AVX2 code. With both of two cores hashing, that code
/// takes 1.44 ns a byte and the portable code 1.65 (2.0 for 5 kB). On an otherwise idle machine the
/// portable code is faster (0.76), but a backup keeps all cores busy.
@safe public struct Blake2b: ~Copyable {
  /// The libsodium state, aligned to 64 bytes.
  private let state: UnsafeMutableRawPointer

  /// Creates a hash of no bytes.
  public init() {
    _ = Sodium.isReady
    unsafe state = UnsafeMutableRawPointer.allocate(
      byteCount: crypto_generichash_statebytes(), alignment: 64)
    restart()
  }

  deinit { unsafe state.deallocate() }

  /// Returns a hash with the same state.
  func copy() -> Blake2b {
    let copy = Blake2b()
    unsafe copy.state.copyMemory(from: state, byteCount: crypto_generichash_statebytes())
    return copy
  }

  /// Adds bytes.
  public mutating func update(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      _ = unsafe crypto_generichash_update(
        OpaquePointer(state), buffer.baseAddress, UInt64(buffer.count))
    }
  }

  /// Adds bytes.
  public mutating func update(_ bytes: [UInt8]) { update(bytes.span) }

  /// Returns the digest of all bytes added. The next `update` begins a new hash.
  public mutating func finish() -> Digest {
    let digest = unsafe Self.digest { output in
      unsafe crypto_generichash_final(OpaquePointer(state), output, Digest.byteCount)
    }
    restart()
    return digest
  }

  private func restart() {
    _ = unsafe crypto_generichash_init(OpaquePointer(state), nil, 0, Digest.byteCount)
  }

  /// Returns the digest of bytes in memory.
  public static func hash(_ bytes: Span<UInt8>) -> Digest {
    _ = Sodium.isReady
    return unsafe bytes.withUnsafeBufferPointer { buffer in
      unsafe digest { output in
        unsafe crypto_generichash(
          output, Digest.byteCount, buffer.baseAddress, UInt64(buffer.count), nil, 0)
      }
    }
  }

  /// Returns the digest of bytes in memory.
  public static func hash(_ bytes: RawSpan) -> Digest {
    unsafe bytes.withUnsafeBytes { buffer in
      unsafe hash(Span(_unsafeElements: buffer.assumingMemoryBound(to: UInt8.self)))
    }
  }

  /// Returns the digest of bytes in memory.
  public static func hash(_ bytes: [UInt8]) -> Digest { hash(bytes.span) }

  /// Runs a call that fills 32 bytes. It fails only for an invalid length.
  private static func digest(
    _ fill: (UnsafeMutablePointer<UInt8>) -> Int32
  ) -> Digest {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    let status = unsafe withUnsafeMutableBytes(of: &words) { buffer in
      unsafe buffer.withMemoryRebound(to: UInt8.self) { bytes in
        if let output = bytes.baseAddress { unsafe fill(output) } else { -1 as Int32 }
      }
    }
    precondition(status == 0, "libsodium refused 32 bytes of output")
    return Digest(
      word0: UInt64(bigEndian: words.0), word1: UInt64(bigEndian: words.1),
      word2: UInt64(bigEndian: words.2), word3: UInt64(bigEndian: words.3))
  }
}

extension Blake2b {
  /// Returns the digests of several byte ranges, each equal to `hash(_:)` of the range.
  ///
  /// Hashing them together takes a quarter of the time with AVX-512 and half with AVX2, from eight
  /// or four ranges of similar length. Without either it takes the same time. Ranges may overlap;
  /// each must be within the bytes.
  public static func hash(_ runs: [Range<Int>], of bytes: Span<UInt8>) -> [Digest] {
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

extension Blake2b {
  /// An incremental hash of one of several streams that are hashed together: each in a lane of the
  /// processor's vector unit, or with libsodium one after the other if there are no trusted lanes.
  ///
  /// Four streams that advance equally take a third of the time of hashing them one by one. A
  /// single stream takes as long as a `Blake2b`.
  public struct Stream {
    /// The number of lanes for this stream and those hashed with it; 0 uses libsodium.
    private let lanes: Int
    private var state = cb_stream()
    private var alone: SodiumHash?

    /// Creates a hash of no bytes.
    public init() { self.init(lanes: Blake2b.lanes) }

    init(lanes: Int) {
      self.lanes = lanes
      if lanes == 0 { alone = SodiumHash(Blake2b()) } else { unsafe cb_begin(&state) }
    }

    /// Whether hashing streams together is faster than one by one.
    public static var gainsTogether: Bool { Blake2b.lanes > 0 }

    /// Adds one byte range, which may be empty, to each stream. Ranges may overlap; each must be
    /// within the bytes.
    public static func update(
      _ streams: inout [Stream], by runs: [Range<Int>], of bytes: Span<UInt8>
    ) {
      precondition(streams.count == runs.count, "one range for each stream")
      guard let lanes = streams.first?.lanes else { return }
      precondition(streams.allSatisfy { $0.lanes == lanes }, "streams with different lanes")
      if lanes > 0 { return updateInLanes(&streams, with: runs, of: bytes, lanes: lanes) }
      for (number, run) in runs.enumerated() {
        streams[number].updateAlone(bytes.extracting(run))
      }
    }

    /// Returns the digest of all bytes added so far.
    public func finish() -> Digest {
      if let alone { return alone.finish() }
      var last = state
      unsafe cb_finish(&last)
      return Blake2b.digest(last.state)
    }

    private static func updateInLanes(
      _ streams: inout [Stream], with runs: [Range<Int>], of bytes: Span<UInt8>, lanes: Int
    ) {
      for run in runs { precondition(run.lowerBound >= 0 && run.upperBound <= bytes.count) }
      var states = streams.map(\.state)
      unsafe bytes.withUnsafeBufferPointer { buffer in
        var portions = unsafe runs.map { run in
          unsafe cb_run(
            bytes: buffer.baseAddress.map { unsafe $0 + run.lowerBound }, length: run.count)
        }
        unsafe cb_update(Int32(lanes), &states, &portions, portions.count)
      }
      for (number, state) in states.enumerated() { streams[number].state = state }
    }

    private mutating func updateAlone(_ bytes: Span<UInt8>) {
      if !isKnownUniquelyReferenced(&alone) { alone = alone?.copy() }
      alone?.hash.update(bytes)
    }

    /// The libsodium hash of a stream. Changed only by the stream that owns it.
    private final class SodiumHash {
      var hash: Blake2b

      init(_ hash: consuming Blake2b) { self.hash = hash }

      func copy() -> SodiumHash { SodiumHash(hash.copy()) }

      func finish() -> Digest {
        var last = hash.copy()
        return last.finish()
      }
    }
  }
}

extension Blake2b {
  /// Returns the given number of lanes if they produce the same digests as libsodium, otherwise 0.
  ///
  /// The digests name blobs and packs, so a processor or a compiler with faulty vector instructions
  /// must not produce them. Each method is tested once in a process, which takes 20 µs. Failures
  /// are not reported: libsodium does the same work in more time.
  static func trusted(
    _ lanes: Int, _ methods: [([Range<Int>], Span<UInt8>, Int) -> [Digest]]
  ) -> Int {
    guard lanes > 0 else { return 0 }
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: ($0 &* $0 &* 31) >> 3) }
    // Uses all lanes, some more than once, with the first lane finishing last. Ranges begin at odd
    // offsets and end before, at and after the end of a block.
    let lengths = [800, 300, 257, 256, 255, 129, 128, 127, 64, 1, 0]
    let runs = lengths.enumerated().map { ($0 * 13)..<($0 * 13 + $1) }
    let wanted = runs.map { hash(bytes.span.extracting($0)) }
    for hashInLanes in methods where hashInLanes(runs, bytes.span, lanes) != wanted { return 0 }
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
