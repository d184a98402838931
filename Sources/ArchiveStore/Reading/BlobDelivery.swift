public import Codecs
internal import Synchronization
internal import SystemIO

/// A delivery that several threads work on. Each takes the next frames until none is left.
public final class BlobDelivery: Sendable {
  private let plan: Plan
  private let storage: RepositoryStorage
  private let isStopping: @Sendable () -> Bool
  /// The maximum number of frames that a thread takes at once; small if there are few frames.
  private let share: Int
  private let next = Atomic<Int>(0)
  private let failure = Mutex<(any Error)?>(nil)
  private let hasFailed = Atomic<Bool>(false)

  init(
    _ plan: Plan, from storage: RepositoryStorage, threads: Int,
    isStopping: @escaping @Sendable () -> Bool
  ) {
    share = max(1, plan.frames.count / (4 * max(1, threads)))
    self.plan = plan
    self.storage = storage
    self.isStopping = isStopping
  }

  /// Delivers on `count` threads, or on this one if that is enough. Throws the first failure.
  func run<Sink: BlobDelivery.Sink>(
    threads count: Int, _ makeSink: @escaping @Sendable () throws -> Sink
  ) throws {
    if count > 1 {
      let workers = try StoreError.wrap { () throws(SystemError) in
        try Workers(count: count, capacity: count, name: "read")
      }
      for _ in 0..<count { workers.submit { self.work(makeSink) } }
      workers.finish()
    } else {
      work(makeSink)
    }
    if let failure = failure.withLock({ $0 }) { throw failure }
  }

  /// Works until no frame is left or a thread has failed.
  private func work<Sink: BlobDelivery.Sink>(_ makeSink: @Sendable () throws -> Sink) {
    do {
      let sink = try makeSink()
      var batch = try Batch(storage)
      while try gather(&batch, sink) {
        try batch.verify(plan) { try sink.receive($0, of: $1) }
        batch.clear()
      }
    } catch {
      failure.withLock { first in first = first ?? error }
      hasFailed.store(true, ordering: .relaxed)
    }
  }

  /// Fills a batch with the next frames. Returns false if there was none, or if the delivery has to
  /// end. Frames that cannot be read are reported to the sink.
  private func gather<Sink: BlobDelivery.Sink>(
    _ batch: inout Batch, _ sink: Sink
  ) throws -> Bool {
    while batch.count < share, !batch.isFull {
      if hasFailed.load(ordering: .relaxed) || isStopping() { return false }
      let number = next.add(1, ordering: .relaxed).oldValue
      guard number < plan.frames.count else { break }
      do throws(StoreError) {
        try batch.add(plan.frames[number])
      } catch {
        // Another pack may have an intact copy, even if this user may not read this one.
        guard error.kind == .damaged || error.isRefused else { throw error }
        try sink.reportMissing(plan.uses[plan.frames[number].uses].map(\.use), error)
      }
    }
    return batch.count > 0
  }
}

extension BlobDelivery {
  /// A wanted blob and its use: a range of one of the caller's items, such as a file.
  public struct Use: Hashable, Sendable {
    public let digest: Digest
    /// The expected length of the blob in bytes.
    public let length: UInt32
    /// The caller's item that needs the blob.
    public let item: UInt32
    /// The offset in the item.
    public let offset: UInt64

    /// Creates a use.
    public init(digest: Digest, length: UInt32, item: UInt32, offset: UInt64) {
      self.digest = digest
      self.length = length
      self.item = item
      self.offset = offset
    }
  }

  /// A use whose frame was read.
  public struct Blob: Sendable {
    public let use: Use
    /// The range of the blob in the delivered bytes, or nil if they do not match the blob.
    public let range: Range<Int>?

    /// Creates a delivered blob.
    public init(use: Use, range: Range<Int>?) {
      self.use = use
      self.range = range
    }
  }

  /// A receiver of blobs, frame by frame. Each thread has its own.
  public protocol Sink: SendableMetatype {
    /// Receives the wanted blobs of a decoded frame, sorted by item and then by offset. The bytes
    /// may include other frames and are valid only during the call. An error ends the delivery.
    func receive(_ blobs: [Blob], of frame: [UInt8]) throws

    /// Receives the uses whose frame cannot be read, or that no index names.
    func reportMissing(_ uses: [Use], _ error: StoreError) throws
  }

  /// Uses in pack order. Packs are ordered by their first use, which keeps blobs that are close in
  /// the tree close in time, then by frame and item.
  struct Plan: Sendable {
    /// The wanted blobs of one frame.
    struct Frame: Sendable {
      let location: IndexSet.BlobLocation
      let uses: Range<Int>
    }

    private(set) var frames: [Frame] = []
    /// The uses with their offset in the frame and their length.
    private(set) var uses: [(use: Use, offset: Int, length: Int)] = []
    /// The uses that no index names.
    private(set) var missing: [Use] = []

    /// A use and its location as numbers, so that sorting touches only 16 bytes of each.
    private struct Key {
      /// The rank of the pack in 32 bits, and the frame in 16.
      let frame: UInt64
      let number: UInt32
    }

    /// Plans the uses of blobs of a kind.
    init(_ wanted: [Use], of kind: BlobKind = .data, _ index: IndexSet) {
      var ranks: [Digest: UInt64] = [:]
      var keys: [Key] = []
      var locations: [IndexSet.BlobLocation?] = []
      keys.reserveCapacity(wanted.count)
      locations.reserveCapacity(wanted.count)
      for (number, use) in wanted.enumerated() {
        let location = index.find(BlobID(kind: kind, digest: use.digest))
        locations.append(location)
        guard let location else {
          missing.append(use)
          continue
        }
        let next = UInt64(ranks.count)
        let rank = ranks[location.pack, default: next]
        if rank == next { ranks[location.pack] = next }
        keys.append(Key(frame: rank << 16 | UInt64(location.frameNumber), number: UInt32(number)))
      }
      // Within a frame, in the order of the request: by item, then by offset.
      keys.sort { ($0.frame, $0.number) < ($1.frame, $1.number) }
      gather(keys, of: wanted, at: locations)
    }

    private mutating func gather(
      _ keys: [Key], of wanted: [Use], at locations: [IndexSet.BlobLocation?]
    ) {
      uses.reserveCapacity(keys.count)
      var start = 0
      for (position, key) in keys.enumerated() {
        guard let location = locations[Int(key.number)] else { continue }
        uses.append((wanted[Int(key.number)], location.offset, location.length))
        let isLast = position + 1 == keys.count || keys[position + 1].frame != key.frame
        if isLast {
          frames.append(Frame(location: location, uses: start..<(position + 1)))
          start = position + 1
        }
      }
    }
  }

  /// Frames that a thread of a delivery decodes into one buffer, so that their wanted blobs are
  /// hashed together. A few blobs would leave lanes idle (`Blake2b.hash(_:of:)`).
  struct Batch: ~Copyable {
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

    init(_ storage: RepositoryStorage) throws(StoreError) { decoder = try FrameDecoder(storage) }

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
    mutating func add(_ frame: Plan.Frame) throws(StoreError) {
      let start = bytes.count
      try decoder.decode(frame.location, appendingTo: &bytes)
      frames.append((frame.uses, start..<bytes.count))
      useCount += frame.uses.count
    }

    /// Verifies each blob against its hash and passes the wanted blobs of each frame to `body`, in
    /// the order in which the frames were added.
    mutating func verify(
      _ plan: Plan, _ body: ([Blob], [UInt8]) throws -> Void
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
        var blobs: [Blob] = []
        blobs.reserveCapacity(frame.uses.count)
        for use in plan.uses[frame.uses] {
          var run = Self.run(of: use, in: frame.bytes)
          if let found = run, !isWhole(found, matching: use.use.digest, among: digests) {
            run = nil
          }
          blobs.append(Blob(use: use.use, range: run))
        }
        try body(blobs, bytes)
      }
    }

    /// Returns the range of a use's bytes, or nil if its length differs from the index.
    private static func run(
      of use: (use: Use, offset: Int, length: Int), in frame: Range<Int>
    ) -> Range<Int>? {
      guard use.length == Int(use.use.length), use.offset + use.length <= frame.count else {
        return nil
      }
      let start = frame.lowerBound + use.offset
      return start..<(start + use.length)
    }

    /// Whether a range matches its hash. Before it is reported as damaged it is hashed again
    /// singly, so an error in the processor's vector unit costs time but no data.
    private func isWhole(
      _ run: Range<Int>, matching digest: Digest, among digests: [Digest]
    ) -> Bool {
      if let number = numbers[run], digests[number] == digest { return true }
      return Blake2b.hash(bytes.span.extracting(run)) == digest
    }
  }
}
