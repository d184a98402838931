public import Codecs
internal import SystemIO

/// Repairs damaged or missing packs: their intact blobs are stored again, and the index stops
/// naming the packs (docs/repository-format.md, "Repairing packs").
///
/// Packs count as damaged if a check recorded them or if their size differs from the index. Each is
/// read before it is changed, and an intact one stays. Nothing is deleted: a damaged pack is moved
/// to `damaged` after its intact blobs are durable elsewhere. Condemned packs are left to prune.
public struct PackRepair {
  let repository: Repository
  private let isDry: Bool
  let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Prepares a repair. A dry run reads the packs and changes nothing. `isStopping` is called
  /// before each frame.
  public init(
    _ repository: Repository, isDry: Bool = false,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.repository = repository
    self.isDry = isDry
    self.counters = counters
    self.isStopping = isStopping
  }

  /// The result for one pack.
  public struct Pack: Sendable {
    public enum State: String, Sendable {
      /// It is intact: it was replaced by another copy after it was recorded.
      case whole
      /// It can be read in part or not at all.
      case damaged
      /// The index names it, but it does not exist.
      case missing
    }

    public let id: Digest
    public internal(set) var state: State
    /// Blobs that no other pack holds: those that were stored again, with their bytes, and those
    /// that are lost.
    public internal(set) var savedBlobs = 0
    public internal(set) var savedBytes: UInt64 = 0
    public internal(set) var lostBlobs = 0
  }

  /// The result of a repair or of a dry run.
  public struct Report: Sendable {
    /// The packs, ordered by id.
    public internal(set) var packs: [Pack] = []
    /// The number of index objects that were rewritten without the packs.
    public internal(set) var indexes = 0
    /// The errors of the damaged condemned objects, which were removed.
    public internal(set) var damagedCondemned: [StoreError] = []
    /// Whether no check has recorded anything.
    public internal(set) var isUnchecked = false

    /// Whether there was nothing to do.
    public var isIdle: Bool { packs.isEmpty }
    /// The number of blobs that no pack holds.
    public var lostBlobs: Int { packs.reduce(0) { $0 + $1.lostBlobs } }
  }

  /// Runs the repair.
  ///
  /// - Throws: `StoreError`: `busy` if another program is removing objects, `leaseLost`,
  ///   `interrupted`. The next repair uses the blobs stored until then.
  public func run() throws(StoreError) -> Report {
    try repository.requireKnownFeatures(for: .read)
    try repository.storage.requireReadable()
    if isDry {
      var plan = try Plan(repository)
      try salvage(&plan, into: nil)
      var report = Report(packs: plan.packs, isUnchecked: plan.isUnchecked)
      report.indexes = plan.indexes(naming: plan.gone).count
      return report
    }
    try repository.requireKnownFeatures(for: .write, .prune)
    let session = try repository.beginWriting()
    defer { session.abandon() }
    let right = try PruneLease(session.lease, for: "repair the packs of")
    defer { right.release() }
    let heartbeat = PruneLease.Heartbeat(right)
    let repair = PackRepair(repository, counters: counters) { [isStopping] in
      heartbeat.beat()
      return isStopping()
    }
    return try repair.repair(session, right)
  }

  private func repair(
    _ session: WritingSession, _ right: PruneLease
  ) throws(StoreError) -> Report {
    var plan = try Plan(repository)
    var report = Report(
      damagedCondemned: session.damagedCondemned, isUnchecked: plan.isUnchecked)
    guard !plan.packs.isEmpty else { return report }
    let writer = try session.makeWriter()
    try salvage(&plan, into: writer)
    try writer.flush()
    try session.checkpoint()
    for pack in plan.packs where pack.state == .damaged {
      try right.requireHeld()
      try setAside(pack.id, by: session.lease)
    }
    for object in plan.indexes(naming: plan.gone) {
      try right.requireHeld()
      try session.rewrite(object, without: plan.gone, right)
      report.indexes += 1
    }
    try DamageRecords(repository.storage).replace(by: plan.others, session.lease)
    report.packs = plan.packs
    return report
  }

  /// Moves a damaged pack to `damaged`.
  private func setAside(_ pack: Digest, by lease: Lease) throws(StoreError) {
    let storage = repository.storage
    try storage.makeMissing([RepositoryLayout.damaged.name], in: .root)
    try lease.move(storage.layout.pack(pack), to: storage.layout.setAside(pack))
  }

  func checkNotStopped() throws(StoreError) {
    guard isStopping() else { return }
    throw .interrupted(
      "finish the repair of packs in", repository.location, hint: "run it again to continue")
  }
}

extension PackRepair {
  /// The packs of a repository to repair.
  struct Plan {
    var packs: [Pack]
    /// Whether no check has recorded anything.
    let isUnchecked: Bool
    /// Recorded packs that stay unchanged because they are condemned.
    let others: [DamageRecords.Record.Pack]
    let index: CheckedIndex
    /// The stored sizes of all packs.
    let sizes: [Digest: UInt64]
    /// The index of blobs that need not be stored again.
    private let sound: IndexSet

    init(_ repository: Repository) throws(StoreError) {
      let storage = repository.storage
      let records = try DamageRecords(storage).complete()
      let condemned = try CondemnedObjects(storage).packs
      let loaded = try LoadedIndex.loadAll(from: storage)
      let (sizes, expected) = (try RepositoryListing.packSizes(storage), loaded.packSizes)
      var packs: [Digest: Pack] = [:]
      for (id, size) in expected where sizes[id] != size && !condemned.contains(id) {
        packs[id] = Pack(id: id, state: sizes[id] == nil ? .missing : .damaged)
      }
      for id in records.packs.keys where sizes[id] != nil && !condemned.contains(id) {
        packs[id] = Pack(id: id, state: .damaged)
      }
      self.sizes = sizes
      self.packs = packs.values.sorted { $0.id < $1.id }
      others = records.packs.values.filter { condemned.contains($0.id) && sizes[$0.id] != nil }
      isUnchecked = records.names.isEmpty
      index = CheckedIndex(loaded.objects)
      sound = IndexSet(loaded.objects) { [packs] id in
        packs[id] == nil && !condemned.contains(id) && sizes[id] == expected[id]
      }
    }

    /// Whether a pack that needs no repair holds a blob.
    func isElsewhere(_ blob: BlobID) -> Bool { sound.contains(blob) }

    /// The packs to remove from the index.
    var gone: Set<Digest> { Set(packs.filter { $0.state != .whole }.map(\.id)) }

    /// Returns the index objects that name any of the packs.
    func indexes(naming packs: Set<Digest>) -> [IndexObject] {
      index.objects.filter { !packs.isDisjoint(with: $0.packIDs) }
    }

    /// Returns the blobs that the index lists for each pack, in one pass.
    func blobs(of packs: Set<Digest>) -> [Digest: Set<BlobID>] {
      var blobs: [Digest: Set<BlobID>] = [:]
      for object in indexes(naming: packs) {
        let ids = object.packIDs
        for number in 0..<object.blobs {
          guard let record = object.record(number) else { continue }
          let pack = ids[Int(record.pack)]
          if packs.contains(pack) { blobs[pack, default: []].insert(record.id) }
        }
      }
      return blobs
    }
  }

  /// Reads the existing packs and stores their intact blobs that no other pack holds. Without a
  /// writer it only counts.
  func salvage(
    _ plan: inout Plan, into writer: ContentWriter?
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
      let verdict = try readTwice(
        pack.id, size: size, index: plan.index, expected: counts[pack.id] ?? 0
      ) { record, bytes throws(StoreError) in
        guard !plan.isElsewhere(record.id), saved.insert(record.id).inserted else { return }
        pack.savedBlobs += 1
        pack.savedBytes += UInt64(record.length)
        if let writer { _ = try writer.storeBytes(bytes, kind: record.kind) }
      }
      // A pack may have been made from wrong bytes, for example by faulty memory: it matches its
      // id, but its blobs do not match theirs.
      if verdict.faults.isEmpty, verdict.lost.isEmpty { pack.state = .whole }
      lost[pack.id] = verdict.lost
      plan.packs[number] = pack
    }
    for number in plan.packs.indices {
      let blobs = lost[plan.packs[number].id] ?? []
      plan.packs[number].lostBlobs = blobs.count { !saved.contains($0) && !plan.isElsewhere($0) }
    }
  }

  /// Reads a pack, and calls `body` with the blobs that match their ids. A pack on another host is
  /// read a second time if it has faults: bytes may have been changed or cut off in transit. Then
  /// `body` gets the intact blobs of both readings.
  private func readTwice(
    _ pack: Digest, size: UInt64, index: CheckedIndex, expected: Int,
    _ body: (BlobRecord, [UInt8]) throws(StoreError) -> Void
  ) throws(StoreError) -> PackCheck.Verdict {
    let storage = repository.storage
    let first = try read(pack, size: size, index: index, expected: expected, body)
    guard !first.faults.isEmpty || !first.lost.isEmpty, storage.isOnAnotherHost else {
      return first
    }
    storage.forgetReads(of: storage.layout.pack(pack))
    return try read(pack, size: size, index: index, expected: expected, body)
  }

  /// Reads a pack once.
  private func read(
    _ pack: Digest, size: UInt64, index: CheckedIndex, expected: Int,
    _ body: (BlobRecord, [UInt8]) throws(StoreError) -> Void
  ) throws(StoreError) -> PackCheck.Verdict {
    var reading = PackReading(pack, size: size, in: repository.storage, counters)
    reading.begin(index, expected: expected)
    try forEachSound(&reading, body)
    let verdict = reading.finish()
    // Bytes that cannot be read now may be intact: they do not count as lost.
    if let failure = reading.readFailure { throw failure }
    return verdict
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
      reading.add(
        PackCheck.FrameCheck.Finding(number: frame.number, fault: lost.fault, lost: lost.records))
    }
  }

  /// Decodes frames as far as possible, those with wrong checksums as well.
  private struct SalvageDecoder: ~Copyable {
    private var decompressor: ZstdDecompressor
    private var tolerant: ZstdDecompressor
    private var plain: [UInt8] = []

    init() throws(StoreError) {
      let strict = try Self.makeDecompressor(ignoresChecksum: false)
      let tolerant = try Self.makeDecompressor(ignoresChecksum: true)
      decompressor = strict
      self.tolerant = tolerant
    }

    private static func makeDecompressor(
      ignoresChecksum: Bool
    ) throws(StoreError) -> ZstdDecompressor {
      try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
        try ZstdDecompressor(ignoresChecksum: ignoresChecksum)
      }
    }

    /// Calls `body` with the intact blobs of a frame, and returns the others.
    mutating func forEachSound(
      in frame: PackReading.Frame, _ body: (BlobRecord, [UInt8]) throws(StoreError) -> Void
    ) throws(StoreError) -> (records: ArraySlice<BlobRecord>, fault: StoreError?) {
      let limit = Int(frame.location.plain)
      var fault: StoreError?
      plain.removeAll(keepingCapacity: true)
      do throws(CodecError) {
        try decompressor.decompress(frame.stored.span, limit: limit, appendingTo: &plain)
      } catch {
        fault = .codec(error, "\(frame.path)")
        plain.removeAll(keepingCapacity: true)
        do throws(CodecError) {
          try tolerant.decompress(frame.stored.span, limit: limit, appendingTo: &plain)
        } catch { return (frame.records, fault) }
      }
      var lost: [BlobRecord] = []
      for record in frame.records {
        guard record.fits(in: UInt32(plain.count)) else {
          lost.append(record)
          continue
        }
        let bytes = Array(plain[record.range])
        if Blake2b.hash(bytes) == record.digest {
          try body(record, bytes)
        } else {
          lost.append(record)
        }
      }
      return (lost[...], fault)
    }
  }
}
