internal import Codecs
internal import SystemIO

/// Reads the frames of packs that hold used blobs, each with its blobs, by the packs' own tables.
struct PackFrames: ~Copyable {
  /// A frame with used blobs, which match their hashes.
  struct Frame {
    fileprivate(set) var stored: [UInt8]
    fileprivate(set) var plain: [UInt8]
    let used: [BlobRecord]
    /// The other blobs.
    let unused: [BlobRecord]
    /// Whether it may move unchanged: it has no unused blobs, or few, which match their hashes.
    fileprivate(set) var mayMove = false
  }

  private let storage: RepositoryStorage
  /// The unused share up to which a frame moves unchanged.
  private let limit: UnusedShare
  private var decompressor: ZstdDecompressor
  private var pack = Digest.missing
  private var path: ObjectPath { storage.layout.pack(pack) }
  private var frames: [FrameLocation] = []
  private var records: [BlobRecord] = []
  private var nextFrame = 0
  private var nextRecord = 0
  /// The used blobs of the frame that was read last, even if it could not be read.
  private(set) var used: [BlobRecord] = []
  /// The buffers of frames that were passed back.
  private var stored: [UInt8] = []
  private var plain: [UInt8] = []
  /// The encrypted bytes of a frame; kept to reuse their memory.
  private var ciphertext: [UInt8] = []

  /// Prepares to read packs whose frames may move unchanged up to an unused share.
  init(_ storage: RepositoryStorage, movingUpTo limit: UnusedShare) throws(StoreError) {
    (self.storage, self.limit) = (storage, limit)
    decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdDecompressor()
    }
  }

  /// Starts to read a pack.
  mutating func open(_ pack: Digest, size: UInt64) throws(StoreError) {
    let tables = try PackTables.load(pack, size: size, from: storage)
    self.pack = pack
    (frames, records) = (tables.frames, tables.records)
    (nextFrame, nextRecord) = (0, 0)
  }

  /// Returns the next frame with a used blob, or nil at the end. On another host a frame is read
  /// twice before it counts as damaged.
  ///
  /// - Throws: `damaged` if a used blob cannot be read. The next call continues after the frame.
  mutating func next(where isUsed: (BlobRecord) -> Bool) throws(StoreError) -> Frame? {
    while nextFrame < frames.count {
      let (number, location) = (nextFrame, frames[nextFrame])
      nextFrame += 1
      let first = nextRecord
      while nextRecord < records.count, Int(records[nextRecord].frame) == number { nextRecord += 1 }
      let all = records[first..<nextRecord]
      let marks = all.map(isUsed)
      used = zip(all, marks).filter(\.1).map(\.0)
      guard !used.isEmpty else { continue }
      let unused = zip(all, marks).filter { !$0.1 }.map(\.0)
      do throws(StoreError) {
        return try read(location, number: number, used: used, unused: unused)
      } catch {
        guard error.code == .damaged, storage.isOnAnotherHost else { throw error }
        storage.forgetReads(of: path)
        return try read(location, number: number, used: used, unused: unused)
      }
    }
    return nil
  }

  /// Reuses the memory of a frame that is no longer needed.
  mutating func reuse(_ frame: inout Frame) {
    swap(&stored, &frame.stored)
    swap(&plain, &frame.plain)
  }

  private mutating func read(
    _ location: FrameLocation, number: Int, used: [BlobRecord], unused: [BlobRecord]
  ) throws(StoreError) -> Frame {
    var frame = Frame(stored: [], plain: [], used: used, unused: unused)
    reuse(&frame)
    try storage.load(
      pack: pack, offset: location.offset, count: Int(location.stored), into: &frame.stored,
      ciphertext: &ciphertext)
    let compressed = frame.stored
    frame.plain.removeAll(keepingCapacity: true)
    do {
      try decompressor.decompress(
        compressed.span, limit: Int(location.plain), appendingTo: &frame.plain)
    } catch { throw .codec(error, "\(path), frame \(number)") }
    if let record = frame.firstDamaged(of: used) {
      throw .damaged("\(path)", "frame \(number) holds other bytes at the location of \(record.id)")
    }
    let share = UnusedShare(of: unused.bytes, in: used.bytes + unused.bytes)
    frame.mayMove = share <= limit && frame.firstDamaged(of: unused) == nil
    return frame
  }
}

extension [BlobRecord] {
  /// The sum of the lengths, in bytes.
  fileprivate var bytes: UInt64 { reduce(0) { $0 + UInt64($1.length) } }
}

extension PackFrames.Frame {
  /// Returns the first of some blobs that does not match its hash.
  fileprivate func firstDamaged(of blobs: [BlobRecord]) -> BlobRecord? {
    zip(blobs, Blake2b.hash(blobs.map(\.range), of: plain.span)).first { $0.digest != $1 }?.0
  }

  /// Returns the frame for another pack, listing only the given blobs.
  func packFrame(_ blobs: [BlobRecord]) -> PackFrame {
    let ordered = blobs.sorted { $0.range.lowerBound < $1.range.lowerBound }
    return PackFrame(stored: stored, plain: plain.count, blobs: ordered.map { $0.blob(at: 0) })
  }

  /// A member with some of the frame's blobs, and its content's range in the frame.
  typealias Part = (member: TarMember, range: Range<Int>, blobs: [PackFrame.Blob])

  /// Returns members with the given blobs. A member whose blobs are all given stays whole; the
  /// consecutive blobs of any other become parts. If the frame is not a valid archive, each blob
  /// becomes a separate member: it matches its hash nevertheless.
  func parts(of wanted: [BlobRecord]) -> [Part] {
    var parts: [Part] = []
    do {
      try forEachMember(of: wanted) { parts.append(($0, $1, $2)) }
    } catch {
      parts = wanted.map { blob in
        let member = PackMembers.single(blob.id, size: Int(blob.length))
        return (member, blob.range, [blob.blob(at: blob.range.lowerBound)])
      }
    }
    return parts
  }

  private func forEachMember(
    of wanted: [BlobRecord],
    _ body: (TarMember, Range<Int>, [PackFrame.Blob]) throws(StoreError) -> Void
  ) throws(StoreError) {
    var rest = wanted[...]
    for (member, range) in try members() {
      let start = rest.startIndex
      while let blob = rest.first, blob.range.upperBound <= range.upperBound { rest.removeFirst() }
      let held = wanted[start..<rest.startIndex]
      guard let first = held.first else { continue }
      if first.range.lowerBound < range.lowerBound {
        throw .damaged("a frame", "the blob \(first.id) is in no member of its archive")
      }
      let bytes = held.reduce(0) { $0 + Int($1.length) }
      if bytes == range.count {
        try body(member, range, held.map { $0.blob(at: range.lowerBound) })
      } else {
        try forEachPart(of: member, at: range, with: held, body)
      }
    }
    if let lost = rest.first {
      throw .damaged("a frame", "the blob \(lost.id) is in no member of its archive")
    }
  }

  /// Returns the members with the ranges of their contents.
  private func members() throws(StoreError) -> [(TarMember, Range<Int>)] {
    let limits = TarReader.Limits(contentSize: plain.count, totalSize: plain.count)
    let headers: [TarMember]
    do { headers = try TarReader.headers(in: plain.span, limits: limits) } catch {
      throw .codec(error, "a frame")
    }
    var offset = 0
    return try headers.map { member throws(StoreError) in
      let start = offset + member.headerSize
      offset += member.encodedSize
      guard start + member.contentSize <= plain.count else {
        throw .damaged("a frame", "a member's content ends early")
      }
      return (member, start..<(start + member.contentSize))
    }
  }

  /// Passes the runs of adjacent blobs of a member as parts of its file.
  private func forEachPart(
    of member: TarMember, at range: Range<Int>, with blobs: ArraySlice<BlobRecord>,
    _ body: (TarMember, Range<Int>, [PackFrame.Blob]) throws(StoreError) -> Void
  ) throws(StoreError) {
    let (path, base) = PackMembers.location(of: ByteString(member.path))
    var run = blobs.prefix(0)
    for blob in blobs.indices {
      run = blobs[run.isEmpty ? blob..<(blob + 1) : run.startIndex..<(blob + 1)]
      let end = blobs[blob].range.upperBound
      if blob + 1 < blobs.endIndex, blobs[blob + 1].range.lowerBound == end { continue }
      let start = run[run.startIndex].range.lowerBound
      var part = member
      let offset = base + UInt64(start - range.lowerBound)
      part.path = Array(PackMembers.part(of: path, at: offset).bytes)
      part.kind = .file(size: end - start)
      try body(part, start..<end, run.map { $0.blob(at: start) })
      run = blobs.suffix(0)
    }
  }
}

extension BlobRecord {
  /// Returns the blob with its offset from `start` in the decoded frame.
  fileprivate func blob(at start: Int) -> PackFrame.Blob {
    PackFrame.Blob(id: id, offset: range.lowerBound - start, length: Int(length))
  }
}
