package import ArchiveStore
internal import Codecs
package import SystemIO

/// The entries of a directory that earlier runs recorded, looked up by name in the order of the
/// names' bytes.
///
/// For use by one thread. A name that is looked up out of order is not found, and its entry is read
/// again.
package struct KnownDirectory {
  /// The directory's stored tree, if the last finished run stored it.
  package let tree: TreeReference?
  /// The number of entries that the last finished run recorded.
  package let count: Int
  /// The location of the record, for the parent's entry if nothing in the directory changed.
  package let place: RecordPointer?

  private var finished: EntryCursor
  private var interrupted: [EntryCursor]

  init(_ file: RecordFile?, at place: RecordPointer?, parts: [EntryCursor]) {
    interrupted = parts
    guard let file, let place, let record = DirectoryContents(file.read(place)) else {
      (tree, count, self.place) = (nil, 0, nil)
      finished = EntryCursor()
      return
    }
    (tree, count, self.place) = (record.tree, record.count, place)
    finished = EntryCursor(record, file)
  }

  /// Returns the recorded entry with a name. Entries that interrupted runs read later have
  /// precedence if they are still valid.
  package mutating func find(_ name: Span<UInt8>, _ status: FileStatus) -> KnownEntry? {
    let known = finished.find(name)
    for index in interrupted.indices.reversed() {
      guard let entry = interrupted[index].find(name) else { continue }
      if ChangeRules.isUnchanged(entry, status) { return entry }
    }
    return known
  }

  /// Returns the recorded entry with a name.
  package mutating func find(_ name: ByteString, _ status: FileStatus) -> KnownEntry? {
    name.withSpan { find($0, status) }
  }
}

/// The contents of a directory's record.
struct DirectoryContents {
  let bytes: [UInt8]
  let tree: TreeReference?
  let count: Int
  let isPaged: Bool

  /// Reads the bytes of a record; returns nil if they are invalid.
  init?(_ bytes: [UInt8]?) {
    guard let bytes, bytes.count >= DirectoryLayout.header else { return nil }
    let span = bytes.span
    let flags: UInt32 = LittleEndian.integer(span, at: DirectoryLayout.flags)
    guard flags & ~(DirectoryLayout.hasTree | DirectoryLayout.isPaged) == 0,
      let digest = Digest(span.extracting(DirectoryLayout.tree..<DirectoryLayout.header))
    else { return nil }
    self.bytes = bytes
    tree = flags & DirectoryLayout.hasTree != 0 ? TreeReference(digest) : nil
    count = Int(LittleEndian.integer(span, at: DirectoryLayout.count, as: UInt32.self))
    isPaged = flags & DirectoryLayout.isPaged != 0
  }

  /// The locations of the pages; empty if the entries are in the record itself.
  var pages: [RecordPointer] {
    guard isPaged else { return [] }
    return stride(
      from: DirectoryLayout.header, through: bytes.count - RecordPointer.size,
      by: RecordPointer.size
    ).map { RecordPointer(bytes.span, at: $0) }
  }
}
