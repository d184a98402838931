internal import Codecs
internal import Synchronization
internal import SystemIO

/// Holds one pack against its id, its own tables, its blobs' hashes and what the index says of it.
///
/// Any number of threads may work on it at once: each takes the next frame for itself. Only reading
/// it and the hash of the whole pack go on one at a time.
final class PackCheck: Sendable {
  /// What was found in a pack.
  struct Verdict: Sendable {
    let pack: Digest
    /// What is wrong, a sentence each.
    var faults: [String] = []
    /// Blobs that the index or the pack itself promises and that cannot be had from it.
    var lost: Set<BlobID> = []
    var bytes: UInt64 = 0
    var blobs = 0
    /// Whether it was looked at to its end, and all of its bytes could be read or are known to be lost.
    var isComplete = true
  }

  private let isTaken = Atomic<Bool>(false)
  private let reading: Mutex<PackReading>
  private let index: CheckedIndex
  /// How many entries the index has of it.
  private let expected: Int
  private let isStopping: @Sendable () -> Bool

  init(
    _ pack: Digest, size: UInt64, _ index: CheckedIndex, expected: Int, in storage: any Storage,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.index = index
    self.expected = expected
    self.isStopping = isStopping
    reading = Mutex(PackReading(pack, size: size, in: storage, counters))
  }

  /// Whether the caller is the first to take it.
  func take() -> Bool { !isTaken.exchange(true, ordering: .relaxed) }

  /// Works on the frames that no other thread took, unless the work is to end early.
  func work(_ check: inout FrameCheck) {
    if isStopping() { return }
    reading.withLock { $0.begin(index, expected: expected) }
    var room: [UInt8] = []
    while !isStopping(), var frame = reading.withLock({ $0.next(in: &room) }) {
      let found = check.check(frame)
      swap(&room, &frame.stored)
      reading.withLock { $0.take(found) }
    }
  }

  /// What was found, when no thread works on it any more.
  func finish() -> Verdict { reading.withLock { $0.finish() } }

  /// Says that a thread could not begin; without another one the pack stays unread.
  func fail(_ error: StoreError) { reading.withLock { $0.failure = error } }
}

/// What one thread needs to look at frames: one of them, decoded.
struct FrameCheck: ~Copyable {
  private var decompressor: ZstdDecompressor
  private var plain: [UInt8] = []

  /// What was found in one frame.
  struct Finding {
    let number: Int
    var fault: StoreError?
    /// Blobs at whose place are other bytes.
    var wrong: [BlobRecord] = []
    var lost: ArraySlice<BlobRecord> = []
    var blobs = 0
  }

  init() throws(StoreError) {
    decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdDecompressor()
    }
  }

  /// Decodes a frame, and hashes the blobs in it.
  mutating func check(_ frame: PackReading.Frame) -> Finding {
    var finding = Finding(number: frame.number)
    plain.removeAll(keepingCapacity: true)
    do {
      try decompressor.decompress(
        frame.stored.span, limit: Int(frame.place.plain), appendingTo: &plain)
    } catch {
      finding.fault = .codec(error, "\(frame.path)")
      finding.lost = lost(of: frame)
      return finding
    }
    finding.wrong = missed(of: frame)
    finding.blobs = frame.records.count
    return finding
  }

  /// What cannot be had from a frame that is damaged: a restore takes what has its hash, whatever the
  /// frame's checksum says.
  private mutating func lost(of frame: PackReading.Frame) -> ArraySlice<BlobRecord> {
    do {
      var reader = try ZstdDecompressor(passesChecksumOver: true)
      try reader.decompress(
        frame.stored.span, limit: Int(frame.place.plain), appendingTo: &plain)
    } catch { return frame.records }
    return missed(of: frame)[...]
  }

  /// The blobs that are not at their places, hashed together. By itself is hashed, too, what would be
  /// called missed, as whoever restores does (`DeliveryBatch`), and one of each frame in any case: the
  /// names may have been made by the same lanes.
  private func missed(of frame: PackReading.Frame) -> [BlobRecord] {
    let bytes = plain.span
    let inside = frame.records.filter { $0.fits(in: UInt32(bytes.count)) }
    let digests = Blake2b.hash(inside.map(\.place), of: bytes)
    let wrong = inside.indices.filter { number in
      let isSample = number == frame.number % inside.count
      guard isSample || digests[number] != inside[number].digest else { return false }
      return Blake2b.hash(bytes.extracting(inside[number].place)) != inside[number].digest
    }
    let outside = frame.records.filter { !$0.fits(in: UInt32(bytes.count)) }
    return outside + wrong.map { inside[$0] }
  }
}
