package import ArchiveStore
package import SandboxModel
package import SystemIO

/// The entries that operations replaced or removed on a device:
/// `.sandboxctl/trash/<operation>/<logical path>` (docs/journal.md, "The trash").
package struct Trash: Sendable {
  private let root: ByteString
  private let scope: DeviceScope

  /// The minimum time that an item is kept, in seconds: 24 hours.
  package static let age = 24.0 * 3600

  /// Creates the trash of a device.
  package init(of device: Device) {
    root = device.root
    scope = DeviceScope(device)
  }

  /// The entries that one operation moved to the trash.
  package struct Item: Sendable {
    /// The operation's ID.
    package let id: ByteString
    /// The kind of operation, for example `restore`; nil if the note is lost.
    package let operation: String?
    /// The start of the operation.
    package let time: Timestamp
    /// The apps, groups and directories that the operation changed, by their logical paths.
    package let subjects: [ByteString]
    /// The directories that hold the entries.
    package let directories: [ByteString]
    /// The ID of the snapshot made before the operation.
    package let saved: String?
    /// The totals of the entries, including the directories above them.
    package internal(set) var totals = RestoreTotals()
  }

  /// Returns the items, oldest first, with their sizes.
  package func items() throws(SystemError) -> [Item] {
    var items = try unmeasured()
    for index in items.indices { measure(&items[index]) }
    return items
  }

  /// Computes the totals of an item.
  func measure(_ item: inout Item) {
    item.totals = RestoreTotals()
    for path in item.directories { item.totals.add(Self.totals(of: path)) }
  }

  /// Returns the items, oldest first, without their sizes: only the notes are read.
  package func unmeasured() throws(SystemError) -> [Item] { try listed().items }

  /// Returns the items as `unmeasured` does, and the paths of the operations' directories that
  /// cannot be opened or whose notes cannot be read, each with the reason.
  package func listed() throws(SystemError) -> (items: [Item], unreadable: [PathRemark]) {
    guard let trash = try ControlDirectory.open(ControlDirectory.trash, root: root) else {
      return ([], [])
    }
    let path = ControlDirectory.path(ControlDirectory.trash, root: root)
    var (items, unreadable): ([Item], [PathRemark]) = ([], [])
    for name in try trash.names() where JournalRecord.isID(name) {
      var failure: SystemError?
      if let item = item(name, in: trash, at: path, &failure) { items.append(item) }
      if let failure, !failure.isMissing {
        unreadable.append(PathRemark(path: path.appending(name), remark: failure.reason))
      }
    }
    return (items.sorted { ($0.time, $0.id) < ($1.time, $1.id) }, unreadable)
  }

  /// Returns the item of an operation. Without its directory there is none; without its note it has
  /// no operation. `failure` receives the error.
  private func item(
    _ name: ByteString, in trash: borrowing Directory, at path: ByteString,
    _ failure: inout SystemError?
  ) -> Item? {
    do throws(SystemError) {
      let directory = try trash.directory(name)
      var note: TrashDirectory.Note?
      do throws(SystemError) {
        note = try TrashDirectory.Note.read(in: directory, of: name)?.located(at: root)
      } catch { failure = error }
      var time = note?.time
      if time == nil { time = try directory.status().modified }
      return Item(
        id: name, operation: note?.operation, time: time ?? Timestamp(seconds: 0),
        subjects: note?.subjects ?? [],
        directories: [path.appending(name)] + known(note?.elsewhere ?? [], name),
        saved: note?.saved)
    } catch {
      failure = error
      return nil
    }
  }

  /// Returns the directories on other volumes that are this operation's trash in one of the
  /// device's containers: a note may be wrong, and nothing else may be removed.
  private func known(_ directories: [ByteString], _ name: ByteString) -> [ByteString] {
    directories.filter { path in
      scope.permits(path)
        && path.components.suffix(3) == [OwnNames.directory, ControlDirectory.trash, name]
    }
  }

  /// Returns the totals of the readable entries below a directory.
  private static func totals(of path: ByteString) -> RestoreTotals {
    guard let directory = try? Directory.open(resolved: path) else { return RestoreTotals() }
    let note = try? directory.status(TrashDirectory.Note.file)
    var contents = PresentEntries(protected: [])
    try? contents.read(directory)
    var totals = contents.totals
    if let note, totals.files > 0, totals.bytes >= note.size {
      totals.files -= 1
      totals.bytes -= note.size
    }
    return totals
  }

  // MARK: - Emptying

  /// Returns whether an item may still be needed: its operation, or one that restores from it, is
  /// in progress or was interrupted.
  func isInUse(_ item: Item) throws(SystemError) -> Bool {
    guard let journal = try ControlDirectory.open(ControlDirectory.journal, root: root) else {
      return false
    }
    for name in try journal.names() {
      guard let id = OperationJournal.id(name) else { continue }
      if ByteString(id) == item.id { return true }
      // The operation may have ended in the meantime; an unreadable journal may need any item.
      guard let file = try ControlDirectory.file(name, in: journal) else { continue }
      guard let record = try JournalRecord.read(file)?.located(at: root) else { return true }
      let isSource = record.roots.contains { root in
        item.directories.contains { root.path.isWithin($0) }
      }
      if isSource { return true }
    }
    return false
  }

  /// Removes an item by directory handles; a volume mounted in it is kept.
  func remove(_ item: Item) throws(SystemError) {
    _ = try remove(item, counting: ProgressCounters()) { false }
  }

  /// Removes an item and counts the removed files. Returns false if it was stopped before
  /// everything was removed; the rest is still a valid item.
  func remove(
    _ item: Item, counting counters: ProgressCounters, isStopping: @escaping () -> Bool
  ) throws(SystemError) -> Bool {
    let watch = RemovalWatch(
      makesWritable: true, didRemove: { counters.didHandle(files: 1) }, isStopping: isStopping)
    // The directory with the note is last, and in it the note.
    for path in item.directories.reversed() {
      do throws(SystemError) {
        counters.begin(path)
        guard try Self.removeContents(of: path, watch) else { return false }
        try Directory.open(resolved: path.parent).removeTree(item.id)
      } catch { if !error.isMissing { throw error } }
    }
    return true
  }

  /// Removes everything in an operation's directory except the note. Returns false if it was
  /// stopped.
  private static func removeContents(
    of path: ByteString, _ watch: RemovalWatch
  ) throws(SystemError) -> Bool {
    let directory = try Directory.open(resolved: path)
    // A mounted volume is refused as a whole below.
    if try directory.status().isMountPoint { return true }
    var failure: SystemError?
    for name in try directory.names() where name != TrashDirectory.Note.file {
      do throws(SystemError) {
        guard try directory.removeTree(name, watch: watch) else { return false }
      } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
    return true
  }

  /// Removes the item of an operation if it is empty: otherwise it would be listed, and without a
  /// note it would never be removed. In other items it removes the program's own temporary files.
  /// Returns whether there is no item.
  @discardableResult
  package func removeEmpty(_ id: String) -> Bool {
    guard let items = try? unmeasured() else { return false }
    guard let item = items.first(where: { $0.id == ByteString(id) }) else { return true }
    if item.directories.allSatisfy(Self.isEmpty) { return (try? remove(item)) != nil }
    for path in item.directories { Self.removeOwn(in: path) }
    return false
  }

  /// Removes the program's own temporary files from an operation's directory, except the note.
  private static func removeOwn(in path: ByteString) {
    guard let directory = try? Directory.open(resolved: path), let names = try? directory.names()
    else {
      return
    }
    for name in names where isTemporary(name) { try? directory.remove(name) }
  }

  /// Whether a name in an operation's directory is that of a temporary file of the program.
  private static func isTemporary(_ name: ByteString) -> Bool {
    AtomicFile.isTemporary(name) || TrashDirectory.isProbe(name)
  }

  private static func isEmpty(_ path: ByteString) -> Bool {
    do throws(SystemError) {
      return try holdsNothing(Directory.open(resolved: path)) { name in
        name == TrashDirectory.Note.file || isTemporary(name)
      }
    } catch { return error.isMissing }
  }

  /// Whether there are only directories below a directory, and in itself only files of the program.
  private static func holdsNothing(
    _ directory: borrowing Directory, but isOwn: (ByteString) -> Bool
  ) throws(SystemError) -> Bool {
    for name in try directory.names() where !isOwn(name) {
      guard try directory.statusIfPresent(name)?.kind == .directory,
        try holdsNothing(directory.directory(name), but: { _ in false })
      else { return false }
    }
    return true
  }

  /// Removes items of apps, groups and directories that are older than a day.
  ///
  /// Items that cannot be removed are kept until the next time, because the operation itself
  /// succeeded.
  package func removeOld(of subjects: [ByteString], now: Timestamp) {
    for item in (try? unmeasured()) ?? []
    where item.operation != nil && now.since(item.time) > Self.age
      && (try? isInUse(item)) == false
    {
      let done = item.subjects.filter(subjects.contains)
      if done.count == item.subjects.count {
        try? remove(item)
      } else {
        for subject in done { Self.remove(subject, from: item) }
      }
    }
  }

  /// Removes the entries of one of an item's subjects, as far as possible.
  private static func remove(_ subject: ByteString, from item: Item) {
    guard let name = subject.lastComponent, let kind = subject.components.first else { return }
    for path in item.directories {
      _ = try? Directory.open(resolved: path).directory(kind)
        .removeTree(name, watch: RemovalWatch(makesWritable: true))
    }
  }
}

extension Trash {
  /// The items of a trash to delete.
  package struct ItemSelection: Sendable {
    /// The operations whose items to delete; empty for all.
    let operations: [ByteString]
    /// The age in seconds that an item must exceed; nil for any.
    let minimumAge: Double?

    /// Creates a selection.
    package init(operations: [ByteString], minimumAge: Double?) {
      self.operations = operations
      self.minimumAge = minimumAge
    }

    func contains(_ item: Item) -> Bool {
      guard operations.isEmpty || operations.contains(item.id) else { return false }
      return minimumAge.map { Host.now().since(item.time) > $0 } ?? true
    }

    /// Throws if an operation is in none of the trashes.
    func require(in known: Set<ByteString>) throws(OperationError) {
      guard let missing = Set(operations).subtracting(known).sorted().first else { return }
      throw OperationError(
        .notFound, code: .noTrashOperation,
        "empty the trash of", subject: missing,
        reason: "there is no such operation",
        hint: "'sandboxctl trash list' lists the operations")
    }
  }

  /// The result of emptying the trash of one device.
  package struct EmptyingResult: Sendable {
    package let root: ByteString
    /// The operations whose items were deleted.
    package private(set) var removed: [ByteString] = []
    /// The totals of the deleted entries.
    package private(set) var totals = RestoreTotals()
    package private(set) var failed: [(id: ByteString, reason: String)] = []
    /// Whether it was stopped before the end; the rest stays in the trash.
    package private(set) var isInterrupted = false

    fileprivate init(root: ByteString) { self.root = root }

    fileprivate mutating func add(
      _ item: Item, from trash: Trash, isDryRun: Bool, counting counters: ProgressCounters,
      isStopping: @escaping () -> Bool
    ) {
      do throws(SystemError) {
        if try trash.isInUse(item) { return fail(item, because: Self.inUse, counters) }
        let locks: AppLocks?
        do throws(OperationError) {
          locks = try Self.lock(item, root: trash.root, isDryRun: isDryRun)
        } catch {
          return fail(item, because: "an operation on its apps is in progress", counters)
        }
        defer { withExtendedLifetime(locks) {} }
        if try trash.isInUse(item) { return fail(item, because: Self.inUse, counters) }
        if isStopping() {
          isInterrupted = true
        } else if !isDryRun {
          isInterrupted = try !trash.remove(item, counting: counters, isStopping: isStopping)
        }
        if isInterrupted { return }
        removed.append(item.id)
        totals.add(item.totals)
      } catch { fail(item, because: error.reason, counters) }
    }

    private static let inUse = "its operation is in progress or was interrupted"

    /// Returns the locks of an item's apps: a rollback that is staging has not recorded yet what it
    /// takes from the item. nil in a dry run, which only checks them, and if they cannot be made:
    /// on a full volume no other operation gets them either.
    ///
    /// - Throws: `busy`.
    private static func lock(
      _ item: Item, root: ByteString, isDryRun: Bool
    ) throws(OperationError) -> AppLocks? {
      if isDryRun {
        try AppLocks.requireFree(item.subjects, root: root, to: "empty the trash of")
        return nil
      }
      do throws(OperationError) {
        return try AppLocks(item.subjects, root: root)
      } catch {
        guard error.kind == .busy else { return nil }
        throw error
      }
    }

    private mutating func fail(
      _ item: Item, because reason: String, _ counters: ProgressCounters
    ) {
      failed.append((item.id, reason))
      counters.didFail()
    }
  }

  /// Deletes items from the trash of some devices. Items that may still be needed are kept, and
  /// reported as failed.
  ///
  /// - Parameters:
  ///   - isDryRun: whether nothing is deleted.
  ///   - isStopping: whether to end early. The results then end with the interrupted device.
  /// - Throws: `OperationError` for a selected operation that no trash has; `SystemError` if a
  ///   trash cannot be read.
  package static func empty(
    _ devices: [Device], _ selection: ItemSelection, isDryRun: Bool,
    counting counters: ProgressCounters, isStopping: @escaping () -> Bool
  ) throws -> [EmptyingResult] {
    let trashes = try devices.map { device in
      (trash: Trash(of: device), items: try Trash(of: device).unmeasured())
    }
    try selection.require(in: Set(trashes.flatMap { $0.items.map(\.id) }))
    var results: [EmptyingResult] = []
    for (trash, items) in trashes {
      var result = EmptyingResult(root: trash.root)
      // Measured before the first deletion, for the estimate of the remaining time.
      let measured = items.filter(selection.contains).map { item in
        var item = item
        if !isStopping() { trash.measure(&item) }
        counters.expect(files: item.totals.entries - item.totals.directories, bytes: 0)
        return item
      }
      for item in measured where !result.isInterrupted {
        result.add(
          item, from: trash, isDryRun: isDryRun, counting: counters, isStopping: isStopping)
      }
      results.append(result)
      if result.isInterrupted { break }
    }
    return results
  }
}
