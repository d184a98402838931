internal import Codecs
internal import SystemIO

/// Reads one pack frame by frame, in their order, and gathers what is found in them.
struct PackReading: ~Copyable {
  /// A frame as it is stored.
  struct Frame: Sendable {
    let number: Int
    let path: ObjectPath
    let place: FrameLocation
    var stored: [UInt8]
    /// The blobs that are to be in it.
    let records: ArraySlice<BlobRecord>
  }

  private let storage: any Storage
  private let path: ObjectPath
  private let size: UInt64
  private let counters: ProgressCounters
  private var verdict: PackCheck.Verdict
  private var hash = Blake2b()
  /// Up to where the pack's bytes are in the hash; nothing once some could not be read.
  private var hashed: UInt64? = 0
  private var isBegun = false
  /// Whether all frames were read.
  private var isRead = false
  private var frames: [FrameLocation] = []
  private var nextFrame = 0
  /// In the order of the frames.
  private var records: [BlobRecord] = []
  private var nextRecord = 0
  /// What is wrong with frames, which are looked at in any order.
  private var faults: [(frame: Int, reason: String)] = []
  private var badFrames: [(frame: Int, reason: String)] = []
  /// Why a thread could not work on it.
  var failure: StoreError?
  /// Why bytes could not be had though they may be there: this is no damage.
  private(set) var obstacle: StoreError?

  init(
    _ pack: Digest, size: UInt64, in storage: any Storage, _ counters: ProgressCounters
  ) {
    self.storage = storage
    self.size = size
    self.counters = counters
    path = RepositoryLayout.pack(pack)
    verdict = PackCheck.Verdict(pack: pack)
  }

  /// Reads the tables, when nobody did. The index has `expected` entries of the pack.
  mutating func begin(_ index: CheckedIndex, expected: Int) {
    guard !isBegun else { return }
    isBegun = true
    counters.begin(ByteString("\(path)"))
    (frames, records) = tables(index, expected: expected)
  }

  /// The frames to read and the blobs to find in them, in the order of the frames: by the pack's
  /// own tables if the index agrees with them, else by the index, which is what a restore goes by.
  private mutating func tables(
    _ index: CheckedIndex, expected: Int
  ) -> (frames: [FrameLocation], records: [BlobRecord]) {
    let indexed = index.tables(of: verdict.pack).first
    var own: PackTables?
    do {
      own = try PackTables.load(verdict.pack, size: size, from: storage)
    } catch {
      counters.didFail()
      noteObstacle(error)
      verdict.faults.append(error.reason)
    }
    if let own {
      let isAgreed = indexed.map { $0.frames == own.frames } ?? true
      if isAgreed, index.confirmed(by: own.records, of: verdict.pack) == expected {
        return (own.frames, own.records.sorted { $0.frame < $1.frame })
      }
      verdict.faults.append("the index has other blobs or frames of it than its own tables")
    }
    let records = Set(index.records(of: verdict.pack)).sorted { $0.frame < $1.frame }
    return (indexed?.frames ?? [], records)
  }

  /// The next frame, whose stored bytes take the memory of `room`; nothing when all were read. One
  /// that cannot be read is told and passed over.
  mutating func next(in room: inout [UInt8]) -> Frame? {
    while nextFrame < frames.count {
      let (number, place) = (nextFrame, frames[nextFrame])
      nextFrame += 1
      let first = nextRecord
      while nextRecord < records.count, Int(records[nextRecord].frame) == number { nextRecord += 1 }
      let held = records[first..<nextRecord]
      do throws(StoreError) {
        var stored: [UInt8] = []
        swap(&stored, &room)
        try read(place, into: &stored)
        return Frame(number: number, path: path, place: place, stored: stored, records: held)
      } catch {
        noteObstacle(error)
        take(FrameCheck.Finding(number: number, fault: error, lost: held))
      }
    }
    if !isRead { counters.didHandle(files: 1) }
    isRead = true
    // The frames have their own; a check of many packs must not hold the tables of all.
    (records, nextRecord) = (Array(records[nextRecord...]), 0)
    return nil
  }

  private mutating func noteObstacle(_ error: StoreError) {
    if error.kind != .damaged { obstacle = obstacle ?? error }
  }

  private mutating func read(
    _ frame: FrameLocation, into stored: inout [UInt8]
  ) throws(StoreError) {
    do throws(StoreError) {
      try hash(upTo: frame.offset)
      try storage.load(path, offset: frame.offset, count: Int(frame.stored), into: &stored)
      take(stored)
    } catch {
      hashed = nil
      throw error
    }
  }

  /// Takes what was found in a frame.
  mutating func take(_ finding: FrameCheck.Finding) {
    verdict.blobs += finding.blobs
    lose(finding.lost)
    lose(finding.wrong[...])
    if finding.fault != nil || !finding.wrong.isEmpty { counters.didFail() }
    if let fault = finding.fault { badFrames.append((finding.number, fault.reason)) }
    for record in finding.wrong {
      faults.append((finding.number, " holds other bytes at the place of \(record.id)"))
    }
  }

  private mutating func lose(_ records: ArraySlice<BlobRecord>) {
    verdict.lost.formUnion(records.map(\.id))
  }

  private mutating func take(_ bytes: [UInt8]) {
    hash.update(bytes)
    hashed? += UInt64(bytes.count)
    verdict.bytes += UInt64(bytes.count)
    counters.didHandle(bytes: UInt64(bytes.count))
  }

  /// Takes what lies before a place and in no frame.
  private mutating func hash(upTo end: UInt64) throws(StoreError) {
    while let place = hashed, place < end {
      let count = Int(min(end - place, 1 << 20))
      take(try storage.load(path, offset: place, count: count))
    }
  }

  /// Of how many bad frames a pack's verdict has a sentence each.
  private static let toldFrames = 3

  /// Takes what lies behind the frames, holds all bytes against the id, and gives what was found.
  mutating func finish() -> PackCheck.Verdict {
    guard isBegun, nextFrame == frames.count else {
      verdict.faults.append(failure?.reason ?? "it was not read")
      verdict.isComplete = false
      return verdict
    }
    lose(records[nextRecord...])
    tellFrames()
    do {
      try hash(upTo: size)
    } catch {
      hashed = nil
      noteObstacle(error)
      verdict.faults.append(error.reason)
    }
    if obstacle != nil { verdict.isComplete = false }
    if hashed == size, hash.finish() != verdict.pack {
      verdict.faults.append("its bytes are not those that its name was made of")
    }
    return verdict
  }

  private mutating func tellFrames() {
    badFrames.sort { $0.frame < $1.frame }
    faults += badFrames.prefix(Self.toldFrames).map { ($0.frame, ": \($0.reason)") }
    faults.sort { $0.frame < $1.frame }
    verdict.faults += faults.map { "frame \($0.frame)\($0.reason)" }
    if badFrames.count > Self.toldFrames {
      verdict.faults.append("\(badFrames.count - Self.toldFrames) more frames cannot be decoded")
    }
  }
}
