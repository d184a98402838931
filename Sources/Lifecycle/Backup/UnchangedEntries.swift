internal import ArchiveStore
internal import SystemIO

/// What of a container need not be read: what the state knows, and what of it is as it was.
struct UnchangedEntries: Sendable {
  /// A directory of which not all is as it was.
  struct DirectoryFacts: Sendable {
    let key: DirectoryKey
    /// Where the directory's record is.
    let place: RecordPointer?
    /// Its attributes and flags, where they are as they were.
    var metadata: StoredMetadata?

    init(key: DirectoryKey, place: RecordPointer?) {
      (self.key, self.place) = (key, place)
    }
  }

  /// What is true of an entry, a bit each.
  struct Flags: OptionSet, Sendable, BitwiseCopyable {
    let rawValue: UInt8
    /// A file, link or special file is stored as it is now.
    static let isKnown = Flags(rawValue: 1)
    /// A directory is stored as it is now with all below it.
    static let isWhole = Flags(rawValue: 2)
  }

  var flags: SpillableArray<Flags>
  var directories: [Int32: DirectoryFacts] = [:]
  /// Files whose content is known but whose group of hard links has another name.
  var renamedLinks: [Int32: TreeEntry] = [:]
  /// Files of a revision that a refresh has copied, as the originals are stored.
  var copies: [Int32: CopiedFile] = [:]
  /// Files that are databases if their names do not mislead, of which something is to be read.
  var databases: [Int32: DatabaseFiles] = [:]
  /// Their logs and journals, which are read with them.
  var companions: Set<Int32> = []
  /// The container's root with its tree, when nothing below it changed.
  var root: KnownContainer?

  /// Nothing is known.
  init(entries: Int) { flags = SpillableArray(repeating: [], count: entries) }

  /// Whether nothing at and below a directory is to be read.
  func isWhole(_ directory: Int) -> Bool { flags[directory].contains(.isWhole) }

  /// Whether an entry, other than a directory of which something changed, is stored as it is now.
  func isKnown(_ index: Int) -> Bool { !flags[index].isEmpty }
}

/// The files of a database besides the one that it is named by.
struct DatabaseFiles: Sendable {
  /// Its log and its journal, as far as the scan found them.
  var companions: [Int32] = []
  /// What an earlier run stored of its files, where that still held at the scan.
  var known: [Int32: KnownEntry] = [:]
}

extension SelectedTree {
  /// Whether an entry, no directory, is to be read.
  func isRead(_ index: Int, _ known: borrowing UnchangedEntries) -> Bool {
    scan.entries[index].status.kind != .directory && !known.isKnown(index)
  }

  /// How many results make a directory complete: of each entry that is to be read, each directory of
  /// which something changed, and its own.
  func awaited(_ directory: Int, _ known: borrowing UnchangedEntries) -> Int {
    var count = 1
    for child in children(of: directory) where !known.isKnown(Int(child)) { count += 1 }
    return count
  }
}
