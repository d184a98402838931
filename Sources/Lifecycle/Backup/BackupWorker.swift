internal import ArchiveStore
internal import SystemIO

/// One thread of a backup: takes units, reads what is in them and delivers the entries.
struct BackupWorker: ~Copyable {
  let run: BackupRun
  let writer: ContentWriter
  let buffer = ReadBuffer()
  let held = HeldFiles()
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
        try run.checkpointIfDue { try flush() }
      }
    } catch let error as LifecycleError where error.kind == .interrupted {
      run.end(by: error)
    }
    try flush()
    writer.helpUntilDone { [run] in run.queue.isDone }
  }

  /// Puts all that this thread has gathered into packs.
  private func flush() throws {
    try storeHeld()
    try writer.flush()
  }

  private mutating func store(_ unit: WorkUnit) throws {
    if run.isClosed(unit.folder) { return try passOn(unit.entries[...], of: unit) }
    var rest = unit.entries[...]
    let hand = UnitInHand(unit, run)
    defer { hand.notes.flush() }
    do {
      if unit.isVisit, hand.folder.facts.metadata == nil {
        hand.results.metadata = try readMetadata(hand.folder)
      }
      while let index = rest.first {
        try run.requireGoingOn()
        try store(Int(index), in: hand)
        rest.removeFirst()
      }
    } catch let failure as FolderPosition.Failure {
      try run.close(EntryID(Int(unit.folder.container), failure.folder), failure.error)
      return try passOn(rest, of: unit)
    }
    if !held.keep(hand) { try deliver(hand) }
  }

  /// Hands over what was found out about a unit.
  func deliver(_ hand: UnitInHand) throws {
    hand.notes.flush()
    try run.assembly.deliver(hand.results, to: hand.unit.folder, isVisit: hand.unit.isVisit)
  }

  /// Reads an entry; those that are the same file by hard links follow.
  private mutating func store(_ index: Int, in hand: UnitInHand) throws {
    let folder = hand.folder
    if let entry = folder.renamedLink(index) {
      if let read = try readStored(entry, index, in: folder) {
        hand.results.add(index, try read.entry.encoded(), isSettled: read.isSettled)
      } else {
        hand.results.miss(index)
      }
      return
    }
    if let copied = folder.known.copies[Int32(index)],
      let copy = try readCopy(index, copied, in: folder)
    {
      return try hand.add(index, copy)
    }
    let read: ReadEntry?
    do {
      read = try self.read(index, in: hand)
    } catch is PutOff {
      return run.queue.putOff(folder.id(index), in: folder.id)
    }
    let followers = run.links.followers(of: folder.id(index))
    guard let read else {
      hand.results.miss(index)
      return try lead(followers[...])
    }
    if let place = read.heldAt { return held.add(index, read, at: place, of: hand) }
    try hand.add(index, read)
    try follow(followers[...], read, folder.scan.entries[index].status.identity)
  }

  /// Reads an entry, a database with the files that belong to it.
  private mutating func read(_ index: Int, in hand: UnitInHand) throws -> ReadEntry? {
    let files = hand.folder.known.databases[Int32(index)]
    // Only databases are put off.
    if files == nil, !hand.unit.isLate {
      try makeRoom(for: index, in: hand.folder)
      do {
        return try read(
          index, in: hand.folder, hand.folder.mayHold(index) ? .holding : .wary)
      } catch is DatabaseFound {}
    }
    return try capture(index, files ?? DatabaseFiles(), in: hand)
  }

  /// Reads an entry; nothing, and a remark, when that is not possible.
  ///
  /// - Throws: `DatabaseFound` for a file that begins as a database does, if the mode looks for that.
  mutating func read(
    _ index: Int, in folder: FolderInHand, _ mode: ReadMode
  ) throws -> ReadEntry? {
    let path = folder.path.appending(folder.scan.name(index))
    do {
      return try inFolder(folder) { worker, opened in
        try worker.readEntry(index, path, of: folder, opened, mode)
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
      let hand = UnitInHand(parentOf: follower, run)
      var named = read
      named.entry.name = hand.folder.scan.name(Int(follower.index))
      if case .file(let content) = read.entry.node,
        content.size != hand.folder.scan.entries[Int(follower.index)].status.size
      {
        run.note { $0.sizes[follower] = content.size }
      }
      try hand.add(Int(follower.index), named)
      try deliver(hand)
    }
  }

  /// Reads a file by the first of its names that can be read.
  private mutating func lead(_ names: ArraySlice<EntryID>) throws {
    guard let name = names.first else { return }
    let hand = UnitInHand(parentOf: name, run)
    var read: ReadEntry?
    do {
      if !run.isClosed(hand.unit.folder) {
        read = try self.read(Int(name.index), in: hand.folder, .plain)
      }
    } catch let failure as FolderPosition.Failure {
      try run.close(EntryID(Int(name.container), failure.folder), failure.error)
    }
    if let read {
      try hand.add(Int(name.index), read)
      hand.notes.flush()
      let identity = hand.folder.scan.entries[Int(name.index)].status.identity
      try follow(names.dropFirst(), read, identity)
    } else {
      hand.results.miss(Int(name.index))
      try lead(names.dropFirst())
    }
    try deliver(hand)
  }

  /// Of entries of a unit that cannot be read: files that have other names are read by these.
  private mutating func passOn(_ entries: ArraySlice<Int32>, of unit: WorkUnit) throws {
    for index in entries {
      let id = EntryID(Int(unit.folder.container), Int(index))
      try lead(run.links.followers(of: id)[...])
    }
  }
}
