internal import ArchiveStore
internal import Codecs
internal import Synchronization
internal import SystemIO

/// Puts folders together: what the threads read and what the state knows; stores a folder's tree
/// when all that is in it is there, and gives the folder to the one above it.
///
/// What is held at a time are the encoded entries of folders that are begun and not complete.
final class TreeAssembly: Sendable {
  private let trees: [KeptTree]
  private let known: [KnownTree]
  private let session: WritingSession
  private let source: SourceState
  /// When the run began, for the files of each container.
  private let clocks: [RunClock]
  private let state = Mutex(State())

  private struct State {
    var open: [EntryID: OpenFolder] = [:]
    var roots: [Int32: Root] = [:]
    /// Records of folders that are complete, until the folder above is.
    var records: [EntryID: RecordPlace] = [:]
    /// Folders that are left out.
    var missed: Set<EntryID> = []
  }

  /// A container's root with its tree.
  struct Root: Sendable {
    let entry: TreeEntry
    let record: RecordPlace?
    /// Whether all of its own metadata could be read.
    let isWhole: Bool
  }

  init(
    _ trees: [KeptTree], _ known: [KnownTree], _ session: WritingSession, _ source: SourceState,
    _ clocks: [RunClock]
  ) {
    (self.trees, self.known, self.session) = (trees, known, session)
    (self.source, self.clocks) = (source, clocks)
  }

  /// Folders that are begun and not complete.
  var begun: [EntryID] { state.withLock { Array($0.open.keys) } }

  /// The root of a container; nothing when it could not be entered.
  func root(_ container: Int) -> Root? { state.withLock { $0.roots[Int32(container)] } }

  /// Takes results of a folder; `isVisit` says that the folder itself was dealt with.
  func deliver(_ results: consuming UnitResults, to folder: EntryID, isVisit: Bool) throws {
    var (folder, results, isVisit) = (folder, results, isVisit)
    while let complete = try take(results, folder, isVisit) {
      let (entry, record) = try store(folder, complete)
      let isWhole = complete.metadata?.isWhole ?? true
      guard folder.index > 0 else {
        let root = Root(entry: entry, record: record, isWhole: isWhole)
        return state.withLock { $0.roots[folder.container] = root }
      }
      if let record { state.withLock { $0.records[folder] = record } }
      results = UnitResults()
      let status = trees[Int(folder.container)].scan.entries[Int(folder.index)].status
      results.add(
        Int(folder.index), try entry.encoded(),
        isSettled: isWhole && isSettled(status, in: folder.container))
      folder = parent(of: folder)
      isVisit = false
    }
  }

  /// Leaves a folder out: it could not be entered.
  func miss(_ folder: EntryID) throws {
    guard folder.index > 0 else { return }
    // From here on it has its result: what still comes of it, as of a hard link that was to be read in it
    // for others, must not complete it a second time.
    state.withLock { _ = $0.missed.insert(folder) }
    var results = UnitResults()
    results.miss(Int(folder.index))
    try deliver(results, to: parent(of: folder), isVisit: false)
  }

  private func isSettled(_ status: FileStatus, in container: Int32) -> Bool {
    let clock = clocks[Int(container)]
    return ChangeRules.isSettled(status, readAt: clock.start, in: clock)
  }

  func parent(of folder: EntryID) -> EntryID {
    let scan = trees[Int(folder.container)].scan
    return EntryID(Int(folder.container), Int(scan.entries[Int(folder.index)].parent))
  }

  /// Adds results; gives the folder when it is complete and not left out.
  private func take(
    _ results: borrowing UnitResults, _ folder: EntryID, _ isVisit: Bool
  ) throws -> OpenFolder? {
    let (container, index) = (Int(folder.container), Int(folder.index))
    let tree = trees[container]
    return try state.withLock { state in
      var open =
        state.open.removeValue(forKey: folder)
        ?? OpenFolder(
          children: tree.scan.entries[index].children,
          awaiting: tree.awaited(index, known[container]))
      open.take(results, isVisit: isVisit)
      if open.hasSurplus { throw LifecycleError.uncertain(tree.scan.logicalPath(index)) }
      if open.isComplete { return state.missed.contains(folder) ? nil : open }
      state.open[folder] = open
      return nil
    }
  }
}

// MARK: - A complete folder

extension TreeAssembly {
  /// Stores a folder's tree, and its record for the next run.
  private func store(
    _ folder: EntryID, _ open: borrowing OpenFolder
  ) throws -> (entry: TreeEntry, record: RecordPlace?) {
    let (tree, known) = (trees[Int(folder.container)], known[Int(folder.container)])
    let index = Int(folder.index)
    guard let facts = known.folders[folder.index] else {
      throw LifecycleError.lostRecord(tree.scan.logicalPath(index))
    }
    var entries = EncodedFolder()
    var record = source.makeRecord()
    var earlier = source.folder(at: facts.place, key: facts.key)
    var extras = open.extras[...]
    for child in tree.children(of: index) {
      while let extra = extras.first, extra.name < tree.scan.name(Int(child)) {
        try add(extra, &entries, &record)
        extras.removeFirst()
      }
      try tree.scan.withName(Int(child)) { name in
        if known.isKnown(Int(child)) {
          let status = tree.scan.entries[Int(child)].status
          guard let entry = earlier.find(name, status), let encoded = entry.encoded else {
            throw LifecycleError.lostRecord(tree.scan.logicalPath(Int(child)))
          }
          try entries.append(name, encoded)
          record.keep(entry, folder: entry.folder)
        } else if let encoded = open.encoded(Int(child)) {
          try entries.append(name, encoded)
          note(Int(child), name, Array(encoded), tree, open, &record)
        }
      }
    }
    for extra in extras { try add(extra, &entries, &record) }
    let stored = try session.storeTree(entries)
    let entry = makeEntry(tree, index, stored, open.metadata ?? facts.metadata)
    return (entry, source.write(record, tree: stored))
  }

  /// Records an entry that was read, or a folder of which something changed.
  private func note(
    _ child: Int, _ name: Span<UInt8>, _ encoded: [UInt8], _ tree: borrowing KeptTree,
    _ open: borrowing OpenFolder, _ record: inout FolderRecord
  ) {
    let status = open.statuses[Int32(child)] ?? tree.scan.entries[child].status
    let place = state.withLock { $0.records.removeValue(forKey: tree.id(child)) }
    record.add(
      name, status, isSettled: open.isSettled(child), encoded: encoded, folder: place)
  }

  /// Adds a file that the scan did not find.
  private func add(
    _ extra: UnitResults.Extra, _ entries: inout EncodedFolder, _ record: inout FolderRecord
  ) throws(StoreError) {
    try extra.name.withSpan { name throws(StoreError) in
      try entries.append(name, extra.encoded)
      record.add(name, extra.status, isSettled: extra.isSettled, encoded: extra.encoded)
    }
  }

  private func makeEntry(
    _ tree: borrowing KeptTree, _ index: Int, _ stored: TreeReference, _ metadata: StoredMetadata?
  ) -> TreeEntry {
    TreeEntry(
      name: tree.scan.name(index), node: .directory(stored),
      status: tree.scan.entries[index].status, attributes: metadata?.attributes ?? [],
      flags: metadata?.flags ?? 0)
  }
}

extension LifecycleError {
  /// Of a folder there is a result too many, or too few, and no telling what would be lacking.
  static func uncertain(_ path: ByteString) -> LifecycleError {
    LifecycleError(
      .failed, "cannot back up '\(path)': it is not certain that all of it was read",
      hint: "this is a mistake of the program, please report it; no snapshot was made, and earlier "
        + "ones are as they were")
  }

  /// The state's file gave something else than a moment ago.
  static func lostRecord(_ path: ByteString) -> LifecycleError {
    LifecycleError(
      .failed, "cannot back up '\(path)': what an earlier run noted of it cannot be read again",
      hint: "run the command again: what cannot be read there is read anew")
  }
}
