internal import Codecs
internal import SystemIO

extension PackRepair {
  /// Reads the existing packs and stores their intact blobs that no other pack holds. Without a
  /// writer it only counts.
  func salvage(
    _ plan: inout PackRepairPlan, into writer: ContentWriter?
  ) throws(StoreError) {
    counters.expect(
      files: plan.packs.count, bytes: plan.packs.reduce(0) { $0 + (plan.sizes[$1.id] ?? 0) })
    let counts = plan.index.counts()
    let isMissing = Set(plan.packs.filter { $0.state == .missing }.map(\.id))
    var lost = plan.blobs(of: isMissing)
    var saved: Set<BlobID> = []
    for number in plan.packs.indices {
      var pack = plan.packs[number]
      guard let size = plan.sizes[pack.id] else { continue }
      var reading = PackReading(pack.id, size: size, in: repository.storage, counters)
      reading.begin(plan.index, expected: counts[pack.id] ?? 0)
      try forEachSound(&reading) { record, bytes throws(StoreError) in
        guard !plan.isElsewhere(record.id), saved.insert(record.id).inserted else { return }
        pack.savedBlobs += 1
        pack.savedBytes += UInt64(record.length)
        if let writer { _ = try writer.storeBytes(bytes, kind: record.kind) }
      }
      let verdict = reading.finish()
      // Bytes that cannot be read now may be intact: nothing is counted as lost because of that.
      if let conflict = reading.conflict { throw conflict }
      if verdict.faults.isEmpty { pack.state = .whole }
      lost[pack.id] = verdict.lost
      plan.packs[number] = pack
    }
    for number in plan.packs.indices {
      let blobs = lost[plan.packs[number].id] ?? []
      plan.packs[number].lostBlobs = blobs.count { !saved.contains($0) && !plan.isElsewhere($0) }
    }
  }

  /// Calls `body` with the blobs of a pack that match their ids, in any frame.
  private func forEachSound(
    _ reading: inout PackReading,
    _ body: (BlobRecord, [UInt8]) throws(StoreError) -> Void
  ) throws(StoreError) {
    var decoder = try SalvageDecoder()
    var room: [UInt8] = []
    while var frame = reading.next(in: &room) {
      try checkNotStopped()
      let lost = try decoder.forEachSound(in: frame, body)
      swap(&room, &frame.stored)
      reading.take(FrameCheck.Finding(number: frame.number, fault: lost.fault, lost: lost.records))
    }
  }
}

/// Decodes frames as far as possible, ignoring their checksums.
private struct SalvageDecoder: ~Copyable {
  private var decompressor: ZstdDecompressor
  private var plain: [UInt8] = []

  init() throws(StoreError) {
    decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdDecompressor(ignoresChecksum: true)
    }
  }

  /// Calls `body` with the intact blobs of a frame, and returns the others.
  mutating func forEachSound(
    in frame: PackReading.Frame, _ body: (BlobRecord, [UInt8]) throws(StoreError) -> Void
  ) throws(StoreError) -> (records: ArraySlice<BlobRecord>, fault: StoreError?) {
    plain.removeAll(keepingCapacity: true)
    do throws(CodecError) {
      try decompressor.decompress(
        frame.stored.span, limit: Int(frame.place.plain), appendingTo: &plain)
    } catch {
      return (frame.records, .codec(error, "\(frame.path)"))
    }
    var lost: [BlobRecord] = []
    for record in frame.records {
      guard record.fits(in: UInt32(plain.count)) else {
        lost.append(record)
        continue
      }
      let bytes = Array(plain[record.place])
      if Blake2b.hash(bytes) == record.digest {
        try body(record, bytes)
      } else {
        lost.append(record)
      }
    }
    return (lost[...], nil)
  }
}
