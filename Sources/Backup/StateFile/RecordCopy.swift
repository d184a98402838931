internal import ArchiveStore
internal import SystemIO

/// Copies directories' records from one file to another, with everything below them.
///
/// A damaged record is not copied; the entry that names it then has no record.
struct RecordCopy {
  private let source: RecordFile
  private let target: RecordFile
  private var open: [Level] = []

  /// A directory that is being copied.
  private struct Level {
    var entries: EntryCursor
    let tree: TreeReference?
    var record: DirectoryRecord
    /// The entry of the directory that is copied next, below this one.
    var waiting: KnownEntry?
  }

  init(from source: RecordFile, to target: RecordFile) {
    self.source = source
    self.target = target
  }

  /// Copies a directory; returns the location of its record in the target.
  mutating func copy(_ place: RecordPointer) -> RecordPointer? {
    guard push(place) else { return nil }
    while true {
      let top = open.count - 1
      if let entry = open[top].entries.next() {
        open[top].waiting = entry
        if let directory = entry.directory, push(directory) { continue }
        open[top].record.keep(entry, directory: nil)
      } else {
        let level = open.removeLast()
        let copied = level.record.write(tree: level.tree)
        guard let parent = open.indices.last else { return copied }
        if let entry = open[parent].waiting { open[parent].record.keep(entry, directory: copied) }
      }
    }
  }

  private mutating func push(_ place: RecordPointer) -> Bool {
    guard let directory = DirectoryContents(source.read(place)) else { return false }
    open.append(
      Level(
        entries: EntryCursor(directory, source), tree: directory.tree,
        record: DirectoryRecord(target)))
    return true
  }
}
