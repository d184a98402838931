internal import ArchiveStore
internal import SystemIO

/// Small files that a thread has read but not stored yet. Hashing them together takes a fraction of
/// the time of hashing them one by one.
///
/// Their work items wait with them. The batch holds at most `countLimit` files and `capacity`
/// bytes, plus the bytes by which a file has grown since the scan. While the thread reads a large
/// file, the batch waits for its end, as does the current frame; after a crash its files are read
/// again.
final class SmallFileBatch {
  /// The sizes of files that are held, in bytes: an empty file needs no hash, and the pieces of a
  /// larger one are hashed together.
  static let sizes: ClosedRange<UInt64> = 1...UInt64(ContentWriter.smallFile)
  /// The capacity in bytes.
  static let capacity = 1 << 20
  /// The maximum number of files: holding more tiny files gains nothing.
  static let countLimit = 256

  /// A held file and the range of its bytes in the batch.
  struct File {
    let context: WorkItemContext
    let index: Int
    let read: BackupWorker.ReadEntry
    let range: Range<Int>
  }

  private(set) var files: [File] = []
  private var bytes: [UInt8] = []
  /// The number of bytes that belong to files; the rest is of a file that failed or is read again.
  private var end = 0
  /// Work items that wait only for the contents of their files.
  private var waiting: [WorkItemContext] = []

  init() { bytes.reserveCapacity(Self.capacity) }

  /// Whether a file of `size` bytes fits.
  func hasRoom(for size: UInt64) -> Bool {
    files.count < Self.countLimit && UInt64(end) + size <= UInt64(Self.capacity)
  }

  /// Reads a file's bytes and returns their range. They are held only once the file is added,
  /// before the next one is read.
  ///
  /// - Throws: `BackupWorker.DatabaseFound` if the file begins like a database.
  func read(_ size: Int, of file: borrowing Descriptor) throws -> Range<Int> {
    bytes.removeLast(bytes.count - end)
    try file.read(count: size, at: 0, appendingTo: &bytes)
    let bytes = bytes
    try BackupWorker.DatabaseFound.check(bytes.span.extracting(end..<bytes.count))
    return end..<bytes.count
  }

  /// Holds the file that was read last.
  func add(
    _ index: Int, _ read: BackupWorker.ReadEntry, at range: Range<Int>, of context: WorkItemContext
  ) {
    files.append(File(context: context, index: index, read: read, range: range))
    end = bytes.count
  }

  /// Makes a work item wait for its files; returns false if none of them is held.
  func enqueue(_ context: WorkItemContext) -> Bool {
    guard let last = files.last, last.context === context else { return false }
    waiting.append(context)
    return true
  }

  /// Returns the contents of the files in their order, as `store` returns them.
  func contents(
    _ store: ([ContentWriter.SmallFile], Span<UInt8>) throws -> [Content]
  ) throws -> [Content] {
    let bytes = bytes
    return try store(files.map(\.small), bytes.span)
  }

  /// Empties the batch; returns the work items that waited.
  func removeAll() -> [WorkItemContext] {
    defer { waiting.removeAll(keepingCapacity: true) }
    files.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
    end = 0
    return waiting
  }
}

extension SmallFileBatch.File {
  fileprivate var small: ContentWriter.SmallFile {
    ContentWriter.SmallFile(
      logicalPath: context.directory.path.appending(read.entry.name), range: range,
      hints: FileHints(read.status))
  }
}
