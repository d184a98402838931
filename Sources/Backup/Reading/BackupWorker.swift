internal import ArchiveStore
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// One thread of a backup: takes work items, reads their entries and delivers the results.
struct BackupWorker: ~Copyable {
  let run: BackupRun
  let writer: ContentWriter
  let buffer = ReadBuffer()
  let smallFiles = SmallFileBatch()
  private var position = Position()

  init(_ run: BackupRun) throws(StoreError) {
    self.run = run
    writer = try run.session.makeWriter()
  }

  /// Processes work items until none are left or the work is ended, then helps the other threads.
  mutating func work() throws {
    do {
      while let item = run.queue.next() {
        defer { run.queue.finish() }
        try store(item)
        try run.checkpointIfDue { try flush() }
      }
    } catch let error as OperationError where error.kind == .interrupted {
      run.end(by: error)
    }
    try flush()
    writer.helpUntilDone { [run] in run.queue.isDone }
  }

  /// Writes all data that this thread has buffered to packs.
  private func flush() throws {
    try storeSmallFiles()
    try writer.flush()
  }

  private mutating func store(_ item: WorkItem) throws {
    if run.isClosed(item.directory) { return try passOn(item.entries[...], of: item) }
    var rest = item.entries[...]
    let context = WorkItemContext(item, run)
    defer { context.checkpoint.flush() }
    do {
      if item.isVisit { try requireListed(context.directory) }
      if item.isVisit, context.directory.facts.metadata == nil {
        context.results.metadata = try readMetadata(context.directory)
      }
      while let index = rest.first {
        try run.checkNotStopped()
        try store(Int(index), in: context)
        rest.removeFirst()
      }
    } catch let failure as Position.Failure {
      try run.close(EntryID(Int(item.directory.container), failure.directory), failure.error)
      return try passOn(rest, of: item)
    }
    if !smallFiles.enqueue(context) { try deliver(context) }
  }

  /// Delivers the results of a work item.
  func deliver(_ context: WorkItemContext) throws {
    context.checkpoint.flush()
    try run.saver.deliver(
      context.results, to: context.item.directory, isVisit: context.item.isVisit)
  }

  /// Reads an entry, then adds the other hard links to the same file.
  private mutating func store(_ index: Int, in context: WorkItemContext) throws {
    let directory = context.directory
    if let waiting = directory.known.waiting[Int32(index)] {
      return try keepEarlier(index, waiting, in: context)
    }
    if let entry = directory.renamedLink(index) {
      if let read = try readStored(entry, index, in: directory) {
        context.results.add(index, try read.entry.encoded(), isStable: read.isStable)
      } else {
        context.results.addUnreadable(index)
      }
      return
    }
    if let copies = try readCopies(index, in: directory) {
      for (index, copy) in copies { try context.add(index, copy) }
      return
    }
    let read: ReadEntry?
    do {
      read = try readUncertain(index, in: context) ?? self.read(index, in: context)
    } catch is Deferred {
      return run.queue.deferred(directory.id(index), in: directory.id)
    }
    let followers = run.links.followers(of: directory.id(index))
    guard let read else {
      context.results.addUnreadable(index)
      return try follow(followers[...], with: nil)
    }
    if let range = read.batchStart { return smallFiles.add(index, read, at: range, of: context) }
    try context.add(index, read)
    try follow(followers[...], with: read)
  }

  /// Reads an entry; reads a database together with its log and journal.
  private mutating func read(_ index: Int, in context: WorkItemContext) throws -> ReadEntry? {
    let files = context.directory.known.databases[Int32(index)]
    // Only databases are deferred.
    if files == nil, !context.item.isLate {
      try makeRoom(for: index, in: context.directory)
      do {
        return try read(
          index, in: context.directory, context.directory.mayBatch(index) ? .batched : .checked)
      } catch is DatabaseFound {}
    }
    return try capture(index, files, in: context)
  }

  /// Reads an entry; returns nil and records the problem if that fails.
  ///
  /// - Throws: `DatabaseFound` if the file begins like a database and the mode checks for that.
  mutating func read(
    _ index: Int, in directory: DirectoryContext, _ mode: ReadMode
  ) throws -> ReadEntry? {
    let path = directory.path.appending(directory.scan.name(index))
    do {
      return try inDirectory(directory) { worker, opened in
        try worker.readEntry(index, at: path, of: directory, in: opened, mode: mode)
      }
    } catch let error as SystemError {
      run.addUnreadable(directory.id(index), at: path, error: error)
      return nil
    }
  }

  /// Calls `body` with the open directory.
  mutating func inDirectory<Result>(
    _ directory: DirectoryContext,
    _ body: (borrowing BackupWorker, borrowing Directory) throws -> Result
  ) throws -> Result {
    try position.move(to: Int(directory.id.index), in: directory.tree)
    return try position.withDirectory { opened in try body(self, opened) }
  }

  /// Refuses a directory whose entries the scan could not list because it was not in its place,
  /// even if it is in its place now.
  private mutating func requireListed(_ directory: DirectoryContext) throws {
    let index = Int(directory.id.index)
    guard directory.scan.entries[index].isStale else { return }
    try position.move(to: index, in: directory.tree)
    throw Position.Failure(directory: index, error: SystemError.replaced(directory.path))
  }

  private mutating func readMetadata(_ directory: DirectoryContext) throws -> StoredMetadata {
    try inDirectory(directory) { worker, opened in
      try worker.readMetadata(opened.attributes, directory.path) { () throws(SystemError) in
        try opened.flags()
      }
    }
  }

  // MARK: - Hard links

  /// Adds the other names of a file that was read under one of them. If it could not be read there,
  /// or was replaced since the scan, it is read under the next name.
  ///
  /// - Parameter read: the entry that was read, or nil if that failed.
  private mutating func follow(_ names: ArraySlice<EntryID>, with read: ReadEntry?) throws {
    var read = read
    for name in names {
      let (context, index) = (WorkItemContext(parentOf: name, run), Int(name.index))
      let scanned = context.directory.scan.entries[index].status
      if var named = read, named.status.identity == scanned.identity {
        named.entry.name = context.directory.scan.name(index)
        if case .file(let content) = named.entry.node, content.size != scanned.size {
          run.record { $0.sizes[name] = content.size }
        }
        try context.add(index, named)
      } else if let found = try readAnew(name, in: context) {
        try context.add(index, found)
        read = found
      } else {
        context.results.addUnreadable(index)
      }
      try deliver(context)
    }
  }

  /// Reads a file under another one of its names. Returns nil and records the problem if that
  /// fails.
  private mutating func readAnew(
    _ name: EntryID, in context: WorkItemContext
  ) throws -> ReadEntry? {
    if run.isClosed(context.item.directory) { return nil }
    do {
      return try read(Int(name.index), in: context.directory, .plain)
    } catch let failure as Position.Failure {
      try run.close(EntryID(Int(name.container), failure.directory), failure.error)
      return nil
    }
  }

  /// Reads the files of unreadable entries by their other names.
  private mutating func passOn(_ entries: ArraySlice<Int32>, of item: WorkItem) throws {
    for index in entries {
      let id = EntryID(Int(item.directory.container), Int(index))
      try follow(run.links.followers(of: id)[...], with: nil)
    }
  }
}

extension BackupWorker {
  /// An entry that was read.
  struct ReadEntry {
    var entry: TreeEntry
    /// The status after reading.
    let status: FileStatus
    var isStable: Bool
    /// The range of the file's bytes in the batch of small files. If set, the entry has no content
    /// yet.
    var batchStart: Range<Int>?
  }

  /// Stores the held files if the next file does not fit beside them.
  func makeRoom(for index: Int, in directory: DirectoryContext) throws {
    guard directory.mayBatch(index),
      !smallFiles.hasRoom(for: directory.scan.entries[index].status.size)
    else { return }
    try storeSmallFiles()
  }

  /// Stores the held files and delivers the work items that waited for them.
  func storeSmallFiles() throws {
    let contents = try smallFiles.contents { files, bytes in
      try writer.storeFiles(files, of: bytes)
    }
    precondition(contents.count == smallFiles.files.count, "each file has its content")
    for (file, content) in zip(smallFiles.files, contents) {
      var read = file.read
      read.entry.node = .file(content)
      read.batchStart = nil
      try file.context.add(file.index, read)
    }
    // Abandoned work items, and those of a run that ended, do not wait: record what was read of
    // them.
    for file in smallFiles.files { file.context.checkpoint.flush() }
    for context in smallFiles.removeAll() { try deliver(context) }
  }
}

extension DirectoryContext {
  /// Whether a file may be held until it is stored together with others, by its scanned status: it
  /// is small and has no other hard links.
  func mayBatch(_ index: Int) -> Bool {
    let status = scan.entries[index].status
    return status.kind == .file && status.links == 1 && SmallFileBatch.sizes ~= status.size
  }
}

extension BackupWorker {
  /// A thread's position in the source of a backup: the current directory and, if that is cheap,
  /// its ancestors, open. A directory is accepted only if it is the one that the scan found.
  struct Position: ~Copyable {
    private var cursor: DirectoryCursor?
    private var container = -1
    /// The current directory, by its number in the container.
    private var current = 0
    /// The path of the current directory, for messages.
    private var path: ByteString = ""

    /// Thrown if a directory on the path could not be entered.
    struct Failure: Error {
      let directory: Int
      let error: SystemError
    }

    /// Moves to a directory.
    mutating func move(to directory: Int, in tree: borrowing SelectedTree) throws(Failure) {
      if isIn(directory, tree) { return }
      if container != tree.number || cursor == nil { try enter(tree) }
      guard var cursor = cursor.take() else { return }
      let scan = tree.scan
      do throws(DirectoryCursor.NumberedFailure) {
        try cursor.move(toNumbered: scan.directories(to: directory)) {
          (scan.name($0), scan.entries[$0].status.identity)
        }
      } catch {
        // The next move begins at the root, which is opened again.
        throw Failure(directory: error.number, error: error.error)
      }
      (path, current) = (cursor.path, directory)
      self.cursor = consume cursor
    }

    private func isIn(_ directory: Int, _ tree: borrowing SelectedTree) -> Bool {
      container == tree.number && cursor != nil && current == directory
    }

    /// Calls `body` with the current directory.
    func withDirectory<Result: ~Copyable>(
      _ body: (borrowing Directory) throws -> Result
    ) throws -> Result {
      switch cursor {
      case .some(let cursor): return try cursor.withDirectory(named: path, body)
      case .none: throw SystemError.replaced("")
      }
    }

    private mutating func enter(_ tree: borrowing SelectedTree) throws(Failure) {
      (container, current) = (tree.number, 0)
      do throws(SystemError) {
        let root = try Directory.open(resolved: tree.scan.container.absolutePath)
        guard try root.status().identity == tree.scan.entries[0].status.identity else {
          throw SystemError.replaced(tree.scan.container.absolutePath)
        }
        cursor = DirectoryCursor(root: root)
      } catch { throw Failure(directory: 0, error: error) }
    }
  }
}
