internal import Codecs
internal import SystemIO

/// Reads one pack frame by frame, in order, and collects the findings.
struct PackReading: ~Copyable {
  /// A stored frame.
  struct Frame: Sendable {
    let number: Int
    let path: ObjectPath
    let location: FrameLocation
    var stored: [UInt8]
    /// The blobs expected in it.
    let records: ArraySlice<BlobRecord>
  }

  private let storage: RepositoryStorage
  private let pack: Digest
  private let path: ObjectPath
  /// The stored size in bytes.
  private let size: UInt64
  private let counters: ProgressCounters
  private var verdict: PackCheck.Verdict
  private var hash = Blake2b()
  /// The offset up to which the hash includes the pack's bytes; nil once some could not be read.
  private var hashed: UInt64? = 0
  /// The encrypted bytes of a frame; kept to reuse their memory.
  private var encrypted: [UInt8] = []
  private var isBegun = false
  /// Whether all frames were read.
  private var isRead = false
  private var frames: [FrameLocation] = []
  private var nextFrame = 0
  /// The records in the order of the frames.
  private var records: [BlobRecord] = []
  private var nextRecord = 0
  /// The faults of frames, which are checked in any order.
  private var faults: [(frame: Int, reason: String)] = []
  private var badFrames: [(frame: Int, reason: String)] = []
  /// The reason a thread could not work on the pack.
  var threadFailure: StoreError?
  /// The error of the first bytes that could not be read but may be intact.
  private(set) var readFailure: StoreError?
  /// Whether `takeFailure` has returned the failure of the store.
  private var isFailureTaken = false

  init(
    _ pack: Digest, size: UInt64, in storage: RepositoryStorage, _ counters: ProgressCounters
  ) {
    self.storage = storage
    self.size = size
    self.counters = counters
    self.pack = pack
    path = storage.layout.pack(pack)
    verdict = PackCheck.Verdict(pack: pack)
  }

  /// Reads the tables unless that was done before. The index has `expected` entries of the pack.
  mutating func begin(_ index: CheckedIndex, expected: Int) {
    guard !isBegun else { return }
    isBegun = true
    counters.begin(ByteString("\(path)"))
    (frames, records) = tables(index, expected: expected)
  }

  /// Returns the frames to read and the blobs expected in them, in the order of the frames: from
  /// the pack's own tables if the index agrees with them, otherwise from the index, which a restore
  /// uses.
  private mutating func tables(
    _ index: CheckedIndex, expected: Int
  ) -> (frames: [FrameLocation], records: [BlobRecord]) {
    let indexed = index.tables(of: verdict.pack).first
    var own: PackTables?
    do {
      own = try PackTables.load(verdict.pack, size: size, from: storage)
    } catch {
      counters.didFail()
      if recordFailure(error) { return ([], []) }
      verdict.faults.append(error.reason)
    }
    if let own {
      let isAgreed = indexed.map { $0.frames == own.frames } ?? true
      if isAgreed, index.confirmed(by: own.records, of: verdict.pack) == expected {
        return (own.frames, own.records.sorted { $0.frame < $1.frame })
      }
      verdict.faults.append(
        "the index and the pack's own tables disagree about its blobs or frames")
    }
    let records = Set(index.records(of: verdict.pack)).sorted { $0.frame < $1.frame }
    return (indexed?.frames ?? [], records)
  }

  /// Returns the next frame, whose stored bytes reuse the memory of `room`, or nil if all were
  /// read. A frame that cannot be read is reported and skipped.
  mutating func next(in room: inout [UInt8]) -> Frame? {
    while nextFrame < frames.count {
      let (number, location) = (nextFrame, frames[nextFrame])
      nextFrame += 1
      let first = nextRecord
      while nextRecord < records.count, Int(records[nextRecord].frame) == number { nextRecord += 1 }
      let held = records[first..<nextRecord]
      do throws(StoreError) {
        var stored: [UInt8] = []
        swap(&stored, &room)
        try read(location, into: &stored)
        return Frame(number: number, path: path, location: location, stored: stored, records: held)
      } catch {
        if recordFailure(error) {
          end()
        } else {
          add(PackCheck.FrameCheck.Finding(number: number, fault: error, lost: held))
        }
      }
    }
    if !isRead { counters.didHandle(files: 1) }
    isRead = true
    // The frames have their own slices; a check of many packs must not keep the tables of all of
    // them.
    (records, nextRecord) = (Array(records[nextRecord...]), 0)
    return nil
  }

  /// Records the error of a read, and returns whether the rest of the pack is to stay unread:
  /// access was denied or the store failed, so each further read would fail or wait as well. The
  /// bytes may be intact.
  private mutating func recordFailure(_ error: StoreError) -> Bool {
    if error.kind != .damaged || error.isRefused { readFailure = readFailure ?? error }
    guard error.isRefused || error.isStoreFailure else { return false }
    verdict.unread = verdict.unread ?? error
    return true
  }

  /// Returns the error if the store failed to send the pack; once.
  mutating func takeFailure() -> StoreError? {
    guard !isFailureTaken, let error = verdict.unread, error.isStoreFailure else { return nil }
    isFailureTaken = true
    return error
  }

  /// Leaves the other frames unread.
  private mutating func end() {
    counters.didFail()
    (nextFrame, nextRecord) = (frames.count, records.count)
  }

  private mutating func read(
    _ frame: FrameLocation, into stored: inout [UInt8]
  ) throws(StoreError) {
    let content = frame.offset..<(frame.offset + UInt64(frame.stored))
    let encryption = try storage.encryption(ofPack: pack, stored: size)
    let range = try encryption?.storedRange(of: content) ?? content
    do throws(StoreError) {
      try hash(upTo: range.lowerBound)
      try storage.load(path, offset: range.lowerBound, count: range.count, into: &stored)
      hash(stored, from: range.lowerBound)
    } catch {
      hashed = nil
      throw error
    }
    guard let encryption else { return }
    swap(&stored, &encrypted)
    stored.removeAll(keepingCapacity: true)
    try encryption.decrypt(content, stored: encrypted, appendingTo: &stored)
  }

  /// Records the findings of a frame.
  mutating func add(_ finding: PackCheck.FrameCheck.Finding) {
    verdict.blobs += finding.blobs
    markLost(finding.lost)
    markLost(finding.wrong[...])
    if finding.fault != nil || !finding.wrong.isEmpty { counters.didFail() }
    if let fault = finding.fault { badFrames.append((finding.number, fault.reason)) }
    for record in finding.wrong {
      faults.append(
        (finding.number, ": the data at the location of \(record.id) does not match its hash"))
    }
  }

  private mutating func markLost(_ records: ArraySlice<BlobRecord>) {
    verdict.lost.formUnion(records.map(\.id))
  }

  /// Hashes stored bytes from an offset, except those that were hashed before: two frames may share
  /// a piece of an encrypted pack.
  private mutating func hash(_ bytes: [UInt8], from offset: UInt64) {
    let before = Int(min(UInt64(bytes.count), (hashed ?? offset) - offset))
    hash.update(bytes.span.extracting(before..<bytes.count))
    let count = UInt64(bytes.count - before)
    hashed? += count
    verdict.bytes += count
    counters.didHandle(bytes: count)
  }

  /// Reads and hashes the bytes up to an offset that are in no frame.
  private mutating func hash(upTo end: UInt64) throws(StoreError) {
    while let offset = hashed, offset < end {
      let count = Int(min(end - offset, 1 << 20))
      hash(try storage.load(path, offset: offset, count: count), from: offset)
    }
  }

  /// The maximum number of bad frames that the verdict reports individually.
  private static let maximumReportedFrames = 3

  /// Reads the bytes after the frames, verifies the pack against its id, and returns the verdict.
  mutating func finish() -> PackCheck.Verdict {
    guard isBegun, nextFrame == frames.count else {
      verdict.faults.append(threadFailure?.reason ?? "it was not read")
      verdict.isComplete = false
      return verdict
    }
    markLost(records[nextRecord...])
    reportFrames()
    do {
      if verdict.unread == nil { try hash(upTo: size) }
    } catch {
      hashed = nil
      if !recordFailure(error) { verdict.faults.append(error.reason) }
    }
    if readFailure != nil { verdict.isComplete = false }
    if verdict.unread == nil, hashed == size, hash.finish() != verdict.pack {
      verdict.faults.append("its content does not match its id")
    }
    return verdict
  }

  private mutating func reportFrames() {
    badFrames.sort { $0.frame < $1.frame }
    faults += badFrames.prefix(Self.maximumReportedFrames).map { ($0.frame, ": \($0.reason)") }
    faults.sort { $0.frame < $1.frame }
    verdict.faults += faults.map { "frame \($0.frame)\($0.reason)" }
    if badFrames.count > Self.maximumReportedFrames {
      verdict.faults.append(
        "\(badFrames.count - Self.maximumReportedFrames) more frames cannot be decoded")
    }
  }
}
