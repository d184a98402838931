package import ArchiveStore
internal import DatabaseCapture
package import SystemIO

/// A stored database merged with its logs: the file that SQLite would produce on opening it,
/// computed without SQLite.
///
/// As in SQLite, a rollback journal first undoes the interrupted transaction, then the write-ahead
/// log adds the committed pages. The logs are read, verified and copied before the first byte is
/// written. The page locations are held in memory, 16 to 32 bytes a page.
package struct MergedDump {
  private let reader: RepositoryReader
  private let content: Content
  private var logs: [SpooledLog] = []
  /// The logs next to the database that do not change it, because their content is already in the
  /// database or was never committed.
  package private(set) var unused: [ByteString] = []

  /// Reads the logs next to the database at `path` in a snapshot. `cache` is the cache directory,
  /// such as `Host.cacheDirectory`, into which the logs are copied.
  ///
  /// - Throws: `OperationError` if a log cannot be merged; `StoreError` if something cannot be
  ///   read.
  package init(
    of content: Content, at path: ByteString, in snapshot: StoredSnapshot,
    from reader: RepositoryReader, cache: ByteString?
  ) throws {
    self.reader = reader
    self.content = content
    let directory = try SpoolDirectory.open(cache: cache)
    var base = Base(size: content.size, pageSize: try Self.pageSize(of: content, from: reader))
    var lost: PathRemark?
    let beside = try reader.sidecars(of: path, in: snapshot) { lost = lost ?? $0 }
    if let lost {
      throw StoreError(
        .damaged, "merge", subject: lost.path.description, reason: lost.remark,
        hint: "omit '--merge-log' to write the database without its logs")
    }
    for member in [DatabaseMember.journal, .log] {
      let name = DatabaseUnit(path).name(of: member)
      guard let found = beside.first(where: { $0.path == name }),
        case .file(let log) = found.entry.node
      else { continue }
      do {
        if let log = try Self.spool(log, member, over: base, from: reader, in: directory) {
          base = Base(size: log.overlay.size, pageSize: log.overlay.pageSize)
          logs.append(log)
        } else {
          unused.append(name)
        }
      } catch let refusal as LogRefusal {
        throw Self.cannotMerge(name, refusal)
      }
    }
  }

  /// The state of the database before the next log is read.
  private struct Base {
    let size: UInt64
    /// The page size, or nil if the header cannot be read, for example if the database is
    /// encrypted.
    let pageSize: Int?
  }

  private static func spool(
    _ log: Content, _ member: DatabaseMember, over base: Base, from reader: RepositoryReader,
    in directory: borrowing Directory
  ) throws -> SpooledLog? {
    // SQLite treats a log next to an empty database as left over from another database.
    if base.size == 0 { return nil }
    let spooled =
      if member == .journal {
        try SpooledLog.read(
          log, by: RollbackJournal(size: log.size, databasePageSize: base.pageSize),
          from: reader, in: directory)
      } else {
        try SpooledLog.read(log, by: WriteAheadLog(size: log.size), from: reader, in: directory)
      }
    guard let overlay = spooled?.overlay else { return nil }
    // A journal may undo a change of the page size, but a write-ahead log never contains such a
    // change.
    if member == .log, let own = base.pageSize, own != overlay.pageSize {
      throw LogRefusal.otherPageSize(log: overlay.pageSize, database: own)
    }
    try overlay.requireFit(over: base.size)
    return spooled
  }

  private static func cannotMerge(_ log: ByteString, _ refusal: LogRefusal) -> OperationError {
    OperationError(
      .failed, code: .cannotMergeLog, "merge the log", subject: log, reason: refusal.reason,
      hint: "use '--tar' to write the database and its logs unchanged")
  }

  private struct EndOfInterest: Error {}

  private static func pageSize(
    of content: Content, from reader: RepositoryReader
  ) throws -> Int? {
    var head: [UInt8] = []
    do {
      try reader.writeBytes(of: content) { bytes in
        let count = min(bytes.count, DatabaseUnit.headSize - head.count)
        for index in 0..<count { head.append(bytes[index]) }
        if head.count == DatabaseUnit.headSize { throw EndOfInterest() }
      }
    } catch is EndOfInterest {}
    return DatabaseUnit.pageSize(head: head.span)
  }

  /// Writes the database's bytes in order, once. Each blob is verified before its bytes are
  /// written.
  package func write(to sink: (Span<UInt8>) throws -> Void) throws {
    try write(through: logs[...], to: sink)
  }

  private func write(
    through logs: ArraySlice<SpooledLog>, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    guard let log = logs.last else { return try reader.writeBytes(of: content, to: sink) }
    let pages: PageOverlay.Merge.Log = { try log.read(count: $1, at: $0, into: &$2) }
    var merge = PageOverlay.Merge(log.overlay)
    try write(through: logs.dropLast()) { try merge.append($0, pages, to: sink) }
    try merge.finish(pages, to: sink)
  }
}

/// The valid part of a database's stored log, copied to a temporary file that is deleted with this
/// value.
final class SpooledLog {
  /// The valid pages of the log.
  let overlay: PageOverlay
  private let file: Descriptor

  private init(_ overlay: PageOverlay, in file: consuming Descriptor) {
    self.overlay = overlay
    self.file = file
  }

  /// Reads and verifies a log until the parser needs no more of it. Returns nil if the log changes
  /// nothing.
  ///
  /// - Throws: `LogRefusal` from the parser; `StoreError` if the log cannot be read; `SystemError`
  ///   if the directory has no space.
  static func read(
    _ content: Content, by parser: some LogParser, from reader: RepositoryReader,
    in directory: borrowing Directory
  ) throws -> SpooledLog? {
    var parser = parser
    let file = try directory.createUnnamed()
    do {
      try reader.readContent(content) { offset, bytes in
        try file.write(bytes, at: offset)
        try feed(&parser, from: file, until: offset + UInt64(bytes.count))
        if parser.next == nil { throw EndOfInterest() }
      }
      try feed(&parser, from: file, until: content.size)
    } catch is EndOfInterest {
      // The rest of the log is from an earlier use of the file.
    }
    guard let overlay = parser.overlay() else { return nil }
    return SpooledLog(overlay, in: file)
  }

  private struct EndOfInterest: Error {}

  /// Passes the requested ranges to a parser as long as they lie before `end`.
  private static func feed(
    _ parser: inout some LogParser, from file: borrowing Descriptor, until end: UInt64
  ) throws {
    var buffer: [UInt8] = []
    while let range = parser.next, range.upperBound <= end {
      try read(range.count, at: range.lowerBound, of: file, into: &buffer)
      try parser.parse(buffer.span)
    }
  }

  /// Replaces the content of a buffer with bytes of the log.
  func read(count: Int, at offset: UInt64, into buffer: inout [UInt8]) throws(SystemError) {
    try Self.read(count, at: offset, of: file, into: &buffer)
  }

  /// Reads bytes of the copy. A hole at the end of the log is not in the copy and reads as zeros.
  private static func read(
    _ count: Int, at offset: UInt64, of file: borrowing Descriptor, into buffer: inout [UInt8]
  ) throws(SystemError) {
    try file.read(count: count, at: offset, into: &buffer)
    buffer.append(contentsOf: repeatElement(0, count: count - buffer.count))
  }
}
