internal import ArchiveStore
internal import SystemIO

/// One thread of a backup: takes units, reads what is in them and delivers the entries.
struct BackupWorker: ~Copyable {
  let run: BackupRun
  let writer: ContentWriter
  let buffer = ReadBuffer()
  private var position = FolderPosition()

  init(_ run: BackupRun) throws(StoreError) {
    self.run = run
    writer = try run.session.makeWriter()
  }

  /// Works until nothing is left or the work is ended, then helps the others.
  mutating func work() throws {
    do {
      while let unit = run.queue.next() {
        defer { run.queue.finish() }
        try store(unit)
        try run.checkpointIfDue { () throws(StoreError) in try writer.flush() }
      }
    } catch let error as LifecycleError where error.kind == .interrupted {
      run.end(by: error)
    }
    try writer.flush()
    writer.helpUntilDone { [run] in run.queue.isDone }
  }

  private mutating func store(_ unit: WorkUnit) throws {
    if run.isClosed(unit.folder) { return try passOn(unit) }
    let folder = FolderInHand(unit.folder, run)
    var results = UnitResults()
    var notes = run.source.makeNotes(folder.facts.key)
    defer { notes.flush() }
    do {
      if unit.isVisit, folder.facts.metadata == nil {
        results.metadata = try readMetadata(folder)
      }
      for index in unit.entries {
        try run.requireGoingOn()
        try store(Int(index), in: folder, isLate: unit.isLate, &results, &notes)
      }
    } catch let failure as FolderPosition.Failure {
      try run.close(EntryID(Int(unit.folder.container), failure.folder), failure.error)
      return try passOn(unit)
    }
    try run.assembly.deliver(results, to: unit.folder, isVisit: unit.isVisit)
  }

  /// Reads an entry; those that are the same file by hard links follow.
  private mutating func store(
    _ index: Int, in folder: FolderInHand, isLate: Bool, _ results: inout UnitResults,
    _ notes: inout ReadingNotes
  ) throws {
    if let entry = folder.renamedLink(index) {
      results.add(index, try entry.encoded(), isSettled: true)
      return
    }
    if let copied = folder.known.copies[Int32(index)],
      let copy = try readCopy(index, copied, in: folder)
    {
      return try results.add(index, copy, &notes)
    }
    let read: ReadEntry?
    do {
      read = try self.read(index, in: folder, isLate: isLate, &results, &notes)
    } catch is PutOff {
      return run.queue.putOff(folder.id(index), in: folder.id)
    }
    let followers = run.links.followers(of: folder.id(index))
    guard let read else {
      results.miss(index)
      return try lead(followers[...])
    }
    try results.add(index, read, &notes)
    try follow(followers[...], read, folder.scan.entries[index].status.identity)
  }

  /// Reads an entry, a database with the files that belong to it.
  private mutating func read(
    _ index: Int, in folder: FolderInHand, isLate: Bool, _ results: inout UnitResults,
    _ notes: inout ReadingNotes
  ) throws -> ReadEntry? {
    var files = folder.known.databases[Int32(index)]
    // Only databases are put off.
    if files == nil, !isLate {
      do {
        return try read(index, in: folder, isPlain: false)
      } catch is DatabaseFound { files = nil }
    }
    return try capture(
      index, files ?? DatabaseFiles(), in: folder, isLate: isLate, &results, &notes)
  }

  /// Reads an entry; nothing, and a remark, when that is not possible.
  ///
  /// - Throws: `DatabaseFound` for a file that begins as a database does, unless `isPlain`.
  mutating func read(_ index: Int, in folder: FolderInHand, isPlain: Bool) throws -> ReadEntry? {
    let path = folder.path.appending(folder.scan.name(index))
    do {
      return try inFolder(folder) { worker, opened in
        try worker.readEntry(index, path, of: folder, opened, isPlain: isPlain)
      }
    } catch let error as SystemError {
      run.miss(folder.id(index), path, error)
      return nil
    }
  }

  /// Runs calls on the open folder.
  mutating func inFolder<Result>(
    _ folder: FolderInHand,
    _ body: (borrowing BackupWorker, borrowing Folder) throws -> Result
  ) throws -> Result {
    try position.go(to: Int(folder.id.index), in: folder.tree)
    return try position.withFolder { opened in try body(self, opened) }
  }

  private mutating func readMetadata(_ folder: FolderInHand) throws -> StoredMetadata {
    try inFolder(folder) { worker, opened in
      try worker.readMetadata(opened.attributes, folder.path) { () throws(SystemError) in
        try opened.flags()
      }
    }
  }

  // MARK: - Hard links

  /// Gives the entry of a file to its other names.
  private mutating func follow(
    _ followers: ArraySlice<EntryID>, _ read: ReadEntry, _ identity: FileIdentity
  ) throws {
    // What was read is another file by now: the other names are not its names.
    guard followers.isEmpty || read.status.identity == identity else { return try lead(followers) }
    for follower in followers {
      let folder = FolderInHand(run.assembly.parent(of: follower), run)
      var results = UnitResults()
      var notes = run.source.makeNotes(folder.facts.key)
      var named = read
      named.entry.name = folder.scan.name(Int(follower.index))
      try results.add(Int(follower.index), named, &notes)
      notes.flush()
      try run.assembly.deliver(results, to: folder.id, isVisit: false)
    }
  }

  /// Reads a file by the first of its names that can be read.
  private mutating func lead(_ names: ArraySlice<EntryID>) throws {
    guard let name = names.first else { return }
    let folder = FolderInHand(run.assembly.parent(of: name), run)
    var results = UnitResults()
    var read: ReadEntry?
    do {
      if !run.isClosed(folder.id) {
        read = try self.read(Int(name.index), in: folder, isPlain: true)
      }
    } catch let failure as FolderPosition.Failure {
      try run.close(EntryID(Int(name.container), failure.folder), failure.error)
    }
    if let read {
      var notes = run.source.makeNotes(folder.facts.key)
      try results.add(Int(name.index), read, &notes)
      notes.flush()
      let identity = folder.scan.entries[Int(name.index)].status.identity
      try follow(names.dropFirst(), read, identity)
    } else {
      results.miss(Int(name.index))
      try lead(names.dropFirst())
    }
    try run.assembly.deliver(results, to: folder.id, isVisit: false)
  }

  /// Of a unit that cannot be read: files that have other names are read by these.
  private mutating func passOn(_ unit: WorkUnit) throws {
    for index in unit.entries {
      let id = EntryID(Int(unit.folder.container), Int(index))
      try lead(run.links.followers(of: id)[...])
    }
  }
}

/// The folder of a unit: its place in the scan, and what is known of it.
struct FolderInHand {
  let id: EntryID
  let tree: KeptTree
  let known: KnownTree
  let facts: KnownTree.FolderFacts
  /// The logical path.
  let path: ByteString
  private let links: HardLinks

  init(_ id: EntryID, _ run: BackupRun) {
    self.id = id
    tree = run.trees[Int(id.container)]
    known = run.known[Int(id.container)]
    path = tree.scan.logicalPath(Int(id.index))
    // Folders without facts are known as a whole, and never in hand.
    facts =
      known.folders[id.index]
      ?? KnownTree.FolderFacts(key: FolderKey(container: path), place: nil)
    links = run.links
  }

  var scan: ContainerScan { tree.scan }

  func id(_ index: Int) -> EntryID { tree.id(index) }

  /// The entry of a file that is stored, with the present name of its group of hard links.
  func renamedLink(_ index: Int) -> TreeEntry? {
    guard var entry = known.renamedLinks[Int32(index)] else { return nil }
    entry.linkGroup = links.name(of: scan.entries[index].status.identity)
    return entry
  }
}

/// An entry as it was read.
struct ReadEntry {
  var entry: TreeEntry
  /// The status of after the reading.
  let status: FileStatus
  var isSettled: Bool
}

extension UnitResults {
  /// Adds an entry that was read, and notes it for the next run in case this one is interrupted.
  mutating func add(
    _ index: Int, _ read: ReadEntry, _ notes: inout ReadingNotes
  ) throws(StoreError) {
    let encoded = try read.entry.encoded()
    notes.add(
      read.entry.name, read.status, isSettled: read.isSettled, encoded: encoded)
    add(index, encoded, status: read.status, isSettled: read.isSettled)
  }
}
