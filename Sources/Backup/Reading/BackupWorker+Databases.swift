internal import ArchiveStore
internal import Codecs
internal import DatabaseCapture
internal import DeviceScan
internal import SystemIO

extension BackupWorker {
  /// Thrown if a file that is read as an ordinary file begins like a database, or has a log or a
  /// journal that the scan did not find.
  struct DatabaseFound: Error {
    /// Throws if a file that begins with these bytes is a database.
    static func check(_ bytes: Span<UInt8>) throws {
      if DatabaseHead.begins(bytes) { throw DatabaseFound() }
    }
  }

  /// Thrown if a database is busy. It is tried once more at the end of the run.
  struct Deferred: Error {}

  /// Stores a database with its log and its journal in one consistent state; returns the entry of
  /// the database file and adds those of the others.
  ///
  /// - Parameter found: the files that the scan found, which may not belong to a database; nil if
  ///   the file turned out to be one.
  /// - Throws: `Deferred` if the database is busy, unless the work item is late.
  mutating func capture(
    _ index: Int, _ found: UnchangedEntries.DatabaseFiles?, in context: WorkItemContext
  ) throws -> ReadEntry? {
    let directory = context.directory
    let files = found ?? UnchangedEntries.DatabaseFiles()
    let unit = DatabaseUnit(directory.scan.name(index))
    let listed = files.companions.map { directory.scan.name(Int($0)) }
    let capture: Captured?
    do {
      capture = try inDirectory(directory) { worker, opened in
        try found == nil || unit.isDatabase(in: opened, listed: listed)
          ? worker.capture(
            unit, files: files, of: directory, in: opened, isLate: context.item.isLate) : nil
      }
    } catch let error as SystemError {
      run.addUnreadable(directory.id(index), at: directory.path.appending(unit.name), error: error)
      try readPlainly(files.companions, in: context)
      return nil
    }
    guard let capture else {
      // Not a database: a file with the name of a journal is an ordinary file.
      try readPlainly(files.companions, in: context)
      return try read(index, in: directory, .plain)
    }
    record(capture.result, of: unit, in: directory)
    try add(capture, to: index, files, in: context)
    return capture.entries[unit.name]
  }

  /// The result of a capture and the entries that it read.
  private struct Captured {
    let result: CaptureResult
    let entries: [ByteString: ReadEntry]
  }

  private borrowing func capture(
    _ unit: DatabaseUnit, files: UnchangedEntries.DatabaseFiles, of directory: DirectoryContext,
    in opened: borrowing Directory, isLate: Bool
  ) throws -> Captured {
    var entries: [ByteString: ReadEntry] = [:]
    let whenBusy =
      isLate ? DatabaseCapture.WhenBusy.copyUnlocked(after: run.databaseDeadline) : .deferred
    let result = try DatabaseCapture.capture(
      unit, in: opened, spool: SpoolDirectory.open(cache: run.request.cache), whenBusy: whenBusy
    ) { reader in
      entries[reader.name] = try read(reader, files: files, of: directory)
    }
    guard let result else { throw Deferred() }
    if result.method == .unlocked {
      for name in entries.keys { entries[name]?.isStable = false }
    }
    return Captured(result: result, entries: entries)
  }

  /// Reads a file of a database, unless it is unchanged since an earlier run stored it.
  private borrowing func read(
    _ reader: MemberReader, files: UnchangedEntries.DatabaseFiles, of directory: DirectoryContext
  ) throws -> ReadEntry {
    // The time at which the reader opened the file: a copy made under locks may be stored later.
    var time = run.now
    time.seconds -= Int64((Host.bootSeconds() - reader.opened).rounded(.up))
    let path = directory.path.appending(reader.name)
    run.request.counters.begin(path)
    run.request.counters.didOpen()
    let content =
      try known(reader, files: files, of: directory)
      ?? store(reader, path, of: directory, at: time)
    let metadata = try readMetadata(reader.attributes, path) { () throws(SystemError) in
      try reader.flags()
    }
    let entry = TreeEntry(
      name: reader.name, node: .file(content), status: reader.status,
      attributes: metadata.attributes, flags: metadata.flags,
      linkGroup: run.links.name(of: reader.status.identity))
    return ReadEntry(
      entry: entry, status: reader.status,
      isStable: metadata.isWhole
        && ChangeRules.isStable(
          reader.status, readAt: time, in: run.clock(of: directory.tree.number))
    )
  }

  /// Returns the content that an earlier run stored, or nil if the file has changed.
  private borrowing func known(
    _ reader: MemberReader, files: UnchangedEntries.DatabaseFiles, of directory: DirectoryContext
  ) -> Content? {
    guard let index = directory.child(reader.name), let known = files.known[Int32(index)],
      ChangeRules.isUnchanged(known, reader.status), case .file(let content)? = known.entry?.node
    else { return nil }
    return content
  }

  private borrowing func store(
    _ reader: MemberReader, _ path: ByteString, of directory: DirectoryContext, at time: Timestamp
  ) throws -> Content {
    let file = LargeFile(
      path: path, key: directory.facts.key.file(reader.name), status: reader.status,
      hints: FileHints(reader.status, isDatabase: reader.member == .database), isOfDatabase: true,
      isStable: ChangeRules.isStable(
        reader.status, readAt: time, in: run.clock(of: directory.tree.number)))
    return try store(file) { content in
      try reader.readExtents(
        data: { range in
          let count = try content.append(range) { try reader.read($0, appendingTo: &$1) }
          try run.checkNotStopped()
          try run.checkpointIfDue()
          return count
        }, hole: { try content.appendHole($0) })
    }
  }

  // MARK: - Results

  /// Adds the entries of a database's log and journal. A file removed since the scan is recorded as
  /// missing, one that could not be opened as unreadable; a file created since then is added.
  private borrowing func add(
    _ capture: Captured, to index: Int, _ files: UnchangedEntries.DatabaseFiles,
    in context: WorkItemContext
  ) throws {
    let directory = context.directory
    var rest = capture.entries
    rest[directory.scan.name(index)] = nil
    var unopened = capture.result.unopened
    for companion in files.companions {
      let name = directory.scan.name(Int(companion))
      if let read = rest.removeValue(forKey: name) {
        try context.add(Int(companion), read)
        record(read.status.size, of: Int(companion), in: directory)
        continue
      }
      context.results.addUnreadable(Int(companion))
      if let number = unopened.firstIndex(where: { $0.name == name }) {
        run.addUnreadable(
          directory.id(Int(companion)), at: directory.path.appending(name),
          error: unopened.remove(at: number).error)
      } else {
        run.record { $0.missing.insert(directory.id(Int(companion))) }
      }
    }
    for file in unopened {
      run.record { $0.addUnreadablePart(directory.path.appending(file.name), file.error) }
    }
    for (name, read) in rest {
      context.results.add(
        WorkItem.Results.Extra(
          name: name, encoded: try read.entry.encoded(), status: read.status,
          isStable: read.isStable))
      run.record { $0.addExtra(of: directory.id(index), size: read.status.size) }
    }
    if let own = capture.entries[directory.scan.name(index)] {
      record(own.status.size, of: index, in: directory)
    }
  }

  private borrowing func record(_ size: UInt64, of index: Int, in directory: DirectoryContext) {
    guard size != directory.scan.entries[index].status.size else { return }
    run.record { $0.sizes[directory.id(index)] = size }
  }

  private borrowing func record(
    _ result: CaptureResult, of unit: DatabaseUnit, in directory: DirectoryContext
  ) {
    let path = directory.path.appending(unit.name)
    run.record { findings in
      findings.record(DatabaseRecord(path: path, how: result.method.rawValue))
      if let commit = result.interruptedCommit {
        return findings.record(commit, of: unit, at: path)
      }
      guard result.method == .unlocked else { return }
      if !result.unopened.isEmpty {
        let names = result.unopened.map { "'\($0.name)'" }.joined(separator: " and ")
        return findings.warn(
          path,
          "the database was stored without \(names), which cannot be opened: this copy may lack "
            + "transactions or be damaged")
      }
      let reason = result.conflict.map { ": \($0)" } ?? ""
      findings.warn(path, "the database was in use and was read without a lock\(reason)")
    }
  }

  /// Reads files that turned out not to belong to a database.
  private mutating func readPlainly(_ entries: [Int32], in context: WorkItemContext) throws {
    for index in entries {
      if let read = try read(Int(index), in: context.directory, .plain) {
        try context.add(Int(index), read)
      } else {
        context.results.addUnreadable(Int(index))
      }
    }
  }
}

extension BackupRun.Findings {
  /// Records that the journal of a database belongs to an interrupted transaction over several
  /// databases.
  fileprivate mutating func record(
    _ commit: InterruptedCommit, of unit: DatabaseUnit, at path: ByteString
  ) {
    let journal = unit.name(of: .journal)
    switch commit {
    case .uncommitted(let name):
      warn(
        path,
        "its interrupted transaction over several databases was not committed: '\(journal)' was "
          + "stored without the name of '\(name)', so that it is rolled back wherever this copy is "
          + "opened")
    case .committed(let name):
      warn(
        path,
        "its transaction over several databases was committed, as '\(name)' no longer exists: "
          + "'\(journal)', which SQLite ignores, was stored empty")
    case .undecided(let name):
      undecided.insert(path)
      warn(
        path,
        "'\(journal)' belongs to an interrupted transaction over several databases, and '\(name)' "
          + "was not found, without which SQLite takes it as committed: this copy may be damaged. "
          + "Open the database with its app, and back it up again")
    }
  }
}

/// A work item in progress: its directory and the results so far.
final class WorkItemContext {
  let item: WorkItem
  let directory: DirectoryContext
  var results = WorkItem.Results()
  /// The entries recorded for the next run, in case this one is interrupted.
  var checkpoint: DirectoryCheckpoint

  init(_ item: WorkItem, _ run: BackupRun) {
    self.item = item
    directory = DirectoryContext(item.directory, run)
    checkpoint = run.source.makeCheckpoint(directory.facts.key)
  }

  /// Creates a context without entries, for the directory of an entry.
  convenience init(parentOf entry: EntryID, _ run: BackupRun) {
    let directory = run.saver.parent(of: entry)
    self.init(WorkItem(directory: directory, entries: [], isVisit: false), run)
  }

  /// Adds an entry that was read, and records it in the checkpoint.
  func add(_ index: Int, _ read: BackupWorker.ReadEntry) throws(StoreError) {
    precondition(read.batchStart == nil, "the file has no content yet")
    let encoded = try read.entry.encoded()
    checkpoint.add(read.entry.name, read.status, isStable: read.isStable, encoded: encoded)
    let scanned = directory.scan.entries[index].status
    results.add(
      index, encoded, status: read.status.isRecorded(as: scanned) ? nil : read.status,
      isStable: read.isStable)
  }
}

/// The directory of a work item: its position in the scan, and the recorded facts.
struct DirectoryContext {
  let id: EntryID
  let tree: SelectedTree
  let known: UnchangedEntries
  let facts: UnchangedEntries.DirectoryFacts
  /// The logical path.
  let path: ByteString
  private let links: HardLinks

  init(_ id: EntryID, _ run: BackupRun) {
    self.id = id
    tree = run.trees[Int(id.container)]
    known = run.known[Int(id.container)]
    path = tree.scan.logicalPath(Int(id.index))
    // Directories without facts are unchanged as a whole and never processed.
    facts =
      known.directories[id.index]
      ?? UnchangedEntries.DirectoryFacts(key: DirectoryKey(container: path), record: nil)
    links = run.links
  }

  var scan: ContainerScan { tree.scan }

  func id(_ index: Int) -> EntryID { tree.id(index) }

  /// Returns the stored entry of a file, with the current name of its hard link group.
  func renamedLink(_ index: Int) -> TreeEntry? {
    guard var entry = known.renamedLinks[Int32(index)] else { return nil }
    entry.linkGroup = links.name(of: scan.entries[index].status.identity)
    return entry
  }
}

extension DirectoryContext {
  /// Returns the stored child with a name, or nil if there is none.
  func child(_ name: ByteString) -> Int? {
    name.withSpan { tree.child($0, of: Int(id.index)) }
  }
}
