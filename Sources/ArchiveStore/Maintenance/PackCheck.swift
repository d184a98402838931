internal import Codecs
internal import Synchronization
internal import SystemIO

/// Checks one pack against its id, its own tables, the hashes of its blobs and the index.
///
/// Several threads may work on it at once: each takes the next frame. Only reading the file and
/// hashing the complete pack are sequential.
final class PackCheck: Sendable {
  /// The result of checking a pack.
  struct Verdict: Sendable {
    let pack: Digest
    /// The faults, one phrase each.
    var faults: [String] = []
    /// Blobs that the index or the pack itself lists and that cannot be read from it.
    var lost: Set<BlobID> = []
    var bytes: UInt64 = 0
    var blobs = 0
    /// Whether it was checked completely: every byte was read or is known to be lost.
    var isComplete = true
    /// The error if it could not be read completely because access was denied or the store failed.
    /// Nothing counts as lost because of that.
    var unread: StoreError?

    /// Whether damage was found by a complete check.
    var isFaulty: Bool { !faults.isEmpty && isComplete && unread == nil }
  }

  private let isClaimed = Atomic<Bool>(false)
  private let reading: Mutex<PackReading>
  private let index: CheckedIndex
  /// The number of entries that the index has for it.
  private let expected: Int
  private let outage: Outage
  private let isStopping: @Sendable () -> Bool

  init(
    _ pack: Digest, size: UInt64, _ index: CheckedIndex, expected: Int,
    in storage: RepositoryStorage, outage: Outage,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.index = index
    self.expected = expected
    self.outage = outage
    self.isStopping = { outage.error != nil || isStopping() }
    reading = Mutex(PackReading(pack, size: size, in: storage, counters))
  }

  /// Whether the caller is the first to take it.
  func claim() -> Bool { !isClaimed.exchange(true, ordering: .relaxed) }

  /// Checks the frames that no other thread took, until the check is interrupted.
  func work(_ check: inout FrameCheck) {
    if isStopping() { return }
    reading.withLock { $0.begin(index, expected: expected) }
    var room: [UInt8] = []
    while !isStopping(), var frame = reading.withLock({ $0.next(in: &room) }) {
      let found = check.check(frame)
      swap(&room, &frame.stored)
      reading.withLock { $0.add(found) }
    }
    if let error = reading.withLock({ $0.takeFailure() }) { outage.ask(after: error) }
  }

  /// Returns the result, after all threads have finished.
  func finish() -> Verdict { reading.withLock { $0.finish() } }

  /// Records that a thread could not start. If no other thread reads the pack, it stays unread.
  func fail(_ error: StoreError) { reading.withLock { $0.threadFailure = error } }
}

extension PackCheck {
  /// Ends a check of several packs whose host no longer answers: the wait for each further pack
  /// would be as long as for the first one.
  final class Outage: Sendable {
    private let storage: RepositoryStorage
    private let found = Mutex<StoreError?>(nil)

    init(_ storage: RepositoryStorage) { self.storage = storage }

    /// The error of the pack after which the host did not answer; nil if it answers.
    var error: StoreError? { found.withLock { $0 } }

    /// Requests another object from the host after it failed to send a pack.
    func ask(after failure: StoreError) {
      guard error == nil else { return }
      do throws(StoreError) { try storage.requireAnswer(after: failure) } catch {
        found.withLock { $0 = $0 ?? failure }
      }
    }
  }

  /// The state that one thread needs to check frames: a decompressor and one decoded frame.
  struct FrameCheck: ~Copyable {
    private var decompressor: ZstdDecompressor
    private var plain: [UInt8] = []

    /// The result of checking one frame.
    struct Finding {
      let number: Int
      var fault: StoreError?
      /// Blobs whose location holds data that does not match their hash.
      var wrong: [BlobRecord] = []
      var lost: ArraySlice<BlobRecord> = []
      var blobs = 0
    }

    init() throws(StoreError) {
      decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
        try ZstdDecompressor()
      }
    }

    /// Decodes a frame and hashes its blobs.
    mutating func check(_ frame: PackReading.Frame) -> Finding {
      var finding = Finding(number: frame.number)
      plain.removeAll(keepingCapacity: true)
      do {
        try decompressor.decompress(
          frame.stored.span, limit: Int(frame.location.plain), appendingTo: &plain)
      } catch {
        finding.fault = .codec(error, "\(frame.path)")
        finding.lost = lost(of: frame)
        return finding
      }
      finding.wrong = mismatches(of: frame)
      finding.blobs = frame.records.count
      return finding
    }

    /// Returns the blobs that cannot be read from a damaged frame. A restore accepts blobs that
    /// match their hashes, whatever the frame's checksum.
    private mutating func lost(of frame: PackReading.Frame) -> ArraySlice<BlobRecord> {
      do {
        var reader = try ZstdDecompressor(ignoresChecksum: true)
        try reader.decompress(
          frame.stored.span, limit: Int(frame.location.plain), appendingTo: &plain)
      } catch { return frame.records }
      return mismatches(of: frame)[...]
    }

    /// Returns the blobs that do not match their hashes. They are hashed in parallel lanes. A
    /// mismatch, and one sample of each frame, is hashed again singly, as a restore does
    /// (`BlobDelivery.Batch`), because the ids may have been computed with the same lanes.
    private func mismatches(of frame: PackReading.Frame) -> [BlobRecord] {
      let bytes = plain.span
      let inside = frame.records.filter { $0.fits(in: UInt32(bytes.count)) }
      let digests = Blake2b.hash(inside.map(\.range), of: bytes)
      let wrong = inside.indices.filter { number in
        let isSample = number == frame.number % inside.count
        guard isSample || digests[number] != inside[number].digest else { return false }
        return Blake2b.hash(bytes.extracting(inside[number].range)) != inside[number].digest
      }
      let outside = frame.records.filter { !$0.fits(in: UInt32(bytes.count)) }
      return outside + wrong.map { inside[$0] }
    }
  }

  /// Reads complete packs on several threads. Each thread takes the largest remaining pack. When
  /// none is left, it helps with the packs still being read, so that all threads end at the same
  /// time.
  ///
  /// Packs on another host with faults are read a second time: the bytes may have been changed or
  /// cut off in transit.
  struct Group {
    private let packs: [PackCheck]
    private let outage: Outage
    private let workers: Workers?
    /// Starts to read packs again, unless they were or are on this host.
    private let restart: (Set<Digest>) throws(StoreError) -> Group?

    /// Starts to read.
    ///
    /// - Parameter isLast: whether packs with faults are not read again.
    init(
      of packs: [Digest: UInt64], _ index: CheckedIndex, _ check: RepositoryCheck,
      isLast: Bool = false
    ) throws(StoreError) {
      restart = { (faulty) throws(StoreError) in
        let storage = check.repository.storage
        guard !isLast, storage.isOnAnotherHost else { return nil }
        for pack in faulty { storage.forgetReads(of: storage.layout.pack(pack)) }
        let again = RepositoryCheck(
          check.repository, workers: check.workers, isStopping: check.isStopping)
        return try Group(of: packs.filter { faulty.contains($0.key) }, index, again, isLast: true)
      }
      let chosen = packs.sorted { ($1.value, $1.key) < ($0.value, $0.key) }
      let counts = chosen.isEmpty ? [:] : index.counts()
      let outage = Outage(check.repository.storage)
      let packs = chosen.map { pack, size in
        PackCheck(
          pack, size: size, index, expected: counts[pack] ?? 0, in: check.repository.storage,
          outage: outage, counters: check.counters, isStopping: check.isStopping)
      }
      (self.packs, self.outage) = (packs, outage)
      check.counters.expect(files: chosen.count, bytes: chosen.map(\.value).clampedSum)
      guard !packs.isEmpty else {
        workers = nil
        return
      }
      let threads = try StoreError.wrap { () throws(SystemError) in
        try Workers(count: check.workers, capacity: check.workers, name: "check")
      }
      for _ in 0..<check.workers { threads.submit { Self.work(packs) } }
      workers = threads
    }

    /// Waits for the threads and returns the verdicts, ordered by pack id.
    ///
    /// - Throws: the error of a pack after which the host did not answer.
    func finish() throws(StoreError) -> [Verdict] {
      workers?.finish()
      if let error = outage.error { throw error }
      var verdicts = packs.map { $0.finish() }
      let faulty = Set(verdicts.lazy.filter(\.isFaulty).map(\.pack))
      if !faulty.isEmpty, let again = try restart(faulty) {
        // One reading alone never proves damage: a pack that cannot be read again is unread.
        verdicts = try verdicts.filter { !faulty.contains($0.pack) } + again.finish()
      }
      return verdicts.sorted { $0.pack < $1.pack }
    }

    private static func work(_ packs: [PackCheck]) {
      do throws(StoreError) {
        var check = try FrameCheck()
        for pack in packs where pack.claim() { pack.work(&check) }
        for pack in packs { pack.work(&check) }
      } catch {
        for pack in packs { pack.fail(error) }
      }
    }

    /// Returns the packs that a check reads; for a fraction, random ones.
    static func chosen(
      of all: [Digest: UInt64], by reading: RepositoryCheck.Reading
    ) -> [Digest: UInt64] {
      switch reading {
      case .trees: return [:]
      case .everything: return all
      case .group(let group, let count):
        return all.filter { Int($0.key.prefix) % count == group - 1 }
      case .fraction(let fraction):
        let wanted = fraction * Double(all.values.clampedSum)
        var sum = 0.0
        let packs = all.shuffled().prefix { pack in
          defer { sum += Double(pack.value) }
          return sum < wanted
        }
        return Dictionary(uniqueKeysWithValues: packs.map { ($0.key, $0.value) })
      }
    }
  }
}
