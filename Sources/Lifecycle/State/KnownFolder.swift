public import ArchiveStore
internal import Codecs
public import SystemIO

/// What earlier runs knew of a folder: joined with what is there now by asking for each name in the
/// order of the names' bytes.
///
/// One thread uses one. A name that is asked for out of order is not found, which costs a reading.
public struct KnownFolder {
  /// The stored tree of the folder, when the last finished run stored it.
  public let tree: TreeReference?
  /// How many entries the last finished run knew in it.
  public let count: Int
  /// Where its record is: what a parent's entry names when nothing in the folder changed.
  public let place: RecordPlace?

  private var finished: EntryCursor
  private var interrupted: [EntryCursor]

  init(_ file: RecordFile?, _ place: RecordPlace?, _ parts: [EntryCursor]) {
    interrupted = parts
    guard let file, let place, let record = FolderContents(file.read(place)) else {
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

/// A folder's record as it was read.
struct FolderContents {
  let bytes: [UInt8]
  let tree: TreeReference?
  let count: Int
  let isPaged: Bool

  /// Takes the bytes of a record; nothing when they are none.
  init?(_ bytes: [UInt8]?) {
    guard let bytes, bytes.count >= FolderLayout.header else { return nil }
    let span = bytes.span
    let flags: UInt32 = LittleEndian.integer(span, at: FolderLayout.flags)
    guard flags & ~(FolderLayout.hasTree | FolderLayout.isPaged) == 0,
      let digest = Digest(span.extracting(FolderLayout.tree..<FolderLayout.header))
    else { return nil }
    self.bytes = bytes
    tree = flags & FolderLayout.hasTree != 0 ? TreeReference(digest) : nil
    count = Int(LittleEndian.integer(span, at: FolderLayout.count, as: UInt32.self))
    isPaged = flags & FolderLayout.isPaged != 0
  }

  /// The places of the pages, when the entries are not in the record itself.
  var pages: [RecordPlace] {
    guard isPaged else { return [] }
    return stride(
      from: FolderLayout.header, through: bytes.count - RecordPlace.size, by: RecordPlace.size
    ).map { RecordPlace(bytes.span, at: $0) }
  }
}
