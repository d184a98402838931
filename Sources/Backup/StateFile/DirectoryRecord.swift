internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The record of a directory as this run found it, with the entries in the order of their names'
/// bytes.
///
/// For use by one thread. An entry that is out of order or too long is omitted and is read again in
/// the next run.
struct DirectoryRecord {
  private let file: RecordFile?
  private var page: [UInt8] = []
  private var pages: [RecordPointer] = []
  private var count: UInt32 = 0
  /// The last name that was added, if `hasLast` is true.
  private var last: [UInt8] = []
  private var hasLast = false
  /// Whether pages were lost, for example on a full disk: then the directory is not recorded.
  private var isBroken = false

  init(_ file: RecordFile?) { self.file = file }

  /// Adds an entry that was scanned or read.
  ///
  /// - Parameters:
  ///   - status: the status; if the entry was read, the status after reading.
  ///   - isStable: whether it was unchanged long enough when it was read: `ChangeRules.isStable`.
  ///   - encoded: the result of `TreeEntry.encoded()`, or nil for an entry that is not stored.
  ///   - record: the location of the entry's own record: of a directory, or of a file's lists.
  mutating func add(
    _ name: Span<UInt8>, _ status: FileStatus, isStable: Bool, encoded: [UInt8]?,
    record: RecordPointer? = nil
  ) {
    guard follows(name),
      KnownEntry.Layout.append(
        name, status: status, isStable: isStable, encoded: encoded, record: record, to: &page)
    else {
      return
    }
    didAdd()
  }

  /// Adds an entry of an earlier run that is unchanged, including everything below it.
  mutating func reuse(_ known: KnownEntry) { reuse(known, record: known.record) }

  /// Adds an entry of an earlier run that is unchanged.
  ///
  /// - Parameter record: the current location of the entry's own record, or nil if it has none.
  mutating func reuse(_ known: KnownEntry, record: RecordPointer?) {
    guard known.name.withSpan({ follows($0) }) else { return }
    if record == known.record {
      page += known.bytes
    } else {
      page += known.bytes(movingRecordTo: record)
    }
    didAdd()
  }

  private mutating func follows(_ name: Span<UInt8>) -> Bool {
    if hasLast, !last.span.precedes(name) { return false }
    last.removeAll(keepingCapacity: true)
    last.append(name)
    hasLast = true
    return file != nil
  }

  private mutating func didAdd() {
    count += 1
    guard page.count >= EntryPage.size else { return }
    if let pointer = file?.append(page) { pages.append(pointer) } else { isBroken = true }
    page.removeAll(keepingCapacity: true)
  }

  /// Writes the record; returns nil if that is not possible.
  consuming func write(tree: TreeReference?) -> RecordPointer? {
    guard let file, !isBroken else { return nil }
    if !pages.isEmpty, !page.isEmpty {
      guard let pointer = file.append(page) else { return nil }
      pages.append(pointer)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Layout.header + page.count)
    Layout.append(tree, count: count, isPaged: !pages.isEmpty, to: &bytes)
    if pages.isEmpty { bytes += page } else { for pointer in pages { pointer.append(to: &bytes) } }
    return file.append(bytes)
  }
}

extension DirectoryRecord {
  /// The offsets of a directory record's fields (docs/state-file.md, "Directory").
  enum Layout {
    static let flags = 0
    static let count = 4
    static let tree = 8
    static let header = 40

    static let hasTree: UInt32 = 1
    static let isPaged: UInt32 = 2

    static func append(
      _ tree: TreeReference?, count: UInt32, isPaged: Bool, to bytes: inout [UInt8]
    ) {
      LittleEndian.append((tree == nil ? 0 : hasTree) | (isPaged ? Self.isPaged : 0), to: &bytes)
      LittleEndian.append(count, to: &bytes)
      if let tree {
        tree.digest.append(to: &bytes)
      } else {
        bytes += [UInt8](repeating: 0, count: Digest.byteCount)
      }
    }
  }

  /// The contents of a directory's record.
  struct Contents {
    let bytes: [UInt8]
    let tree: TreeReference?
    let count: Int
    let isPaged: Bool

    /// Reads the bytes of a record; returns nil if they are invalid.
    init?(_ bytes: [UInt8]?) {
      guard let bytes, bytes.count >= Layout.header else { return nil }
      let span = bytes.span
      let flags: UInt32 = LittleEndian.integer(span, at: Layout.flags)
      guard flags & ~(Layout.hasTree | Layout.isPaged) == 0,
        let digest = Digest(span.extracting(Layout.tree..<Layout.header))
      else { return nil }
      self.bytes = bytes
      tree = flags & Layout.hasTree != 0 ? TreeReference(digest) : nil
      count = Int(LittleEndian.integer(span, at: Layout.count, as: UInt32.self))
      isPaged = flags & Layout.isPaged != 0
    }

    /// The locations of the pages; empty if the entries are in the record itself.
    var pages: [RecordPointer] {
      guard isPaged else { return [] }
      return stride(
        from: Layout.header, through: bytes.count - RecordPointer.size,
        by: RecordPointer.size
      ).map { RecordPointer(bytes.span, at: $0) }
    }
  }
}

/// The entries of a directory that earlier runs recorded, looked up by name in the order of the
/// names' bytes.
///
/// For use by one thread. A name that is looked up out of order is not found, and its entry is read
/// again.
struct KnownDirectory {
  /// The directory's stored tree, if the last finished run stored it.
  let tree: TreeReference?
  /// The number of entries that the last finished run recorded.
  let count: Int
  /// The location of the record, for the parent's entry if nothing in the directory changed.
  let pointer: RecordPointer?

  private var finished: EntryPage.Cursor
  private var interrupted: [EntryPage.Cursor]

  init(_ file: RecordFile?, at pointer: RecordPointer?, parts: [EntryPage.Cursor]) {
    interrupted = parts
    guard let file, let pointer, let record = DirectoryRecord.Contents(file.read(pointer)) else {
      (tree, count, self.pointer) = (nil, 0, nil)
      finished = EntryPage.Cursor()
      return
    }
    (tree, count, self.pointer) = (record.tree, record.count, pointer)
    finished = EntryPage.Cursor(record, file)
  }

  /// Returns the recorded entry with a name. Entries that interrupted runs read later have
  /// precedence if they are still valid.
  mutating func find(_ name: Span<UInt8>, _ status: FileStatus) -> KnownEntry? {
    let known = finished.find(name)
    for index in interrupted.indices.reversed() {
      guard let entry = interrupted[index].find(name) else { continue }
      if ChangeRules.isUnchanged(entry, status) { return entry }
    }
    return known
  }
}

/// The identity of a directory in a source, derived from its container's logical path and the names
/// in its path.
struct DirectoryKey: Hashable, Sendable {
  let digest: Digest

  /// Creates the key of a container's root.
  init(container path: ByteString) { digest = path.withSpan { Blake2b.hash($0) } }

  init(_ digest: Digest) { self.digest = digest }

  /// Returns the key of a directory in this one.
  func directory(_ name: ByteString) -> DirectoryKey {
    DirectoryKey(Blake2b.hash(digest.bytes + name.bytes))
  }

  /// Returns the key of a file in this directory whose pieces are recorded. No directory has such a
  /// key, because names contain no slash.
  func file(_ name: ByteString) -> DirectoryKey {
    DirectoryKey(Blake2b.hash(digest.bytes + name.bytes + [UInt8(ascii: "/")]))
  }
}
