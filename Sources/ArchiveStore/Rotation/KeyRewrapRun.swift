internal import Codecs
internal import SystemIO

/// A rewrap that holds the right to remove objects.
struct KeyRewrapRun {
  private let rewrap: KeyRewrap
  private var removal: PackRemoval
  private let keys: RepositoryKeys
  private var survey: ObjectSurvey
  private var result = KeyRewrap.Report()

  /// The number of packs that are rewrapped before the old ones are condemned.
  private static let packsAtOnce = 256
  /// The space in bytes that must remain for index objects and snapshots of running programs.
  private static let margin: UInt64 = 16 << 20

  init(
    _ rewrap: KeyRewrap, _ removal: PackRemoval, keys: RepositoryKeys, survey: ObjectSurvey
  ) {
    (self.rewrap, self.removal) = (rewrap, removal)
    (self.keys, self.survey) = (keys, survey)
  }

  private var session: WritingSession { removal.session }
  private var right: PruneLease { removal.right }
  private var heartbeat: PruneLease.Heartbeat { removal.heartbeat }
  private var storage: RepositoryStorage { rewrap.storage }

  /// Runs until the end, or until it is interrupted.
  mutating func report() throws -> KeyRewrap.Report {
    result.damagedCondemned = session.damagedCondemned
    // Packs of a run that ended before it wrote its index, for example an earlier rewrap.
    try session.adoptPacks()
    var needs = try SnapshotNeeds(
      rewrap.repository, for: KeyRewrap.action, cache: rewrap.indexCache,
      headCache: rewrap.headCache, threads: rewrap.workers, isStopping: isStopping)
    try removal.sweep(&needs)
    try rewrapPacks(&needs)
    if !result.isInterrupted { try rewrapIndexes() }
    if !result.isInterrupted { try rewrapSnapshots() }
    try dropOlderIdentities()
    result.removal = removal.totals
    return result
  }

  private var isStopping: @Sendable () -> Bool { removal.stopping(rewrap.isStopping) }

  private mutating func look(
    at sizes: [Digest: UInt64], kind: ObjectKind
  ) throws(StoreError) -> ObjectSurvey.Found {
    let heartbeat = heartbeat
    return try survey.look(at: sizes, kind: kind) { heartbeat.beat() }
  }

  private func header(of object: ObjectSurvey.Older) throws(StoreError) -> [UInt8] {
    do throws(AgeError) {
      return try AgeFile.header(
        of: object.head.span, openedWith: keys.identities, for: keys.recipients)
    } catch { throw .age(error, "\(object.path)") }
  }
}

// MARK: - Packs

extension KeyRewrapRun {
  /// Rewraps the packs that are neither condemned nor recorded as damaged, as many at a time as
  /// fit.
  private mutating func rewrapPacks(_ needs: inout SnapshotNeeds) throws {
    var excluded = try CondemnedObjects.intact(storage).packs
    excluded.formUnion(try DamageRecords(storage).complete().packs.keys)
    let sizes = try RepositoryListing.packSizes(storage).filter { !excluded.contains($0.key) }
    let found = try look(at: sizes, kind: .pack)
    result.damaged += found.unreadable.map(\.error)
    // An earlier run that was interrupted has copied these.
    let done = found.older.filter { found.current[$0.payload] != nil }
    try removal.remove(Set(done.map(\.id)), &needs)
    var rest = found.older.filter { found.current[$0.payload] == nil }[...]
    rewrap.counters.expect(files: rest.count, bytes: rest.reduce(0) { $0 + $1.size })
    while !rest.isEmpty, !result.isInterrupted {
      let part = rest.prefix(try room(for: rest))
      try rewrapPacks(Array(part), &needs)
      rest = rest.dropFirst(part.count)
    }
  }

  private mutating func rewrapPacks(
    _ packs: [ObjectSurvey.Older], _ needs: inout SnapshotNeeds
  ) throws {
    let layout = storage.layout
    let objects = try packs.map { pack throws(StoreError) in
      ObjectCopier.Object(
        id: pack.id, path: pack.path, size: pack.size,
        header: ObjectCopier.NewHeader(
          bytes: try header(of: pack), replaced: pack.headerCount, path: { layout.pack($0) }))
    }
    let copier = ObjectCopier(
      from: storage, by: session.lease, counters: rewrap.counters, expects: false)
    let copied = try copier.copy(
      objects, threads: rewrap.workers, isReadSoon: false, isStopping: isStopping)
    result.isInterrupted = copied.isInterrupted
    result.damaged += copied.damaged.map(\.error)
    let indexed = try writeIndex(of: copied.rewritten.values)
    let done = copied.rewritten.filter { indexed.contains($0.value.id) }
    result.rewrapped.packs += done.count
    for copy in done.values { result.rewrapped.bytes += copy.size }
    try removal.remove(Set(done.keys), &needs)
  }

  /// Writes index objects for new packs from their tables, and reads them again. Returns the packs
  /// that they name.
  private mutating func writeIndex(
    of packs: some Sequence<ObjectCopier.Copied>
  ) throws(StoreError) -> Set<Digest> {
    let sizes = Dictionary(uniqueKeysWithValues: packs.map { ($0.id, $0.size) })
    let rescue = try PackRescue(of: sizes, in: storage) { heartbeat.beat() }
    for object in rescue.objects {
      try right.requireHeld()
      let saved = try session.lease.save(object)
      _ = try IndexObject.readAgain(saved.id, from: storage, cache: rewrap.indexCache)
    }
    for (pack, error) in rescue.faults {
      result.damaged.append(.damaged("\(storage.layout.pack(pack))", error.reason))
    }
    return rescue.packs
  }

  /// Returns how many of the packs are copied next: as many as fit on the volume.
  private func room(for packs: ArraySlice<ObjectSurvey.Older>) throws(StoreError) -> Int {
    guard let space = try storage.space() else { return min(packs.count, Self.packsAtOnce) }
    var bytes = Self.margin
    let count = packs.prefix(Self.packsAtOnce).prefix { pack in
      bytes += pack.size + pack.size / 16
      return space.available > bytes
    }.count
    guard count == 0, let first = packs.first else { return count }
    throw StoreError(
      .system, "rewrap packs of", subject: storage.location,
      reason: "\(ByteCount.text(first.size)) have to be copied at least, and the volume has less "
        + "space",
      hint: "old packs are removed after they were copied, once no other program is using the "
        + "repository: free some space, and run it again")
  }
}

// MARK: - Index objects and snapshots

extension KeyRewrapRun {
  /// Writes again the index objects that only an older identity opens.
  private mutating func rewrapIndexes() throws(StoreError) {
    let index = try LoadedIndex.loadAll(from: storage, cache: rewrap.indexCache)
    let found = try look(at: ObjectSurvey.indexSizes(storage), kind: .index)
    let faults = Dictionary(index.faults.map { ($0.id, $0.error) }) { first, _ in first }
    let objects = Dictionary(index.objects.map { ($0.id, $0) }) { first, _ in first }
    result.damaged += found.unreadable.map { faults[$0.id] ?? $0.error }
    for older in found.older {
      if rewrap.isStopping() {
        result.isInterrupted = true
        return
      }
      guard let object = objects[older.id] else {
        // It disappeared, or its content is damaged.
        if let error = faults[older.id] { result.damaged.append(error) }
        continue
      }
      try right.requireHeld()
      try session.rewrite(object, without: [], right)
      result.rewrapped.indexes += 1
    }
  }

  /// Rewraps the snapshots, and removes the old ones. The new one is pinned before the old one is
  /// unpinned.
  private mutating func rewrapSnapshots() throws {
    let found = try look(at: ObjectSurvey.snapshotSizes(storage), kind: .snapshot)
    result.damaged += found.unreadable.map(\.error)
    let pins = try rewrap.repository.pins()
    for older in found.older {
      if isStopping() {
        result.isInterrupted = true
        break
      }
      do throws(StoreError) {
        let new = try replacement(of: older, twin: found.current[older.payload])
        if pins.contains(older.id) {
          try session.lease.save([], as: RepositoryLayout.pin(new))
          try right.requireHeld()
          try session.lease.remove(pinOf: older.id)
        }
        result.snapshots[older.id] = new
      } catch {
        if error.code == .missing { continue }
        guard error.costsTheObjectAlone else { throw error }
        result.damaged.append(error)
      }
    }
    try removeSnapshots(result.snapshots.keys.sorted())
  }

  /// Returns the snapshot that replaces an older one, which is durable: a new one, or the one that
  /// an interrupted run has written.
  private func replacement(
    of older: ObjectSurvey.Older, twin: SnapshotID?
  ) throws(StoreError) -> SnapshotID {
    let limit = storage.storedLimit(of: FormatLimit.snapshot)
    let stored = try storage.loadStored(older.id, at: older.path, limit: limit)
    let payload = stored.dropFirst(older.headerCount)
    if let twin {
      let other = try storage.load(storage.layout.snapshot(twin), limit: limit)
      if Blake2b.hash(other) == twin, other.suffix(payload.count).elementsEqual(payload) {
        return twin
      }
    }
    var bytes = try header(of: older)
    bytes.append(contentsOf: payload)
    let object = EncodedObject(bytes)
    // A snapshot is not replaced by one that does not open.
    _ = try storage.cipher?.decrypt(object.bytes, "\(older.path)")
    try right.requireHeld()
    try session.save(object)
    return object.id
  }

  /// Removes old snapshots. If another program has removed one meanwhile, the new one is removed,
  /// too. A snapshot that was pinned meanwhile stays until the next run.
  private mutating func removeSnapshots(_ ids: [SnapshotID]) throws {
    guard !ids.isEmpty else { return }
    try rewrap.willRemove(result.snapshots)
    try right.requireHeld()
    var removed = 0
    let report = try SnapshotRemoval(rewrap.repository).run(ids) { _ in removed += 1 }
    for id in report.gone {
      guard let new = result.snapshots.removeValue(forKey: id) else { continue }
      try session.lease.remove(storage.layout.snapshot(new))
    }
    result.rewrapped.snapshots += removed
  }
}

// MARK: - Older identities

extension KeyRewrapRun {
  /// Drops the older identities if no object needs them. A program that writes may have begun
  /// before the rotation: its lease is listed before its objects, so that none of them is
  /// overlooked.
  private mutating func dropOlderIdentities() throws(StoreError) {
    result.writers = try LeaseStatus.all(storage).count {
      !$0.isReader && $0.name != session.lease.path.name
    }
    let heartbeat = heartbeat
    result.left = try survey.left(in: storage) { heartbeat.beat() }
    result.olderIdentities = rewrap.olderIdentities(keys)
    guard result.left.objects == 0, result.writers == 0, !result.isInterrupted else { return }
    guard let opened = keys.opened else {
      result.needsPassphrase = true
      return
    }
    let repository = rewrap.repository
    try repository.requireCurrent(KeyRewrap.action)
    let text = try storage.load(RepositoryLayout.settings, limit: FormatLimit.repositoryFile)
    let settings = try RepositorySettings.replace(keys.recipients, older: [], in: text)
    if !keys.older.isEmpty {
      let change = KeyChange(action: "remove older identities from the key", name: opened.name)
      let file = try repository.encode(
        keys.withoutOlder, for: opened.passphrase, workFactor: rewrap.workFactor, change)
      try right.requireHeld()
      try session.lease.save(file, as: KeyFile.path(opened.name))
    }
    try right.requireHeld()
    try session.lease.save(settings, as: RepositoryLayout.settings)
    result.olderIdentities = 0
  }
}

extension RepositoryKeys {
  /// The keys without identities from before rotations.
  fileprivate var withoutOlder: RepositoryKeys {
    var keys = RepositoryKeys(identities: own.map { [$0] } ?? [], recipients: recipients)
    (keys.retired, keys.signers, keys.opened) = (retired, signers, opened)
    return keys
  }
}
