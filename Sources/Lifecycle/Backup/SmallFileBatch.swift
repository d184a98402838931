internal import ArchiveStore
internal import SystemIO

/// Small files of a thread that are read and not stored yet: hashed together they take a part of the
/// time that they take one by one.
///
/// Their units wait with them. What is held is at most `room` bytes, and what a file has grown by
/// since the scan. While their thread reads a large file they wait for its end, as the frame in hand
/// does; a crash costs reading them again.
final class SmallFileBatch {
  /// Which files are held, in bytes: an empty one needs no hash, and of a larger one the pieces are
  /// hashed together.
  static let sizes: ClosedRange<UInt64> = 1...UInt64(ContentWriter.smallFile)
  /// Bytes.
  static let room = 1 << 20
  /// Of tiny files so many: there is nothing to gain from more.
  static let most = 256

  /// A file, and where its bytes lie among those that are held.
  struct File {
    let hand: WorkItemContext
    let index: Int
    let read: ReadEntry
    let place: Range<Int>
  }

  private(set) var files: [File] = []
  private var bytes: [UInt8] = []
  /// How many of the bytes are files'; what follows is of one that has failed, or is read again.
  private var end = 0
  /// Units that wait for nothing but their files' contents.
  private var waiting: [WorkItemContext] = []

  init() { bytes.reserveCapacity(Self.room) }

  /// Whether a file of so many bytes has room.
  func hasRoom(for size: UInt64) -> Bool {
    files.count < Self.most && UInt64(end) + size <= UInt64(Self.room)
  }

  /// Reads a file's bytes and tells where they lie. They are held once the file is added, before the
  /// next one is read.
  ///
  /// - Throws: `DatabaseFound` when the file begins as a database does.
  func read(_ size: Int, of file: borrowing Descriptor) throws -> Range<Int> {
    bytes.removeLast(bytes.count - end)
    try file.read(count: size, at: 0, appendingTo: &bytes)
    let bytes = bytes
    try DatabaseFound.check(bytes.span.extracting(end..<bytes.count))
    return end..<bytes.count
  }

  /// Holds a file that was read last.
  func add(_ index: Int, _ read: ReadEntry, at place: Range<Int>, of hand: WorkItemContext) {
    files.append(File(hand: hand, index: index, read: read, place: place))
    end = bytes.count
  }

  /// Lets a unit wait for its files; false where none of them is held.
  func keep(_ hand: WorkItemContext) -> Bool {
    guard let last = files.last, last.hand === hand else { return false }
    waiting.append(hand)
    return true
  }

  /// The contents of the files, in their order, as `store` gives them.
  func contents(
    _ store: ([SmallFile], Span<UInt8>) throws -> [Content]
  ) throws -> [Content] {
    let bytes = bytes
    return try store(files.map(\.small), bytes.span)
  }

  /// Begins anew; gives the units that waited.
  func removeAll() -> [WorkItemContext] {
    defer { waiting.removeAll(keepingCapacity: true) }
    files.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
    end = 0
    return waiting
  }
}

extension SmallFileBatch.File {
  fileprivate var small: SmallFile {
    SmallFile(
      logicalPath: hand.directory.path.appending(read.entry.name), place: place,
      hints: FileHints(read.status))
  }
}
