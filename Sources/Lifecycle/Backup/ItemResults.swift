internal import ArchiveStore
internal import SystemIO

/// What a thread found out about some entries of one folder: the encoded entries in one arena.
struct ItemResults: Sendable {
  /// The entries that are dealt with, those that are missed among them.
  private(set) var entries: [Entry] = []
  private(set) var bytes: [UInt8] = []
  /// Files that came after the scan and are stored with one that it found: a database's log.
  private(set) var extras: [Extra] = []
  /// The directory's own attributes and flags, where they were read.
  var metadata: StoredMetadata?

  struct Entry: Sendable {
    let index: Int32
    /// Where the encoded entry lies; empty for one that is missed.
    let range: Range<Int>
    /// The status of after the reading, where it is not the scan's.
    let status: FileStatus?
    /// Whether the content may be relied on the next time.
    let isStable: Bool
  }

  /// Adds an encoded entry.
  mutating func add(
    _ index: Int, _ encoded: some Collection<UInt8>, status: FileStatus? = nil, isStable: Bool
  ) {
    let start = bytes.count
    bytes.append(contentsOf: encoded)
    entries.append(
      Entry(
        index: Int32(index), range: start..<bytes.count, status: status, isStable: isStable))
  }

  struct Extra: Sendable {
    let name: ByteString
    let encoded: [UInt8]
    let status: FileStatus
    let isStable: Bool
  }

  /// Adds a file that the scan did not find.
  mutating func add(_ extra: Extra) { extras.append(extra) }

  /// Adds an entry that is not in the snapshot.
  mutating func miss(_ index: Int) {
    entries.append(Entry(index: Int32(index), range: 0..<0, status: nil, isStable: false))
  }
}

/// What is in an entry besides its status and its content.
struct StoredMetadata: Sendable {
  var attributes: [Attribute] = []
  var flags: UInt32 = 0
  /// Whether all of it could be read: else the next run must not take it for known.
  var isWhole = true
}
