public import Codecs
internal import SystemIO

/// Makes older identities unnecessary after a rotation: objects that only these open get another
/// header, for the current recipients (docs/repository-format.md, "Rewrapping objects").
///
/// The content of an object is not decrypted or encrypted again: its payload is copied. But its
/// name is the hash of its stored bytes, so it becomes a new object. New packs and an index object
/// for them are durable before the old packs are condemned, which are then removed as by a prune;
/// the old snapshot is removed after the new one is durable. An interrupted rewrap is continued by
/// the next.
public struct KeyRewrap {
  let repository: Repository
  private let isDry: Bool
  let indexCache: IndexCache?
  let headCache: SnapshotHeadCache?
  let workers: Int
  /// The base-two logarithm of scrypt's work factor for the key file.
  let workFactor: Int
  let counters: ProgressCounters
  let isStopping: @Sendable () -> Bool
  /// Called with the new ids of snapshots by their old ones, before old snapshots are removed: what
  /// is known by the old ids is known by the new ones even if the rewrap is killed. After an error
  /// nothing is removed.
  public var willRemove: ([SnapshotID: SnapshotID]) throws -> Void = { _ in }

  /// Prepares a rewrap with `workers` threads. A dry run only counts. `isStopping` is called often,
  /// on any thread; if it returns true, the rewrap ends after the current objects.
  public init(
    _ repository: Repository, isDry: Bool = false, indexCache: IndexCache? = nil,
    headCache: SnapshotHeadCache? = nil, workers: Int = 1,
    counters: ProgressCounters = ProgressCounters(of: "object"),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.init(
      repository, isDry: isDry, indexCache: indexCache, headCache: headCache, workers: workers,
      workFactor: KeyFile.workFactor, counters: counters, isStopping: isStopping)
  }

  /// - Parameter workFactor: the base-two logarithm of scrypt's work factor.
  init(
    _ repository: Repository, isDry: Bool = false, indexCache: IndexCache? = nil,
    headCache: SnapshotHeadCache? = nil, workers: Int = 1, workFactor: Int,
    counters: ProgressCounters = ProgressCounters(of: "object"),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    (self.repository, self.isDry) = (repository, isDry)
    (self.indexCache, self.headCache) = (indexCache, headCache)
    (self.workers, self.workFactor) = (max(1, workers), workFactor)
    (self.counters, self.isStopping) = (counters, isStopping)
  }

  /// The number of objects of each kind, and the stored bytes of the packs.
  public struct Amount: Sendable, Hashable {
    public internal(set) var packs = 0
    public internal(set) var bytes: UInt64 = 0
    public internal(set) var indexes = 0
    public internal(set) var snapshots = 0

    /// The number of all objects.
    public var objects: Int { packs + indexes + snapshots }
  }

  /// The result of a rewrap or of a dry run.
  public struct Report: RemovalReport {
    /// The objects that got another header; in a dry run those that would.
    public internal(set) var rewrapped = Amount()
    /// The new ids of snapshots, by their old ones.
    public internal(set) var snapshots: [SnapshotID: SnapshotID] = [:]
    /// The old packs that were removed, including those of an earlier run.
    public internal(set) var removal = RemovalTotals()
    /// The errors of objects that are damaged. They stay.
    public internal(set) var damaged: [StoreError] = []
    /// The errors of the damaged condemned objects, which were removed.
    public internal(set) var damagedCondemned: [StoreError] = []
    /// The objects that the newest identity does not open yet, including condemned packs.
    public internal(set) var left = Amount()
    /// The number of other programs that write: they may have begun before the rotation.
    public internal(set) var writers = 0
    /// The number of older identities that are still needed.
    public internal(set) var olderIdentities = 0
    /// Whether no object needs the older identities, but they stay in the key file, whose
    /// passphrase was not given.
    public internal(set) var needsPassphrase = false
    /// Whether the rewrap was interrupted before it was complete.
    public internal(set) var isInterrupted = false

    /// Whether the older identities are no longer needed, and no key has them.
    public var isComplete: Bool { olderIdentities == 0 }
  }

  var storage: RepositoryStorage { repository.storage }

  static let action = "rewrap the objects of"

  /// Runs the rewrap.
  ///
  /// - Throws: `StoreError`: `invalid` if the repository is not encrypted or a mirror, or if a
  ///   rotation was interrupted; `keyRequired` without its own identity or an older one; `busy` if
  ///   another program is removing objects; `damaged` or `missing` if it cannot be determined what
  ///   snapshots need; `leaseLost`.
  public func run() throws -> Report {
    try repository.requireKnownFeatures(for: .read)
    let (keys, newest) = try requireKeys()
    guard olderIdentities(keys) > 0 else { return Report() }
    let survey = ObjectSurvey(storage, newest: newest, identities: keys.identities)
    if isDry { return try dryReport(survey, keys) }
    try repository.requireKnownFeatures(for: .write, .prune)
    return try PackRemoval.run(
      in: repository, for: Self.action, workers: workers, cache: indexCache
    ) { removal in
      var run = KeyRewrapRun(self, removal, keys: keys, survey: survey)
      return try run.report()
    }
  }

  private func dryReport(
    _ survey: ObjectSurvey, _ keys: RepositoryKeys
  ) throws(StoreError) -> Report {
    var (report, survey) = (Report(), survey)
    report.rewrapped = try survey.left(in: storage) { () throws(StoreError) in
      if isStopping() {
        throw .interrupted(
          "count the objects of", storage.location, hint: "nothing was changed: run it again")
      }
    }
    report.left = report.rewrapped
    report.olderIdentities = olderIdentities(keys)
    return report
  }

  /// Returns the number of identities from before rotations that the key or `repository.json` has.
  func olderIdentities(_ keys: RepositoryKeys) -> Int {
    max(keys.older.count, repository.settings.olderRecipients.count)
  }

  /// Returns the keys and the repository's own identity, for which a rotation must be complete.
  private func requireKeys() throws(StoreError) -> (RepositoryKeys, AgeIdentity) {
    guard repository.isEncrypted else {
      throw StoreError(
        .invalid, Self.action, subject: storage.location, reason: "it is not encrypted")
    }
    try repository.requireNoMirror(Self.action)
    guard let keys = repository.keys, let newest = keys.own else {
      throw StoreError(
        .keyRequired, Self.action, subject: storage.location,
        reason: "the repository was opened without its own identity",
        hint: "use '--passphrase-file FILE', '--passphrase-command COMMAND' or '--identity FILE'")
    }
    if let missing = repository.missingOlder(keys) {
      throw StoreError(
        .keyRequired, Self.action, subject: storage.location,
        reason: "the older identity of \(missing) is missing",
        hint: "use a passphrase, or a file with all lines of the recovery key")
    }
    guard Set(keys.recipients) == Set(repository.settings.recipients) else {
      throw StoreError(
        .invalid, Self.action, subject: storage.location,
        reason: "repository.json names other recipients than the key file, as after a rotation "
          + "that was interrupted",
        hint: "run 'sandboxctl key rotate' without recipients to complete it")
    }
    return (keys, newest)
  }
}

extension ObjectSurvey {
  /// Returns the number of objects that the newest identity does not open, including those that
  /// none opens. `checkCancellation` is called before each object.
  mutating func left(
    in storage: RepositoryStorage, checkCancellation: () throws(StoreError) -> Void
  ) throws(StoreError) -> KeyRewrap.Amount {
    var amount = KeyRewrap.Amount()
    amount.snapshots = try look(
      at: Self.snapshotSizes(storage), kind: .snapshot, checkCancellation: checkCancellation
    ).leftCount
    amount.indexes = try look(
      at: Self.indexSizes(storage), kind: .index, checkCancellation: checkCancellation
    ).leftCount
    let sizes = try RepositoryListing.packSizes(storage)
    let packs = try look(at: sizes, kind: .pack, checkCancellation: checkCancellation)
    amount.packs = packs.leftCount
    for older in packs.older { amount.bytes += older.size }
    for (id, _) in packs.unreadable { amount.bytes += sizes[id] ?? 0 }
    return amount
  }

  /// Returns the stored sizes of all snapshots.
  static func snapshotSizes(
    _ storage: RepositoryStorage
  ) throws(StoreError) -> [Digest: UInt64] {
    try RepositoryListing.snapshotStatuses(storage).mapValues(\.size)
  }

  /// Returns the stored sizes of all index objects. On another host their listing has them.
  static func indexSizes(_ storage: RepositoryStorage) throws(StoreError) -> [Digest: UInt64] {
    var sizes: [Digest: UInt64] = [:]
    do throws(StoreError) {
      let listed = try RepositoryListing.indexesWithSizes(storage)
      for id in listed.ids { sizes[id] = listed.sizes[storage.layout.index(id)] }
    } catch {
      guard error.isAbsence else { throw error }
    }
    return sizes
  }
}
