internal import ArchiveStore
internal import SystemIO

/// A unit that a thread works at: its directory, and what was found out so far.
final class WorkItemContext {
  let unit: WorkItem
  let directory: DirectoryContext
  var results = ItemResults()
  /// What the next run is told in case this one is interrupted.
  var notes: DirectoryCheckpoint

  init(_ unit: WorkItem, _ run: BackupRun) {
    self.unit = unit
    directory = DirectoryContext(unit.directory, run)
    notes = run.source.makeNotes(directory.facts.key)
  }

  /// A unit of an entry alone, that of its directory.
  convenience init(parentOf entry: EntryID, _ run: BackupRun) {
    let directory = run.assembly.parent(of: entry)
    self.init(WorkItem(directory: directory, entries: [], isVisit: false), run)
  }

  /// Adds an entry that was read, and notes it.
  func add(_ index: Int, _ read: ReadEntry) throws(StoreError) {
    precondition(read.heldAt == nil, "the file has no content yet")
    let encoded = try read.entry.encoded()
    notes.add(read.entry.name, read.status, isStable: read.isStable, encoded: encoded)
    let scanned = directory.scan.entries[index].status
    results.add(
      index, encoded, status: read.status.isRecorded(as: scanned) ? nil : read.status,
      isStable: read.isStable)
  }
}

/// An entry as it was read.
struct ReadEntry {
  var entry: TreeEntry
  /// The status of after the reading.
  let status: FileStatus
  var isStable: Bool
  /// Where among those that are held the file's bytes lie: then the entry has no content yet.
  var heldAt: Range<Int>?
}

/// The directory of a unit: its place in the scan, and what is known of it.
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
    // Directories without facts are known as a whole, and never in hand.
    facts =
      known.directories[id.index]
      ?? UnchangedEntries.DirectoryFacts(key: DirectoryKey(container: path), place: nil)
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
