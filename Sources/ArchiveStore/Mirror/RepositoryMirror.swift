internal import Codecs
public import SystemIO

/// Keeps an exact second repository: the same id, settings, packs, index, snapshots, pins and
/// damage records.
///
/// Objects are copied byte for byte and verified against their id, in the order packs, index,
/// snapshots; they are removed in the reverse order. So every snapshot of the mirror is complete at
/// each moment, also after a crash. An object that is damaged in the original is neither copied nor
/// removed from the mirror, and no pack is removed that a snapshot of the mirror needs.
public struct RepositoryMirror {
  let source: Repository
  /// The storage of the mirror; nil if it does not exist, in a dry run.
  let target: RepositoryStorage?
  /// The path of the mirror within the original if their servers are the same one; nil if it is not
  /// known to be within it.
  let place: ObjectPath?
  let indexCache: IndexCache?
  let headCache: SnapshotHeadCache?
  private let lock: MirrorLock?
  let isDry: Bool
  let allowsLargeRemoval: Bool
  let workers: Int
  let counters: ProgressCounters
  let isStopping: @Sendable () -> Bool

  /// Prepares a run with `workers` threads. `isStopping` is called often, on any thread; if it
  /// returns true, the run ends after the current objects.
  ///
  /// - Parameters:
  ///   - target: the storage of the mirror; nil if it does not exist, which only a dry run accepts.
  ///   - place: the path below the original at which the mirror is if the servers of both are the
  ///     same one, which their names do not tell; empty if it is not below it.
  ///   - lock: the lock to hold during the run; nil for none. A dry run takes none.
  ///   - allowsLargeRemoval: whether more than half of the mirror's snapshots may be removed, and
  ///     the last one of a source.
  public init(
    of source: Repository, in target: (any Storage)?, perhapsAt place: ByteString = "",
    indexCache: IndexCache? = nil,
    headCache: SnapshotHeadCache? = nil, lock: MirrorLock? = nil, isDry: Bool = false,
    allowsLargeRemoval: Bool = false, workers: Int = 1,
    counters: ProgressCounters = ProgressCounters(of: "object"),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.source = source
    self.place =
      place.isEmpty ? nil : place.components.reduce(ObjectPath.root) { $0.appending($1) }
    self.target = target.map { RepositoryStorage($0, cipher: source.storage.cipher) }
    (self.indexCache, self.headCache, self.lock) = (indexCache, headCache, lock)
    (self.isDry, self.allowsLargeRemoval) = (isDry, allowsLargeRemoval)
    (self.workers, self.counters, self.isStopping) = (max(1, workers), counters, isStopping)
  }

  /// The number of objects of each kind, and their bytes: of copied objects those of all kinds, and
  /// of removed ones those of the packs.
  public struct Amount: Sendable, Hashable {
    public internal(set) var snapshots = 0
    public internal(set) var indexes = 0
    public internal(set) var packs = 0
    public internal(set) var bytes: UInt64 = 0

    /// Whether there are none.
    public var isEmpty: Bool { snapshots + indexes + packs == 0 }
  }

  /// A removal of snapshots that was refused because it is large, or because the mirror may have
  /// data that the original has lost.
  public struct Refusal: Sendable, Hashable {
    /// The snapshots that the original lacks, and all snapshots of the mirror.
    public let snapshots: Int
    public let all: Int
    /// The sources that would have no remaining snapshot.
    public let sources: Int
    /// The snapshots that exist in the original in a repaired form without the lost data.
    public internal(set) var repaired = 0
  }

  /// The result of a run or of a dry run.
  public struct Report: Sendable {
    /// Whether the mirror was created.
    public internal(set) var isNew = false
    /// The snapshots of the original.
    public internal(set) var snapshots = 0
    public internal(set) var copied = Amount()
    public internal(set) var removed = Amount()
    /// The errors of objects that are damaged in the original, or that it has lost. The mirror
    /// keeps its own copies.
    public internal(set) var damaged: [StoreError] = []
    /// The snapshots that need lost data. They were not copied.
    public internal(set) var incomplete: [IncompleteSnapshot] = []
    /// The number of snapshots that were copied although the key lacks the older identity that may
    /// open them: their content was not read.
    public internal(set) var unread = 0
    /// The refused removal, if there was one. Nothing was removed.
    public internal(set) var refusal: Refusal?
    /// The number of packs that a later run removes, because programs are using the mirror.
    public internal(set) var waitingPacks = 0
    /// The key files that differ from those of the original. The mirror keeps its own.
    public internal(set) var differentKeys: [ByteString] = []
    /// The key files that were removed, because the original does not have them.
    public internal(set) var removedKeys: [ByteString] = []
    /// The key files that a later run removes, because another program is removing objects.
    public internal(set) var waitingKeys: [ByteString] = []
    /// The location that the mirror may be, which a dry run cannot rule out; nil if different.
    public internal(set) var possiblePlace: Place?
    /// Whether the run was interrupted before it was complete.
    public internal(set) var isInterrupted = false

    /// Whether damage was found.
    public var hasDamage: Bool {
      !incomplete.allSatisfy(\.needsOlderKey) || !damaged.allSatisfy(\.isRefused)
    }
  }

  /// Updates the mirror.
  ///
  /// - Throws: `StoreError`: `notEmpty` if the target is neither empty nor a mirror of the
  ///   repository, `invalid` if it is the repository itself or has snapshots of its own, `missing`
  ///   if the repository has lost a directory, `busy` if another program holds the lock, or removes
  ///   objects that the mirror needs, `unknownFeature`, `leaseLost`, failures of a storage.
  public func run() throws -> Report {
    guard !isDry, let lock else { return try update() }
    let held = try lock.take(at: target?.location ?? "")
    defer { withExtendedLifetime(held) {} }
    return try update()
  }

  private func update() throws -> Report {
    try source.requireKnownFeatures(for: .read)
    try source.storage.requireReadable()
    try requireAnotherDirectory()
    // An original that cannot be written to gets none: if packs disappear, it is listed again.
    let lease = isDry ? nil : try? ReaderLease(source)
    defer { lease?.release() }
    let text = try source.storage.load(
      RepositoryLayout.settings, limit: FormatLimit.repositoryFile)
    let found = try MirrorListing(source.storage)
    try found.requireComplete()
    guard let target else { return try plan(found, isNew: true, record: nil) }
    let isNew = try requireMirror(target)
    let saved = try MirrorRecord.load(target)
    let record = saved ?? MirrorRecord(repository: source.id)
    // Checked before anything is written, so that a target that is refused stays unchanged.
    let present =
      isNew ? MirrorListing() : try MirrorListing(ofMirror: target, of: source.storage)
    try requireNothingAlone(in: present, found, record)
    if isDry { return try plan(found, old: present, isNew: isNew, record: saved) }
    try source.settings.requireKnownFeatures(for: .write, at: target.location)
    let keys = try create(target, text, isNew: isNew)
    let mirror = try source.open(copyIn: target)
    let session = try mirror.beginWriting(workers: 1, cache: indexCache)
    defer { session.abandon() }
    // A mirror without snapshots, as of an interrupted run, is known to be one.
    if saved == nil { try session.lease.save(record.encode(), as: MirrorRecord.path) }
    let old = try listing(session, found)
    try requireNothingAlone(in: old, found, record)
    var run = MirrorRun(
      self, session, found: found, old: old, record: record, isStopping: isStopping)
    try run.run()
    if run.report.hasDamage { try lease?.requireKept() }
    run.report.isNew = isNew
    run.report.differentKeys = keys.keys.different
    (run.report.removedKeys, run.report.waitingKeys) =
      keys.areUpdated ? (keys.keys.surplus, []) : ([], keys.keys.surplus)
    return run.report
  }

  /// Plans a run.
  ///
  /// - Parameter record: the record of the mirror; nil if it has none.
  private func plan(
    _ found: MirrorListing, old: MirrorListing = MirrorListing(), isNew: Bool,
    record: MirrorRecord?
  ) throws -> Report {
    var report = try MirrorPlan.report(self, found, old: old, isNew: isNew)
    report.possiblePlace = try possiblePlace(isNew: isNew, record: record)
    return report
  }

  /// Lists what the mirror has and keeps while the session has its lease.
  ///
  /// A prune in the mirror may remove packs that it condemned before this lease was taken, even if
  /// a new snapshot needs them. Therefore packs that the original has are no longer condemned; any
  /// other prune waits for this lease.
  ///
  /// - Throws: `busy` if another program is removing such packs.
  private func listing(
    _ session: WritingSession, _ found: MirrorListing
  ) throws(StoreError) -> MirrorListing {
    let target = session.repository.storage
    let condemned = try CondemnedObjects.intact(target).objects.filter { object in
      object.value.packs.contains { found.packs[$0] != nil }
    }
    if !condemned.isEmpty {
      let right = try PruneLease(session.lease, for: "mirror the repository to")
      defer { right.release() }
      for id in condemned.keys.sorted() {
        try right.requireHeld()
        try session.lease.remove(CondemnedObject.path(id))
      }
    }
    return try MirrorListing(ofMirror: target, of: source.storage)
  }
}

extension MirrorListing {
  /// Returns the number of objects that another listing lacks, and the bytes of the packs among
  /// them.
  func amount(besides other: MirrorListing) -> RepositoryMirror.Amount {
    let packs = packs.filter { other.packs[$0.key] == nil }
    var amount = RepositoryMirror.Amount()
    amount.snapshots = snapshots.subtracting(other.snapshots).count
    amount.indexes = indexes.subtracting(other.indexes).count
    (amount.packs, amount.bytes) = (packs.count, packs.values.reduce(0, +))
    return amount
  }
}

// MARK: - The target

extension RepositoryMirror {
  /// The names that may be in the root of a directory that becomes a mirror: those of a run that
  /// ended before it wrote `repository.json`, and that of a new file system.
  private static let namesOfNew: Set<ByteString> = [
    RepositoryLayout.leases.name, "lost+found",
  ]

  /// Checks that the target is empty or has the id of the repository. Returns whether it is empty.
  private func requireMirror(_ target: RepositoryStorage) throws(StoreError) -> Bool {
    let names = Set(try target.list(.root))
    guard names.contains(RepositoryLayout.settings.name) else {
      guard names.isSubset(of: Self.namesOfNew) else {
        throw refusal(of: target, "it is neither empty nor a repository")
      }
      return true
    }
    let other = try RepositorySettings(
      target.load(RepositoryLayout.settings, limit: FormatLimit.repositoryFile))
    guard other.id == source.id else {
      throw refusal(
        of: target, "it is another repository, with the id \(other.id.hex.prefix(8))")
    }
    return false
  }

  private func refusal(of target: RepositoryStorage, _ reason: String) -> StoreError {
    StoreError(
      .notEmpty, "mirror the repository to", subject: target.location, reason: reason,
      hint:
        "name an empty directory with '--to', or a mirror of this repository; 'sandboxctl copy' "
        + "copies snapshots into another repository")
  }

  /// Checks that the mirror has no snapshot that was made in it.
  private func requireNothingAlone(
    in old: MirrorListing, _ found: MirrorListing, _ record: MirrorRecord
  ) throws(StoreError) {
    guard let target else { return }
    let alone = old.snapshots.subtracting(found.snapshots).subtracting(record.snapshots).sorted()
    guard !alone.isEmpty else { return }
    let names = alone.prefix(3).map { String($0.hex.prefix(8)) }.joined(separator: ", ")
    let count = alone.count == 1 ? "a snapshot" : "\(alone.count) snapshots"
    throw StoreError(
      .invalid, "mirror the repository to", subject: target.location,
      reason: "it has \(count) that did not come from the repository: \(names)"
        + (alone.count > 3 ? ", …" : ""),
      hint: "copy them to the repository with 'sandboxctl copy --repo MIRROR --to REPOSITORY', or "
        + "remove them with 'sandboxctl forget'")
  }

  /// Creates what the mirror lacks except objects: its directories, settings, keys, and the files
  /// for recovery by hand; and removes the keys that the original does not have. Returns the key
  /// files, and false if their removal is left to a later run.
  private func create(
    _ target: RepositoryStorage, _ settings: [UInt8], isNew: Bool
  ) throws(StoreError) -> (keys: MirrorKeys, areUpdated: Bool) {
    let lease = try Lease(target)
    defer { lease.release() }
    try requireDifferent(target, seenBy: lease, isNew: isNew)
    let path = RepositoryLayout.settings
    let old =
      try target.status(path) == nil
      ? nil : try target.load(path, limit: FormatLimit.repositoryFile)
    if old != settings { try lease.save(settings, as: path) }
    try target.makeMissing(RepositoryLayout.directories, in: .root)
    try target.makeMissing(RepositoryLayout.packDirectories, in: RepositoryLayout.packs)
    for path in [RepositoryLayout.readme, RepositoryLayout.recoverScript]
    where try target.status(path) == nil {
      // They are not required: a later run copies what cannot be read now.
      guard let bytes = try? source.storage.load(path, limit: FormatLimit.repositoryFile) else {
        continue
      }
      try lease.save(bytes, as: path)
    }
    SpaceReserve(target).restore(by: lease)
    let keys = try MirrorKeys(of: source.storage, in: target, keyName: source.keys?.keyName)
    return (keys, try keys.update(by: lease))
  }
}
