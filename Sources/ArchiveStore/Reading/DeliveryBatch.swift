internal import Codecs

/// Frames that a thread of a delivery decodes into one buffer, so that their wanted blobs are
/// hashed together. A few blobs would leave lanes idle (`Blake2b.hash(_:of:)`).
struct DeliveryBatch: ~Copyable {
  /// The number of uses that keeps all lanes busy, even if they differ in length.
  private static let enoughUses = 24
  /// The decoded size from which no frame is added. A batch exceeds it by less than one frame.
  private static let enoughBytes = 8 << 20

  private var decoder: FrameDecoder
  /// The decoded frames, reused for their capacity.
  private var bytes: [UInt8] = []
  private var frames: [(uses: Range<Int>, bytes: Range<Int>)] = []
  private var useCount = 0
  /// The ranges to hash, once each regardless of their uses, and the index of each range.
  private var runs: [Range<Int>] = []
  private var numbers: [Range<Int>: Int] = [:]

  init(_ storage: any Storage) throws(StoreError) { decoder = try FrameDecoder(storage) }

  /// The number of frames.
  var count: Int { frames.count }

  /// Whether another frame would not help.
  var isFull: Bool { useCount >= Self.enoughUses || bytes.count >= Self.enoughBytes }

  /// Removes all frames.
  mutating func clear() {
    bytes.removeAll(keepingCapacity: true)
    frames.removeAll(keepingCapacity: true)
    runs.removeAll(keepingCapacity: true)
    numbers.removeAll(keepingCapacity: true)
    useCount = 0
  }

  /// Reads and decodes a frame. If that fails, the batch is unchanged.
  mutating func add(_ frame: DeliveryPlan.Frame) throws(StoreError) {
    let start = bytes.count
    try decoder.decode(frame.place, appendingTo: &bytes)
    frames.append((frame.uses, start..<bytes.count))
    useCount += frame.uses.count
  }

  /// Verifies each blob against its hash and passes the wanted blobs of each frame to `body`, in
  /// the order in which the frames were added.
  mutating func verify(
    _ plan: DeliveryPlan, _ body: ([DeliveredBlob], [UInt8]) throws -> Void
  ) throws {
    for frame in frames {
      for use in plan.uses[frame.uses] {
        guard let run = Self.run(of: use, in: frame.bytes), numbers[run] == nil else { continue }
        numbers[run] = runs.count
        runs.append(run)
      }
    }
    let digests = Blake2b.hash(runs, of: bytes.span)
    for frame in frames {
      var blobs: [DeliveredBlob] = []
      blobs.reserveCapacity(frame.uses.count)
      for use in plan.uses[frame.uses] {
        var run = Self.run(of: use, in: frame.bytes)
        if let found = run, !isWhole(found, matching: use.use.digest, among: digests) { run = nil }
        blobs.append(DeliveredBlob(use: use.use, range: run))
      }
      try body(blobs, bytes)
    }
  }

  /// Returns the range of a use's bytes, or nil if its length differs from the index.
  private static func run(
    of use: (use: BlobUse, offset: Int, length: Int), in frame: Range<Int>
  ) -> Range<Int>? {
    guard use.length == Int(use.use.length), use.offset + use.length <= frame.count else {
      return nil
    }
    let start = frame.lowerBound + use.offset
    return start..<(start + use.length)
  }

  /// Whether a range matches its hash. Before it is reported as damaged it is hashed again singly,
  /// so an error in the processor's vector unit costs time but no data.
  private func isWhole(
    _ run: Range<Int>, matching digest: Digest, among digests: [Digest]
  ) -> Bool {
    if let number = numbers[run], digests[number] == digest { return true }
    return Blake2b.hash(bytes.span.extracting(run)) == digest
  }
}
