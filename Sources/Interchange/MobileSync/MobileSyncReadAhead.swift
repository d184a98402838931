internal import SystemIO

/// Entries of a backup with the contents of small files, which a worker thread has read.
struct MobileSyncBatch: Sendable {
  private(set) var entries: [Entry] = []
  /// The contents of small files.
  private(set) var bytes: [UInt8] = []
  /// The entries that cannot be imported, and the properties that were dropped.
  private(set) var skipped = SkippedEntries()

  /// An entry and its content.
  struct Entry: Sendable {
    var entry: ForeignEntry
    let domain: ByteString
    let relativePath: ByteString
    let content: Content

    /// The path for messages (`MobileRecord.shownPath`).
    var shownPath: ByteString { domain.appending(relativePath) }
  }

  /// The content of an entry.
  enum Content: Sendable {
    /// Nothing to read: a directory, a link, or a file that is unchanged since the last import.
    case none
    /// The content of a small file, by its range in `bytes`.
    case bytes(Range<Int>)
    case damaged(PayloadFault)
    /// The content of a larger file, which is opened when its turn comes.
    case unopened(MobileRecord)
  }

  /// The number of rows of a manifest in a batch.
  static let rows = 128
  /// The size of a small file and of all contents in a batch, in bytes.
  private static let smallFile: UInt64 = 64 << 10
  private static let capacity: UInt64 = 1 << 20

  /// Creates a batch without entries.
  init() {}

  /// Reads rows of a manifest.
  init(_ rows: [ManifestEntry], by reader: MobileSyncEntryReader) {
    entries.reserveCapacity(rows.count)
    var last = MobileSyncEntryReader.LastContainer()
    for row in rows {
      switch row.record() {
      case .success(let record):
        do throws(RecordFault) { try add(record, &last, by: reader) } catch {
          skipped.append(path: record.shownPath, reason: error.reason)
        }
      case .failure(let row): skipped.append(path: row.path, reason: row.reason)
      }
    }
  }

  private mutating func add(
    _ record: MobileRecord, _ last: inout MobileSyncEntryReader.LastContainer,
    by reader: MobileSyncEntryReader
  ) throws(RecordFault) {
    var entry = try reader.entry(of: record, &last, skipping: &skipped)
    var content = Content.none
    if case .file = entry.kind, try !reader.addKnownContent(of: record, to: &entry) {
      content = try self.content(of: record, &entry, by: reader)
    }
    entries.append(
      Entry(
        entry: entry, domain: record.domain, relativePath: record.relativePath, content: content))
  }

  /// Reads the content of a file if it is small.
  private mutating func content(
    of record: MobileRecord, _ entry: inout ForeignEntry, by reader: MobileSyncEntryReader
  ) throws(RecordFault) -> Content {
    guard hasRoom(for: record.file.size) else { return .unopened(record) }
    var payload = try reader.payload(of: record)
    guard hasRoom(for: payload.size) else { return .unopened(record) }
    reader.add(payload, of: record, to: &entry, skipping: &skipped)
    let start = bytes.count
    do throws(PayloadFault) { try payload.readAll(appendingTo: &bytes) } catch {
      bytes.removeLast(bytes.count - start)
      return .damaged(error)
    }
    return .bytes(start..<bytes.count)
  }

  private func hasRoom(for size: UInt64) -> Bool {
    size <= Self.smallFile && UInt64(bytes.count) + size <= Self.capacity
  }
}

/// Reads the entries of a manifest ahead on worker threads, and returns them in its order.
struct MobileSyncReadAhead: ~Copyable {
  private var manifest: MobileSyncManifest
  /// nil if the system permits no further threads: batches are then read when they are needed.
  private let workers: Workers?
  /// The batches that are being read, each in a separate queue.
  private var batches: [BoundedQueue<MobileSyncBatch>] = []
  private let limit: Int
  private var isAtEnd = false
  /// The fault that ended the manifest.
  private var fault: ManifestFault?

  /// Begins to read.
  ///
  /// - Parameter threads: the number of threads. The number of batches in memory, with up to 1 MiB
  ///   of contents each, is twice this number plus one.
  init(_ manifest: consuming MobileSyncManifest, threads: Int) {
    self.manifest = manifest
    limit = 2 * max(1, threads) + 1
    workers = try? Workers(count: threads, capacity: limit, name: "read-backup")
  }

  /// Returns the next batch; nil after the last one.
  mutating func next(by reader: MobileSyncEntryReader) throws(ManifestFault) -> MobileSyncBatch? {
    while !isAtEnd, batches.count < limit { submit(to: reader) }
    guard !batches.isEmpty else {
      if let fault { throw fault }
      return nil
    }
    return batches.removeFirst().dequeue()
  }

  /// Reads the next rows, and lets a thread read their contents.
  private mutating func submit(to reader: MobileSyncEntryReader) {
    var rows: [ManifestEntry] = []
    rows.reserveCapacity(MobileSyncBatch.rows)
    do throws(ManifestFault) {
      while rows.count < MobileSyncBatch.rows, let row = try manifest.next() { rows.append(row) }
    } catch { fault = error }
    isAtEnd = rows.count < MobileSyncBatch.rows
    guard !rows.isEmpty else { return }
    let (all, result) = (rows, BoundedQueue<MobileSyncBatch>(capacity: 1))
    let job: @Sendable () -> Void = { result.enqueue(MobileSyncBatch(all, by: reader)) }
    if workers?.submit(job) != true { job() }
    batches.append(result)
  }
}
