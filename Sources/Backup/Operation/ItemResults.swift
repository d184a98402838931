internal import ArchiveStore
internal import SystemIO

/// The results of a thread for some entries of one directory. One buffer holds the encoded entries.
struct ItemResults: Sendable {
  /// The processed entries, including the missing ones.
  private(set) var entries: [Entry] = []
  private(set) var bytes: [UInt8] = []
  /// Files created after the scan that are stored with a scanned one, for example a database's log.
  private(set) var extras: [Extra] = []
  /// The directory's own attributes and flags, if they were read.
  var metadata: StoredMetadata?

  struct Entry: Sendable {
    let index: Int32
    /// The range of the encoded entry; empty if the entry is missing.
    let range: Range<Int>
    /// The status after reading, or nil if it equals the scanned one.
    let status: FileStatus?
    /// Whether the next run can rely on the content.
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

  /// Adds an entry that is missing from the snapshot.
  mutating func miss(_ index: Int) {
    entries.append(Entry(index: Int32(index), range: 0..<0, status: nil, isStable: false))
  }
}

/// The extended attributes and flags of an entry.
struct StoredMetadata: Sendable {
  var attributes: [Attribute] = []
  var flags: UInt32 = 0
  /// Whether all of them could be read. If not, the next run must read them again.
  var isWhole = true
}
