public import ArchiveStore
public import SandboxModel
public import SystemIO

/// What operations replaced or removed on a device: `.sandboxctl/trash/<operation>/<logical path>`
/// (docs/journal.md, "The trash").
public struct Trash: Sendable {
  private let root: ByteString
  private let scope: RecoveryScope

  /// How long at least something is kept, in seconds: 24 hours.
  public static let age = 24.0 * 3600

  /// The trash of a device.
  public init(of device: Device) {
    root = device.root
    scope = RecoveryScope(device)
  }

  /// What one operation put there.
  public struct Item: Sendable {
    /// The operation's name.
    public let id: ByteString
    /// What was done, `restore`; nothing where its note is lost.
    public let operation: String?
    /// When the operation began.
    public let time: Timestamp
    /// The apps, groups and directories that it was about, by their logical paths.
    public let subjects: [ByteString]
    /// Where its things lie.
    public let directories: [ByteString]
    /// The snapshot that was made before the operation, by its name.
    public let saved: String?
    /// What is there, directories on the way among them.
    public internal(set) var totals = RestoreTotals()
  }

  /// What is there, the oldest first, with its sizes.
  public func items() throws(SystemError) -> [Item] {
    var items = try unmeasured()
    for index in items.indices { measure(&items[index]) }
    return items
  }

  /// Adds up what something holds.
  public func measure(_ item: inout Item) {
    item.totals = RestoreTotals()
    for path in item.directories { item.totals.add(Self.totals(of: path)) }
  }

  /// The items, oldest first, without sizes: only the notes are read.
  public func unmeasured() throws(SystemError) -> [Item] {
    guard let trash = try ControlDirectory.open(ControlDirectory.trash, root: root) else {
      return []
    }
    let place = ControlDirectory.path(ControlDirectory.trash, root: root)
    var items: [Item] = []
    for name in try trash.names() {
      guard JournalRecord.isID(name), let directory = try? trash.directory(name) else { continue }
      let note = TrashNote(in: directory, of: name)
      var time = note?.time
      if time == nil { time = try directory.status().modified }
      items.append(
        Item(
          id: name, operation: note?.operation, time: time ?? Timestamp(seconds: 0),
          subjects: note?.subjects ?? [],
          directories: [place.appending(name)] + known(note?.elsewhere ?? [], name),
          saved: note?.saved))
    }
    return items.sorted { ($0.time, $0.id) < ($1.time, $1.id) }
  }

  /// Directories on other volumes, as far as they are a trash of this operation in one of the device's
  /// containers: a note can be wrong, and nothing else may be removed.
  private func known(_ places: [ByteString], _ name: ByteString) -> [ByteString] {
    places.filter { place in
      scope.permits(place)
        && place.components.suffix(3) == [OwnNames.directory, ControlDirectory.trash, name]
    }
  }

  /// What is below a directory, as far as it can be looked at.
  private static func totals(of path: ByteString) -> RestoreTotals {
    var contents = PresentEntries(protected: [])
    if let directory = try? Directory.open(resolved: path) { try? contents.read(directory) }
    var totals = contents.totals
    if let note = try? Directory.open(resolved: path).status(TrashNote.file), totals.files > 0,
      totals.bytes >= note.size
    {
      totals.files -= 1
      totals.bytes -= note.size
    }
    return totals
  }

  // MARK: - Emptying

  /// Whether the operation that something is of, or one that brings it back, is going on, or was
  /// interrupted and can need it.
  public func isInUse(_ item: Item) throws(SystemError) -> Bool {
    guard let journal = try ControlDirectory.open(ControlDirectory.journal, root: root) else {
      return false
    }
    for name in try journal.names() {
      guard let id = OperationJournal.id(name) else { continue }
      if ByteString(id) == item.id { return true }
      // It may end between two looks; one that nobody can read may need anything.
      guard let file = try ControlDirectory.file(name, in: journal) else { continue }
      guard let record = try JournalRecord.read(file) else { return true }
      if record.roots.contains(where: { root in item.directories.contains { root.path.isWithin($0) }
      }) {
        return true
      }
    }
    return false
  }

  /// Removes what an operation put there, by directory handles; a volume that is mounted in it stays.
  public func remove(_ item: Item) throws(SystemError) {
    _ = try remove(item, counting: ProgressCounters()) { false }
  }

  /// The same, counting what is gone; false where it was asked to stop before all was. What is left
  /// is known as before then.
  public func remove(
    _ item: Item, counting counters: ProgressCounters, isStopping: @escaping () -> Bool
  ) throws(SystemError) -> Bool {
    let watch = RemovalWatch(
      didRemove: { counters.didHandle(files: 1) }, isStopping: isStopping)
    // Where the note lies comes last, and there the note.
    for path in item.directories.reversed() {
      do throws(SystemError) {
        counters.begin(path)
        guard try Self.removeContents(of: path, watch) else { return false }
        try Directory.open(resolved: path.parent).removeTree(item.id)
      } catch { if !error.isMissing { throw error } }
    }
    return true
  }

  /// Removes all in an operation's directory but the note; false where it was asked to stop.
  private static func removeContents(
    of path: ByteString, _ watch: RemovalWatch
  ) throws(SystemError) -> Bool {
    let directory = try Directory.open(resolved: path)
    // A volume that is mounted there is refused as a whole, below.
    if try directory.status().isMountPoint { return true }
    var failure: SystemError?
    for name in try directory.names() where name != TrashNote.file {
      do throws(SystemError) {
        guard try directory.removeTree(name, watch: watch) else { return false }
      } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
    return true
  }

  /// Removes the directory of an operation that was taken back, where nothing was put there: else it would be
  /// listed, and without a note it would stay for good. Of another it removes the program's own names.
  func removeEmpty(_ id: String) {
    guard let item = (try? unmeasured())?.first(where: { $0.id == ByteString(id) }) else { return }
    if item.directories.allSatisfy(Self.isEmpty) { return (try? remove(item)) ?? () }
    for path in item.directories { Self.removeOwn(in: path) }
  }

  /// Removes what an interruption left of the program's own in an operation's directory, but for the note.
  private static func removeOwn(in path: ByteString) {
    guard let directory = try? Directory.open(resolved: path), let names = try? directory.names()
    else {
      return
    }
    for name in names where AtomicFile.isTemporary(name) || TrashDirectory.isProbe(name) {
      try? directory.remove(name)
    }
  }

  private static func isEmpty(_ path: ByteString) -> Bool {
    do throws(SystemError) {
      return try holdsNothing(Directory.open(resolved: path)) { name in
        name == TrashNote.file || AtomicFile.isTemporary(name) || TrashDirectory.isProbe(name)
      }
    } catch { return error.isMissing }
  }

  /// Whether there are only directories below a directory, and in itself what is the program's own.
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

  /// Removes what of these apps, groups and directories is older than a day.
  ///
  /// What cannot be removed stays for the next time: what was just done is done all the same.
  func removeOld(of subjects: [ByteString], now: Timestamp) {
    for item in (try? unmeasured()) ?? []
    where item.operation != nil && now.since(item.time) > Self.age
      && (try? isInUse(item)) == false
    {
      let done = item.subjects.filter(subjects.contains)
      if done.count == item.subjects.count {
        try? remove(item)
        continue
      }
      for (subject, place) in done.flatMap({ subject in item.directories.map { (subject, $0) } }) {
        guard let name = subject.lastComponent, let kind = subject.components.first else {
          continue
        }
        try? Directory.open(resolved: place).directory(kind).removeTree(name)
      }
    }
  }
}
