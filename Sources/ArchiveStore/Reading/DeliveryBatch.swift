internal import Codecs

/// Frames that a thread of a delivery decodes one behind the other into one buffer, so that what is
/// wanted of all of them is hashed together: few blobs leave lanes idle (`Blake2b.hash(_:of:)`).
struct DeliveryBatch: ~Copyable {
  /// Uses that keep all lanes busy, also where they differ in length.
  private static let enoughUses = 24
  /// Plain bytes from which on no frame is added: a batch has at most a frame more than that.
  private static let enoughBytes = 8 << 20

  private var decoder: FrameDecoder
  /// The decoded frames, used again for its room.
  private var bytes: [UInt8] = []
  private var frames: [(uses: Range<Int>, bytes: Range<Int>)] = []
  private var useCount = 0
  /// What is hashed, once however many uses it has, and its number by its place.
  private var runs: [Range<Int>] = []
  private var numbers: [Range<Int>: Int] = [:]

  init(_ storage: any Storage) throws(StoreError) { decoder = try FrameDecoder(storage) }

  /// How many frames it has.
  var count: Int { frames.count }

  /// Whether another frame would gain nothing.
  var isFull: Bool { useCount >= Self.enoughUses || bytes.count >= Self.enoughBytes }

  /// Forgets all frames.
  mutating func clear() {
    bytes.removeAll(keepingCapacity: true)
    frames.removeAll(keepingCapacity: true)
    runs.removeAll(keepingCapacity: true)
    numbers.removeAll(keepingCapacity: true)
    useCount = 0
  }

  /// Reads and decodes a frame; where that fails, the batch has it not.
  mutating func add(_ frame: DeliveryPlan.Frame) throws(StoreError) {
    let start = bytes.count
    try decoder.decode(frame.place, appendingTo: &bytes)
    frames.append((frame.uses, start..<bytes.count))
    useCount += frame.uses.count
  }

  /// Holds each blob against its hash and gives what is wanted of each frame, in the order in which
  /// the frames came.
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
        if let found = run, !isWhole(found, use.use.digest, digests) { run = nil }
        blobs.append(DeliveredBlob(use: use.use, range: run))
      }
      try body(blobs, bytes)
    }
  }

  /// Where a use's bytes lie; nothing where it asks for other bytes than the index has.
  private static func run(
    of use: (use: BlobUse, offset: Int, length: Int), in frame: Range<Int>
  ) -> Range<Int>? {
    guard use.length == Int(use.use.length), use.offset + use.length <= frame.count else {
      return nil
    }
    let start = frame.lowerBound + use.offset
    return start..<(start + use.length)
  }

  /// Whether a run has its hash. Before it is called damaged it is hashed by itself, too: so an error
  /// of the processor's wide units costs time, and no data.
  private func isWhole(_ run: Range<Int>, _ digest: Digest, _ digests: [Digest]) -> Bool {
    if let number = numbers[run], digests[number] == digest { return true }
    return Blake2b.hash(bytes.span.extracting(run)) == digest
  }
}
