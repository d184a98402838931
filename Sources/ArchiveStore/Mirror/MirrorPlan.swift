internal import Codecs
internal import SystemIO

/// The plan of a mirror, which a dry run prints: it changes nothing.
///
/// The packs that a check of the original has recorded as damaged are read if the mirror needs
/// them, as are packs of the mirror whose sizes differ: damaged ones are planned as the run treats
/// them. Other damage is found only by the run, which reads everything that it copies. For an
/// original on this host, all objects that the run copies are opened: the plan fails like the run
/// if this user may not read one of them.
struct MirrorPlan {
  private let mirror: RepositoryMirror
  private let found: MirrorListing
  private let old: MirrorListing
  /// The packs that the run copies.
  private var copied: Set<Digest> = []
  /// Damaged packs of the original that the mirror does not have either.
  private var lacking: Set<Digest> = []
  /// The new snapshots that cannot be used, and are not copied.
  private var unusable: Set<SnapshotID> = []
  /// Whether it is unknown which packs of the mirror are needed.
  private var hasUnknownNeeds = false
  private(set) var report = RepositoryMirror.Report()

  /// Makes the plan. An original in which something is lost is listed again: if objects are gone, a
  /// prune has replaced them, and the plan is made again.
  ///
  /// - Parameters:
  ///   - first: the listing of the original.
  ///   - old: the listing of the mirror; empty if it does not exist.
  static func report(
    _ mirror: RepositoryMirror, _ first: MirrorListing, old: MirrorListing = MirrorListing(),
    isNew: Bool
  ) throws -> RepositoryMirror.Report {
    var found = first
    for _ in 0..<MirrorRun.maximumAttempts {
      var plan = MirrorPlan(mirror, found: found, old: old, isNew: isNew)
      var failure: StoreError?
      do {
        try plan.make()
      } catch let error as StoreError where error.kind == .damaged { failure = error }
      if failure == nil, !plan.isDoubtful { return plan.report }
      let now = try MirrorListing(mirror.source.storage)
      try now.requireComplete()
      guard now.lacksAnObject(of: found) else {
        if let failure { throw failure }
        return plan.report
      }
      found = now
    }
    throw MirrorRun.originalKeepsChanging(mirror.target?.location ?? mirror.source.location)
  }

  /// Whether something is lost, unless it only disappeared while the plan was made.
  private var isDoubtful: Bool {
    !report.isInterrupted
      && (hasUnknownNeeds || !report.damaged.isEmpty || !report.incomplete.isEmpty)
  }

  /// - Parameter old: the listing of the mirror; empty if it does not exist.
  init(_ mirror: RepositoryMirror, found: MirrorListing, old: MirrorListing, isNew: Bool) {
    (self.mirror, self.found, self.old) = (mirror, found, old)
    report.isNew = isNew
    report.snapshots = found.snapshots.count
    report.copied.snapshots = newSnapshots.count
    report.copied.indexes = newIndexes.count
  }

  private var newSnapshots: Set<SnapshotID> { found.snapshots.subtracting(old.snapshots) }
  private var newIndexes: Set<Digest> { found.indexes.subtracting(old.indexes) }

  private var source: RepositoryStorage { mirror.source.storage }

  /// Makes the plan, until the end or until it is interrupted.
  mutating func make() throws {
    do {
      try planPacks()
      try requireReadable(newIndexes.map(source.layout.index))
      try requireReadable(newSnapshots.map(source.layout.snapshot))
      try planSnapshots()
      try addSizes()
      try planRemoval()
    } catch let error as StoreError where error.code == .interrupted {
      report.isInterrupted = true
    }
  }

  // MARK: - What is copied

  private mutating func planPacks() throws(StoreError) {
    let recorded = try DamageRecords(source).packs
    for (id, size) in found.packs.sorted(by: { $0.key < $1.key }) {
      guard try isCopied(id, size: size) else { continue }
      if recorded[id] != nil, try !isIntact(id, in: source) {
        report.damaged.append(.wrongContent(of: source.layout.pack(id)))
        lacking.insert(id)
        continue
      }
      try requireReadable([source.layout.pack(id)])
      copied.insert(id)
      report.copied.packs += 1
      report.copied.bytes += size
    }
  }

  /// Whether the run tries to copy a pack: the mirror lacks it, or its copy is recorded as damaged,
  /// or is damaged and has another size.
  private mutating func isCopied(_ id: Digest, size: UInt64) throws(StoreError) -> Bool {
    guard let present = old.packs[id], !old.damagedPacks.contains(id), let target = mirror.target
    else { return true }
    guard present != size, try isIntact(id, in: target) else { return present != size }
    report.damaged.append(
      .damaged("\(source.layout.pack(id))", "its size differs from the mirror's copy"))
    return false
  }

  /// Checks that this user may read objects of the original. On another host each would need a
  /// request.
  private func requireReadable(_ objects: [ObjectPath]) throws(StoreError) {
    if source.isOnAnotherHost { return }
    var piece: [UInt8] = []
    for path in objects {
      try checkNotStopped()
      do throws(StoreError) {
        try source.load(path, offset: 0, count: 1, into: &piece)
      } catch {
        // The run reports damaged objects and those removed since they were listed.
        if error.isRefused { throw error }
      }
    }
  }

  private func checkNotStopped() throws(StoreError) {
    guard mirror.isStopping() else { return }
    throw .interrupted("finish reading", "the packs", hint: "run it again")
  }

  private func isIntact(_ id: Digest, in storage: RepositoryStorage) throws(StoreError) -> Bool {
    try checkNotStopped()
    return try ObjectCopier.isIntact(id, at: storage.layout.pack(id), in: storage)
  }

  /// Finds the new snapshots that need something that the mirror would lack.
  private mutating func planSnapshots() throws {
    report.damaged += try mirror.losses(in: found, besides: old)
    let planned = try planned()
    let index = lacking.isEmpty ? try originalIndex(of: planned) : nil
    let isWhole = index?.isWhole(with: packs) == true
    let unread = try mirror.unread(among: newSnapshots, isWhole: isWhole)
    report.unread = unread.older.count
    report.damaged += unread.unusable.map(\.error)
    report.copied.snapshots -= unread.unusable.count
    unusable = Set(unread.unusable.map(\.id))
    let new = newSnapshots.subtracting(unusable)
    var isIndexed = try index?.hasLostObject(in: mirror) != true
    if !new.isEmpty, !isWhole {
      isIndexed = try findIncomplete(among: new, in: planned) && isIndexed
    }
    if !isIndexed { report.damaged.append(.incompleteIndex()) }
  }

  /// Returns false if the index objects lack something that the snapshots need.
  private mutating func findIncomplete(
    among new: Set<SnapshotID>, in planned: Repository
  ) throws -> Bool {
    let listing = try mirror.source.heads(cache: mirror.headCache)
    try listing.requireSent(new)
    let heads = listing.heads.filter { new.contains($0.id) }
    var needs = try search(planned)
    report.incomplete = try needs.mark(heads)
    report.copied.snapshots -= report.incomplete.count
    return !needs.needsUnindexedPacks || !lacking.isEmpty
  }

  /// Adds the bytes of the index objects and snapshots that the run copies, without those that no
  /// longer exist.
  private mutating func addSizes() throws(StoreError) {
    let snapshots = newSnapshots.subtracting(report.incomplete.map(\.head.id))
      .subtracting(unusable)
    let paths = Set(
      newIndexes.map(source.layout.index) + snapshots.map(source.layout.snapshot))
    guard !paths.isEmpty else { return }
    var bytes: UInt64 = 0
    try source.forEachObject(belowAny: [RepositoryLayout.indexes, RepositoryLayout.snapshots]) {
      path, status in
      if paths.contains(path) { bytes.addClamping(status.size) }
    }
    report.copied.bytes.addClamping(bytes)
  }

  /// The mirror as it would be.
  private func planned() throws -> Repository {
    try mirror.source.open(
      copyIn: PlannedMirror(mirror, found: found, old: old, copied: copied))
  }

  private func search(_ planned: Repository) throws(StoreError) -> SnapshotNeedsSearch {
    try SnapshotNeedsSearch(
      planned, cache: mirror.indexCache, threads: mirror.workers, isStopping: mirror.isStopping
    ) { [source = mirror.source] in try source.snapshot($0) }
  }

  private func originalIndex(of planned: Repository) throws(StoreError) -> OriginalIndex {
    OriginalIndex(
      found,
      try LoadedIndex.load(
        found.indexes.sorted(), from: planned.storage, cache: mirror.indexCache))
  }

  /// The packs that the mirror would have.
  private var packs: Set<Digest> {
    copied.union(Set(old.packs.keys).subtracting(old.damagedPacks))
  }

  // MARK: - What is removed

  private mutating func planRemoval() throws {
    guard let target = mirror.target else { return }
    let losses = found.losses(comparedTo: old, in: target)
    report.damaged += losses
    guard !report.isNew else { return }
    let keys = try MirrorKeys(
      of: source, in: target, keyName: mirror.source.keys?.keyName)
    (report.differentKeys, report.removedKeys) = (keys.different, keys.surplus)
    let copied = found.snapshots.subtracting(report.incomplete.map(\.head.id))
    let copy = mirror.source.copy(in: target)
    report.refusal = try mirror.refusal(of: found, old, in: copy) { copied }
    if report.refusal != nil { return }
    if losses.isEmpty, lacking.isEmpty { try planRemovalOfContent() }
    report.removed.snapshots = found.snapshotsRemoved(from: old).count
  }

  /// Plans the removal of packs and index objects: a pack that a snapshot needs stays, and so does
  /// an index object that alone names it. If something is lost, no removal is promised.
  private mutating func planRemovalOfContent() throws {
    var removed = old.amount(besides: found)
    let surplus = old.packs.filter { found.packs[$0.key] == nil }
    if !surplus.isEmpty {
      guard let needs = try neededByAll() else {
        hasUnknownNeeds = true
        return
      }
      var search = needs
      // The mirror condemns nothing that the original has.
      search.set(.reliable, of: search.index.packs(in: .condemned))
      search.set(.condemned, of: Set(surplus.keys))
      let kept = search.selectNeeded(among: Set(surplus.keys))
      report.damaged += kept.sorted().map { MirrorRemoval.keeps(source.layout.pack($0)) }
      let named = packsNamedByOriginal(search.index)
      removed.packs -= kept.count
      removed.bytes -= kept.reduce(0) { $0 + (surplus[$1] ?? 0) }
      removed.indexes -=
        search.index.objects.count { object in
          !found.indexes.contains(object.id) && old.indexes.contains(object.id)
            && object.packIDs.contains { kept.contains($0) && !named.contains($0) }
        }
    }
    report.removed = removed
  }

  /// Returns what the snapshots of the mirror will need, or nil if something of it is lost.
  private func neededByAll() throws -> UsedBlobSearch? {
    let incomplete = Set(report.incomplete.map(\.head.id))
    let listing = try mirror.source.heads(cache: mirror.headCache)
    guard listing.damaged.isEmpty else { return nil }
    var needs = try search(planned())
    let heads = listing.heads.filter {
      found.snapshots.contains($0.id) && !incomplete.contains($0.id)
    }
    guard try needs.mark(heads).isEmpty else { return nil }
    let named = packsNamedByOriginal(needs.search.index)
    return named.isDisjoint(with: needs.search.index.packs(in: .missing)) ? needs.search : nil
  }

  private func packsNamedByOriginal(_ index: PruneIndex) -> Set<Digest> {
    Set(index.objects.filter { found.indexes.contains($0.id) }.flatMap(\.packIDs))
  }
}

/// The storage of a mirror after a run, as far as a search for the needs of snapshots reads it:
/// index objects and packs of both sides, and everything else of the original.
private struct PlannedMirror: ForwardingStorage {
  let base: any Storage
  private let target: RepositoryStorage?
  private let layout: RepositoryLayout
  private let found: MirrorListing
  private let old: MirrorListing
  private let copied: Set<Digest>

  init(
    _ mirror: RepositoryMirror, found: MirrorListing, old: MirrorListing, copied: Set<Digest>
  ) {
    (base, target) = (mirror.source.storage.base, mirror.target)
    (layout, self.found, self.old) = (mirror.source.storage.layout, found, old)
    self.copied = copied
  }

  var location: String { target?.location ?? base.location }

  /// The storage that has an object; nil if the mirror would lack it.
  private func side(of path: ObjectPath) -> (any Storage)? {
    if let pack = layout.packID(path) {
      if copied.contains(pack) { return base }
      return old.packs[pack] == nil ? nil : target
    }
    guard path.directory == RepositoryLayout.indexes,
      let id = layout.id(path.name, kind: .index), !found.indexes.contains(id),
      old.indexes.contains(id)
    else { return base }
    return target
  }

  private func existingSide(of path: ObjectPath) throws(StoreError) -> any Storage {
    guard let side = side(of: path) else { throw .missing("\(path)") }
    return side
  }

  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    try existingSide(of: path).load(path, limit: limit)
  }

  func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    try existingSide(of: path).load(path, offset: offset, count: count, into: &buffer)
  }

  func forgetReads(of path: ObjectPath) { side(of: path)?.forgetReads(of: path) }

  func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    try side(of: path)?.status(path)
  }

  func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    guard directory == RepositoryLayout.indexes else { return try base.list(directory) }
    return found.indexes.union(old.indexes).map { layout.index($0).name }.sorted()
  }

  func listAll(_ directories: [ObjectPath]) throws(StoreError) -> [DirectoryListing?] {
    var listings: [DirectoryListing?] = []
    for directory in directories {
      listings.append(try listIfPresent(directory).map { DirectoryListing(names: $0) })
    }
    return listings
  }

  func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    switch directory {
    case RepositoryLayout.packs:
      let packs = found.packs.filter { copied.contains($0.key) }
      for (id, size) in old.packs.merging(packs, uniquingKeysWith: { $1 }) {
        try body(
          layout.pack(id),
          ObjectStatus(isDirectory: false, size: size, modified: Timestamp(seconds: 0)))
      }
    case RepositoryLayout.indexes:
      for name in try list(directory) {
        let path = directory.appending(name)
        if let status = try status(path) { try body(path, status) }
      }
    default: try base.forEachObject(below: directory, body)
    }
  }

  func forEachObject(
    belowAny directories: [ObjectPath],
    _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    for directory in directories where try listIfPresent(directory) != nil {
      try forEachObject(below: directory, body)
    }
  }
}
