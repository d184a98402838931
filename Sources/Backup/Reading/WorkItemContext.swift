internal import ArchiveStore
internal import DatabaseCapture
internal import DeviceScan
internal import SystemIO

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

  /// Whether the scan found a child with this name that is not stored.
  func isExcluded(_ name: ByteString) -> Bool {
    child(name) == nil
      && scan.entries[Int(id.index)].children.contains { scan.name($0) == name }
  }
}
