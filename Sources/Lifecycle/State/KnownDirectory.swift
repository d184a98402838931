public import ArchiveStore
internal import Codecs
public import SystemIO

/// What earlier runs knew of a folder: joined with what is there now by asking for each name in the
/// order of the names' bytes.
///
/// One thread uses one. A name that is asked for out of order is not found, which costs a reading.
public struct KnownDirectory {
  /// The stored tree of the directory, when the last finished run stored it.
  public let tree: TreeReference?
  /// How many entries the last finished run knew in it.
  public let count: Int
  /// Where its record is: what a parent's entry names when nothing in the directory changed.
  public let place: RecordPointer?

  private var finished: EntryCursor
  private var interrupted: [EntryCursor]

  init(_ file: RecordFile?, _ place: RecordPointer?, _ parts: [EntryCursor]) {
    interrupted = parts
    guard let file, let place, let record = DirectoryContents(file.read(place)) else {
      (tree, count, self.place) = (nil, 0, nil)
      finished = EntryCursor()
      return
    }
    (tree, count, self.place) = (record.tree, record.count, place)
    finished = EntryCursor(record, file)
  }

  /// What is known of a name. What an interrupted run read later comes first where it still holds.
  public mutating func find(_ name: Span<UInt8>, _ status: FileStatus) -> KnownEntry? {
    let known = finished.find(name)
    for index in interrupted.indices.reversed() {
      guard let entry = interrupted[index].find(name) else { continue }
      if ChangeRules.isUnchanged(entry, status) { return entry }
    }
    return known
  }

  /// What is known of a name.
  public mutating func find(_ name: ByteString, _ status: FileStatus) -> KnownEntry? {
    name.withSpan { find($0, status) }
  }
}

/// A directory's record as it was read.
struct DirectoryContents {
  let bytes: [UInt8]
  let tree: TreeReference?
  let count: Int
  let isPaged: Bool

  /// Takes the bytes of a record; nothing when they are none.
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

  /// The places of the pages, when the entries are not in the record itself.
  var pages: [RecordPointer] {
    guard isPaged else { return [] }
    return stride(
      from: DirectoryLayout.header, through: bytes.count - RecordPointer.size,
      by: RecordPointer.size
    ).map { RecordPointer(bytes.span, at: $0) }
  }
}
