package import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

/// Stores the entries of a source as a snapshot: contents as they arrive, cut and deduplicated as
/// those of a backup, then the directories, then the snapshot.
///
/// The last entry of a path is the valid one. Directories that the source does not have are
/// created. Entries below a file or a link are skipped: nothing is ever written through a link.
/// From a damaged source the data before the damage is stored, even if it may be wrong, too.
/// Contents that are unchanged since the last import are not read, if the source recognizes them
/// (`EntrySource.recognize`).
package struct ImportOperation {
  private let repository: Repository
  private let request: ImportRequest

  /// Prepares an import.
  package init(to repository: Repository, _ request: ImportRequest) {
    self.repository = repository
    self.request = request
  }

  /// Imports all entries.
  ///
  /// - Throws: `InterchangeError` if nothing of the source can be read; `OperationError` of the
  ///   kind `interrupted`, or `failed` if it has no entries, unless the request allows that;
  ///   `StoreError`. No snapshot is made then.
  package func run<Source: EntrySource & ~Copyable>(_ source: inout Source) throws -> ImportReport {
    let start = Host.monotonicSeconds()
    let time = snapshotTime(of: source)
    let session = try repository.beginWriting(
      workers: request.workers, cache: request.indexCache)
    do {
      if let contents = request.contents {
        source.recognize(
          in: KnownContents(
            of: sourceIdentity, in: contents.directory, session, isReread: contents.isReread))
      }
      var intake = try EntryIntake(session, request)
      let damage = try store(&source, in: &intake)
      var skipped = source.skipped
      skipped.append(intake.skipped)
      let isEmptyState = request.allowsNothing && damage == nil && skipped.entryCount == 0
      guard intake.entries.count > 0 || isEmptyState else { throw nothing(of: skipped, damage) }
      var containers = ImportedContainers()
      let (tree, totals) = try assemble(
        intake.entries, keepingNames: source.keepsNames, in: session, listing: &containers,
        skipping: &skipped)
      try intake.writer.flush()
      var snapshot = try makeSnapshot(of: tree, at: time, in: session)
      snapshot.totals = totals
      snapshot.durationMilliseconds = UInt64((Host.monotonicSeconds() - start) * 1000)
      snapshot.set(source.owners)
      snapshot.add(containers, of: source.apps)
      snapshot.set(skipped, damage, below: request.placement.prefix)
      let stored = try session.finish(snapshot)
      remember(stored, session)
      if let contents = request.contents {
        intake.contents.save(
          in: contents.directory, source: sourceIdentity, snapshot: stored.id,
          packs: session.indexedPacks)
      }
      return ImportReport(
        snapshot: stored, statistics: session.statistics, unchanged: intake.unchanged,
        skipped: skipped, damage: damage,
        remarks: session.damagedCondemned + session.damagedIndexes)
    } catch {
      session.abandon()
      throw error
    }
  }

  /// Stores the entries, while other threads help. Returns the error that ended the source early.
  private func store<Source: EntrySource & ~Copyable>(
    _ source: inout Source, in intake: inout EntryIntake
  ) throws -> InterchangeError? {
    let helpers = try ImportHelpers(intake.session, count: request.workers - 1)
    intake.helpers = helpers
    defer {
      helpers.finish()
      intake.helpers = nil
    }
    do {
      return try storeAll(&source, in: &intake)
    } catch let error as OperationError where error.kind == .interrupted {
      // The next run does not store again what this one has stored.
      try intake.storeInterrupted()
      helpers.finish()
      try intake.writer.flush()
      try intake.session.checkpoint()
      throw error
    }
  }

  private func storeAll<Source: EntrySource & ~Copyable>(
    _ source: inout Source, in intake: inout EntryIntake
  ) throws -> InterchangeError? {
    var damage: InterchangeError?
    do {
      while let entry = try source.next() {
        if request.isStopping() { throw Self.interrupted }
        try intake.store(entry, from: &source)
      }
    } catch let error as InterchangeError where error.kind == .interrupted {
      throw Self.interrupted
    } catch let error as InterchangeError where error.keepsEarlierEntries {
      damage = error
    }
    // The signal ends the writer of a pipe, too, and then the end is not that of the archive.
    if request.isStopping() { throw Self.interrupted }
    try intake.storeWaiting()
    return damage
  }

  static let interrupted = OperationError(
    .interrupted, "the import was interrupted: no snapshot was made",
    hint: "run it again: data stored so far is reused")

  private func nothing(of skipped: SkippedEntries, _ damage: InterchangeError?) -> any Error {
    if let damage { return damage }
    let first = skipped.listed.first.map { "'\($0.path)': \($0.reason)" }
    return OperationError(
      .failed, code: .nothingReadable, "import", subject: request.placement.device.root,
      reason: first.map { "none of its entries can be imported; \($0)" } ?? "it has no entries")
  }

  /// The heads of an encrypted repository can be found only in this host's cache.
  private func remember(_ stored: StoredSnapshot, _ session: WritingSession) {
    if let cache = request.headCache { session.record(stored, in: cache) }
  }
}

// MARK: - The tree

extension ImportOperation {
  /// Stores the directories and returns the tree of the snapshot.
  ///
  /// - Parameter keepsNames: whether the names are the bytes of the source.
  private func assemble(
    _ entries: ImportedEntries, keepingNames keepsNames: Bool, in session: WritingSession,
    listing containers: inout ImportedContainers, skipping skipped: inout SkippedEntries
  ) throws -> (tree: TreeReference, totals: Totals) {
    let prefix = request.placement.prefix
    var totals = Totals()
    var assembler = TreeAssembler(session, inheritsMetadata: !prefix.isEmpty)
    try entries.forEach(below: prefix) { result in
      let isAdded: Bool
      switch result.found {
      case .leaf(let encoded): isAdded = try assembler.add(leaf: encoded, at: result.path)
      case .entry(let entry): isAdded = try assembler.add(entry, at: result.path)
      case .missing(let target):
        return skipped.append(
          path: ByteString(joining: result.path),
          reason: "the target '\(ByteString(joining: target))' of the hard link is not a file "
            + "before it")
      }
      guard isAdded else {
        return skipped.append(
          path: ByteString(joining: result.path), reason: "an entry above it is not a directory")
      }
      if !keepsNames, result.isAmbiguous {
        skipped.append(
          path: ByteString(joining: result.path),
          reason: "there are several entries of this name, perhaps in different Unicode forms, and "
            + "only the last one was imported")
      }
      totals.add(result)
      if prefix.isEmpty { containers.add(result.path) }
    }
    containers.noteOthers(in: &skipped)
    var root = try assembler.finish()
    for name in prefix.components.reversed() {
      root = TreeEntry(
        name: "", node: .directory(try session.storeTree([root.named(name)])), permissions: 0o755)
    }
    let (files, bytes) = (totals.files, totals.bytes)
    totals.classes = request.placement.classes.prefix(1).map {
      Totals.Class(name: $0.name, files: files, bytes: bytes)
    }
    guard case .directory(let tree) = root.node else { return (TreeAssembler.pending, totals) }
    return (tree, totals)
  }
}

extension Totals {
  /// Counts an entry; the content of a hard-linked file counts once.
  fileprivate mutating func add(_ result: ImportedEntries.Result) {
    entries += 1
    guard let size = result.size else { return }
    files += 1
    if !result.isRepeated { bytes &+= size }
  }
}

// MARK: - The snapshot

extension ImportOperation {
  private func snapshotTime<Source: EntrySource & ~Copyable>(
    of source: borrowing Source
  ) -> Timestamp {
    switch request.time {
    case .now: return Host.now()
    case .at(let time): return time
    case .ofSource:
      // A snapshot's time is a text with a year of four digits; a file's can be any, and one that
      // is outside would make a snapshot that cannot be read.
      guard let time = source.madeAt, Timestamp(rfc3339: time.rfc3339) == time else {
        return Host.now()
      }
      return time
    }
  }

  /// The identity of the source. Without the root: successive archives of one source have different
  /// names.
  private var sourceIdentity: Digest {
    let device = request.placement.device
    return SourceIdentity.digest(of: device.identity, root: "", layout: device.layout)
  }

  private func makeSnapshot(
    of tree: TreeReference, at time: Timestamp, in session: WritingSession
  ) throws -> Snapshot {
    let (device, source) = (request.placement.device, sourceIdentity)
    let history = try session.history(of: source, scope: .device, cache: request.headCache)
    var snapshot = Snapshot(
      repository: repository.id, source: source, sequence: request.sequence ?? history.sequence + 1,
      time: time,
      host: request.host ?? Host.name,
      user: request.user ?? Host.userName(Host.userID) ?? "\(Host.userID)", device: device,
      reason: .imported, policy: request.placement.policy, tree: tree, program: request.program)
    if let last = history.last, last.snapshot.sequence < snapshot.sequence {
      snapshot.parent = last.id
    }
    snapshot.tags = request.tags
    snapshot.apps = request.placement.apps
    snapshot.classes = request.placement.classes
    return snapshot
  }

}

extension Snapshot {
  /// Records the names of owners.
  fileprivate mutating func set(_ owners: OwnerNames) {
    users = owners.users.sorted { $0.key < $1.key }
      .map { NameRecord(id: $0.key, name: $0.value) }
    groups = owners.groups.sorted { $0.key < $1.key }
      .map { NameRecord(id: $0.key, name: $0.value) }
  }

  /// Records the containers of a source whose paths are logical paths, and its apps.
  fileprivate mutating func add(_ containers: ImportedContainers, of apps: [ForeignApp]) {
    let root = device.root
    let records = containers.found.map { container in
      // Where they were on the device is unknown: they are in the source.
      DeviceRecord.Container(
        path: container.prefix,
        revision: ImportedContainers.revision(of: container, in: apps),
        realPath: root.appending(container.prefix))
    }
    device.containers.append(contentsOf: records)
    self.apps.append(contentsOf: containers.appRecords(with: apps))
  }

  /// Records the omissions of the import.
  fileprivate mutating func set(
    _ skipped: SkippedEntries, _ damage: InterchangeError?, below prefix: ByteString
  ) {
    var (unreadable, warnings) = (LimitedNotes(), LimitedNotes())
    if let damage {
      let note = damage.isSuspect ? "\(damage.reason): any file may be wrong" : damage.reason
      unreadable.add(PathNote(path: prefix, note: note))
    }
    for entry in skipped.listed {
      let note = PathNote(path: prefix.appending(entry.path), note: entry.reason)
      if entry.isPropertyOnly { warnings.add(note) } else { unreadable.add(note) }
    }
    (self.unreadable, self.warnings) = (unreadable.notes, warnings.notes)
  }
}

extension Reason {
  /// The snapshot was made from an archive or backup of another program.
  package static let imported = Reason(rawValue: "import")
}

extension PolicyRecord {
  /// The record of a snapshot that no policy selected: the digest is that of no bytes.
  package static let ofImports = PolicyRecord(name: "import", digest: Blake2b.hash([]))
}
