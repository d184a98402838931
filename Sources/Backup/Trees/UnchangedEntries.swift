internal import ArchiveStore
internal import DeviceScan
internal import SystemIO

/// The entries of a container that need not be read because they are unchanged since the state was
/// recorded.
struct UnchangedEntries: Sendable {
  /// A directory in which something changed.
  struct DirectoryFacts: Sendable {
    let key: DirectoryKey
    /// The location of the directory's record.
    let record: RecordPointer?
    /// Its attributes and flags, if they are unchanged.
    var metadata: StoredMetadata?

    init(key: DirectoryKey, record: RecordPointer?) {
      (self.key, self.record) = (key, record)
    }
  }

  /// The flags of an entry.
  struct Flags: OptionSet, Sendable, BitwiseCopyable {
    let rawValue: UInt8
    /// The stored version of a file, link or special file is current.
    static let isKnown = Flags(rawValue: 1)
    /// The stored version of a directory is current, including everything below it.
    static let isWhole = Flags(rawValue: 2)
    /// An earlier version of a file is stored. `growth` is the difference of their sizes.
    static let hasEarlierVersion = Flags(rawValue: 4)
  }

  var flags: SpillableArray<Flags>
  var directories: [Int32: DirectoryFacts] = [:]
  /// The bytes by which files exceed their stored earlier versions; no entry for 0 bytes.
  var growth: [Int32: UInt64] = [:]
  /// Files whose content is stored but whose hard link group now has another name.
  var renamedLinks: [Int32: TreeEntry] = [:]
  /// Files of a copied revision, as copies of the stored originals.
  var copies: [Int32: RevisionCopy.File] = [:]
  /// The stored entries of files that are or may be databases and whose status is unchanged since
  /// an earlier boot of the machine: databases are read (docs/state-file.md, "Restarts").
  var uncertain: [Int32: TreeEntry] = [:]
  /// Files that are databases by their names, if at least one of their files must be read or all
  /// are copies.
  var databases: [Int32: DatabaseFiles] = [:]
  /// The logs and journals of these databases, which are handled with them.
  var companions: Set<Int32> = []
  /// Files that must be read and cannot be, because the device is locked.
  var waiting: [Int32: WaitingFile] = [:]
  /// The container's root with its tree, or nil if something below it changed.
  var root: KnownContainer?

  /// Creates a value without any known entries.
  init(entries: Int) { flags = SpillableArray(repeating: [], count: entries) }

  /// Whether nothing at and below a directory must be read.
  func isWhole(_ directory: Int) -> Bool { flags[directory].contains(.isWhole) }

  /// Whether the stored version of an entry is current; false for a directory with changes.
  func isKnown(_ index: Int) -> Bool { !flags[index].isDisjoint(with: [.isKnown, .isWhole]) }

  /// Returns the bytes of a file that no stored earlier version can contain: all of them if there
  /// is none.
  func newBytes(of index: Int, size: UInt64) -> UInt64 {
    guard flags[index].contains(.hasEarlierVersion) else { return size }
    return min(size, growth[Int32(index)] ?? 0)
  }
}

extension UnchangedEntries {
  /// The files of a database besides its main file.
  struct DatabaseFiles: Sendable {
    /// The log and the journal that the scan found.
    var companions: [Int32] = []
    /// The recorded entries of its files that were still valid at the scan.
    var known: [Int32: KnownEntry] = [:]
  }
}

extension SelectedTree {
  /// Whether an entry that is not a directory must be read.
  func isRead(_ index: Int, _ known: borrowing UnchangedEntries) -> Bool {
    scan.entries[index].status.kind != .directory && !known.isKnown(index)
  }

  /// Returns the number of results that complete a directory: one for each entry to read, one for
  /// each directory with changes, and its own.
  func awaited(_ directory: Int, _ known: borrowing UnchangedEntries) -> Int {
    var count = 1
    for child in children(of: directory) where !known.isKnown(Int(child)) { count += 1 }
    return count
  }
}

/// The extended attributes and flags of an entry.
struct StoredMetadata: Sendable {
  var attributes: [Attribute] = []
  var flags: UInt32 = 0
  /// Whether all of them could be read. If not, the next run must read them again.
  var isWhole = true
}
