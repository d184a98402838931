internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import Synchronization
internal import SystemIO

/// Assembles directories from the entries that the threads read and those that the state records.
/// Stores a directory's tree when all its entries are present, then adds the directory to its
/// parent.
///
/// Only the encoded entries of incomplete directories are in memory.
final class TreeSaver: Sendable {
  private let trees: [SelectedTree]
  private let known: [UnchangedEntries]
  private let session: WritingSession
  private let source: SourceState
  /// The start of the run for each container, by the clock of the container's files.
  private let clocks: [RunClock]
  private let state = Mutex(State())

  private struct State {
    var open: [EntryID: OpenDirectory] = [:]
    var roots: [Int32: Root] = [:]
    /// Records of complete directories whose parent is incomplete.
    var records: [EntryID: RecordPointer] = [:]
    /// Directories that are omitted.
    var mismatches: Set<EntryID> = []
  }

  /// A container's root with its tree.
  struct Root: Sendable {
    let entry: TreeEntry
    let record: RecordPointer?
    /// Whether all of its own metadata could be read.
    let isWhole: Bool
  }

  init(
    _ trees: [SelectedTree], known: [UnchangedEntries], session: WritingSession,
    source: SourceState, clocks: [RunClock]
  ) {
    (self.trees, self.known, self.session) = (trees, known, session)
    (self.source, self.clocks) = (source, clocks)
  }

  /// The directories that are begun and incomplete.
  var begun: [EntryID] { state.withLock { Array($0.open.keys) } }

  /// Returns the root of a container, or nil if it could not be entered.
  func root(_ container: Int) -> Root? { state.withLock { $0.roots[Int32(container)] } }

  /// Adds the results of a directory. `isVisit` is true if the directory itself was processed.
  func deliver(_ results: consuming WorkItem.Results, to directory: EntryID, isVisit: Bool) throws {
    var (directory, results, isVisit) = (directory, results, isVisit)
    while let complete = try add(results, of: directory, isVisit: isVisit) {
      let (entry, record) = try store(directory, complete)
      let isWhole = complete.metadata?.isWhole ?? true
      guard directory.index > 0 else {
        let root = Root(entry: entry, record: record, isWhole: isWhole)
        return state.withLock { $0.roots[directory.container] = root }
      }
      if let record { state.withLock { $0.records[directory] = record } }
      results = WorkItem.Results()
      let status = trees[Int(directory.container)].scan.entries[Int(directory.index)].status
      results.add(
        Int(directory.index), try entry.encoded(),
        isStable: isWhole && isStable(status, in: directory.container))
      directory = parent(of: directory)
      isVisit = false
    }
  }

  /// Omits a directory that could not be entered.
  func addUnreadable(_ directory: EntryID) throws {
    guard directory.index > 0 else { return }
    // From here on the directory has its result. A later result in it, such as for a hard link that
    // is to be read instead of others, must not complete it a second time.
    state.withLock { _ = $0.mismatches.insert(directory) }
    var results = WorkItem.Results()
    results.addUnreadable(Int(directory.index))
    try deliver(results, to: parent(of: directory), isVisit: false)
  }

  private func isStable(_ status: FileStatus, in container: Int32) -> Bool {
    let clock = clocks[Int(container)]
    return ChangeRules.isStable(status, readAt: clock.start, in: clock)
  }

  func parent(of directory: EntryID) -> EntryID {
    let scan = trees[Int(directory.container)].scan
    return EntryID(Int(directory.container), Int(scan.entries[Int(directory.index)].parent))
  }

  /// Adds results; returns the directory if it is complete and not omitted.
  private func add(
    _ results: borrowing WorkItem.Results, of directory: EntryID, isVisit: Bool
  ) throws -> OpenDirectory? {
    let (container, index) = (Int(directory.container), Int(directory.index))
    let tree = trees[container]
    return try state.withLock { state in
      var open =
        state.open.removeValue(forKey: directory)
        ?? OpenDirectory(
          children: tree.scan.entries[index].children,
          awaiting: tree.awaited(index, known[container]))
      open.add(results, isVisit: isVisit)
      if open.hasSurplus { throw OperationError.uncertain(tree.scan.logicalPath(index)) }
      if open.isComplete { return state.mismatches.contains(directory) ? nil : open }
      state.open[directory] = open
      return nil
    }
  }
}

// MARK: - A complete directory

extension TreeSaver {
  /// Stores a directory's tree, and its record for the next run.
  private func store(
    _ directory: EntryID, _ open: borrowing OpenDirectory
  ) throws -> (entry: TreeEntry, record: RecordPointer?) {
    let (tree, known) = (trees[Int(directory.container)], known[Int(directory.container)])
    let index = Int(directory.index)
    guard let facts = known.directories[directory.index] else {
      throw OperationError.lostRecord(tree.scan.logicalPath(index))
    }
    var entries = EncodedDirectory()
    var record = source.makeRecord()
    var earlier = source.directory(at: facts.record, key: facts.key)
    var extras = open.extras[...]
    for child in tree.children(of: index) {
      while let extra = extras.first, extra.name < tree.scan.name(Int(child)) {
        try add(extra, to: &entries, record: &record)
        extras.removeFirst()
      }
      try tree.scan.withName(Int(child)) { name in
        if known.isKnown(Int(child)) {
          let status = tree.scan.entries[Int(child)].status
          guard let entry = earlier.find(name, status), let encoded = entry.encoded else {
            throw OperationError.lostRecord(tree.scan.logicalPath(Int(child)))
          }
          try entries.append(name, encoded)
          record.reuse(entry)
        } else if let encoded = open.encoded(Int(child)) {
          try entries.append(name, encoded)
          var lists: RecordPointer?
          if known.uncertain[child] != nil {
            let entry = earlier.find(name, tree.scan.entries[Int(child)].status)
            if let entry, entry.encoded == encoded { lists = entry.lists }
          }
          addEntry(
            Int(child), named: name, encoded: Array(encoded), lists: lists, of: tree, in: open,
            record: &record)
        }
      }
    }
    for extra in extras { try add(extra, to: &entries, record: &record) }
    let stored = try session.storeTree(entries)
    let entry = makeEntry(
      in: tree, at: index, stored: stored, metadata: open.metadata ?? facts.metadata)
    return (entry, source.write(record, tree: stored))
  }

  /// Records an entry that was read, or a directory with changes.
  ///
  /// - Parameter lists: the recorded lists of a file whose content proved to be unchanged.
  private func addEntry(
    _ child: Int, named name: Span<UInt8>, encoded: [UInt8], lists: RecordPointer?,
    of tree: borrowing SelectedTree, in open: borrowing OpenDirectory,
    record: inout DirectoryRecord
  ) {
    let status = open.statuses[Int32(child)] ?? tree.scan.entries[child].status
    let pointer = state.withLock { $0.records.removeValue(forKey: tree.id(child)) }
    record.add(
      name, status, isStable: open.isStable(child), encoded: encoded,
      record: pointer ?? lists ?? source.lists.write(of: encoded, status))
  }

  /// Adds a file that the scan did not find.
  private func add(
    _ extra: WorkItem.Results.Extra, to entries: inout EncodedDirectory,
    record: inout DirectoryRecord
  ) throws(StoreError) {
    try extra.name.withSpan { name throws(StoreError) in
      try entries.append(name, extra.encoded)
      record.add(
        name, extra.status, isStable: extra.isStable, encoded: extra.encoded,
        record: source.lists.write(of: extra.encoded, extra.status))
    }
  }

  private func makeEntry(
    in tree: borrowing SelectedTree, at index: Int, stored: TreeReference,
    metadata: StoredMetadata?
  ) -> TreeEntry {
    TreeEntry(
      name: tree.scan.name(index), node: .directory(stored),
      status: tree.scan.entries[index].status, attributes: metadata?.attributes ?? [],
      flags: metadata?.flags ?? 0)
  }

  /// A directory that awaits the results for some of its entries.
  struct OpenDirectory: Sendable {
    /// The number of results awaited: for entries, for directories in it, and for the directory
    /// itself.
    private var remaining: Int
    /// The index of the directory's first child in its scan.
    private let first: Int
    private var slots: SpillableArray<Slot>
    private var bytes = SpillableArray<UInt8>()
    private(set) var metadata: StoredMetadata?
    /// Files that the scan did not find, in the order of their names.
    private(set) var extras: [WorkItem.Results.Extra] = []
    /// Whether a result arrived twice: then it is unknown which ones are still missing.
    private(set) var hasSurplus = false
    private var isVisited = false
    /// The statuses after reading that differ from the scanned ones.
    private(set) var statuses: [Int32: FileStatus] = [:]

    private struct Slot: Sendable, BitwiseCopyable {
      var start = 0
      var length: UInt32 = 0
      var isStable = false
      /// Whether a result arrived, even if only that the entry is missing.
      var isDealtWith = false
    }

    /// Opens a directory that awaits `remaining` results.
    init(children: Range<Int>, awaiting remaining: Int) {
      self.remaining = remaining
      first = children.lowerBound
      slots = SpillableArray(repeating: Slot(), count: children.count)
    }

    /// Whether all results have arrived.
    var isComplete: Bool { remaining == 0 }

    /// Adds results. `isVisit` is true if the directory itself was processed.
    mutating func add(_ results: borrowing WorkItem.Results, isVisit: Bool) {
      remaining -= results.entries.count + (isVisit ? 1 : 0)
      hasSurplus = hasSurplus || (isVisit && isVisited)
      isVisited = isVisited || isVisit
      if let metadata = results.metadata { self.metadata = metadata }
      if !results.extras.isEmpty {
        extras = (extras + results.extras).sorted { $0.name < $1.name }
      }
      let start = bytes.count
      bytes.append(contentsOf: results.bytes)
      for entry in results.entries {
        let slot = Int(entry.index) - first
        hasSurplus = hasSurplus || slots[slot].isDealtWith
        slots[slot] = Slot(
          start: start + entry.range.lowerBound, length: UInt32(entry.range.count),
          isStable: entry.isStable, isDealtWith: true)
        if let status = entry.status { statuses[entry.index] = status }
      }
    }

    /// Returns the encoded entry of a child, or nil if none arrived.
    func encoded(_ child: Int) -> ArraySlice<UInt8>? {
      let slot = slots[child - first]
      return slot.length == 0 ? nil : bytes.copy(slot.start..<(slot.start + Int(slot.length)))
    }

    /// Whether the next run can rely on the result for a child.
    func isStable(_ child: Int) -> Bool { slots[child - first].isStable }
  }
}

extension OperationError {
  /// The number of results for a directory is wrong, so it is unknown which entries would be
  /// missing.
  static func uncertain(_ path: ByteString) -> OperationError {
    OperationError(
      .failed, code: .internalError,
      "back up", subject: path,
      reason: "some of its entries may not have been read",
      hint: "this is a bug, please report it; no snapshot was created, and earlier snapshots are "
        + "unchanged")
  }

  /// The state file returned other data than before.
  static func lostRecord(_ path: ByteString) -> OperationError {
    OperationError(
      .failed, code: .stateLost,
      "back up", subject: path,
      reason: "its record in the state can no longer be read",
      hint: "run the command again: files without a record are read again")
  }
}
