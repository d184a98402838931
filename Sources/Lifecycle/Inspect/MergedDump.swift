public import ArchiveStore
internal import DatabaseCapture
public import SystemIO

/// A stored database with what its logs hold in it: the file that SQLite makes of them when it opens
/// it, without SQLite.
///
/// First a journal undoes the transaction that was broken off, then the write-ahead log brings what
/// was committed, as SQLite does it. The logs are read, verified and copied before the first byte is
/// given; their pages' places are held in memory, 16 bytes a page or twice that.
public struct MergedDump {
  private let reader: RepositoryReader
  private let content: Content
  private var logs: [SpooledLog] = []
  /// The logs beside the database that change nothing in it: what they held is in it, or was never
  /// committed.
  public private(set) var unused: [ByteString] = []

  /// Reads what a snapshot has beside the database at `path`. `cache` is the directory of caches, as
  /// `Host.cacheDirectory`: in it the logs are copied.
  ///
  /// - Throws: `LifecycleError` for a log that does not tell what the database is, `StoreError` for
  ///   what cannot be read.
  public init(
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
        .damaged, "merge", lost.path.description, lost.remark,
        hint: "without '--merge-log' the database is written by itself")
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

  /// What is known of the database before the next log is looked at.
  private struct Base {
    let size: UInt64
    /// nil when its header cannot be read, as that of an encrypted database.
    let pageSize: Int?
  }

  private static func spool(
    _ log: Content, _ member: DatabaseMember, over base: Base, from reader: RepositoryReader,
    in directory: borrowing Directory
  ) throws -> SpooledLog? {
    // To SQLite what lies beside an empty database was left behind by another one.
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
    // A journal may undo a change of the page size, a log never brings one.
    if member == .log, let own = base.pageSize, own != overlay.pageSize {
      throw LogRefusal.otherPageSize(log: overlay.pageSize, database: own)
    }
    try overlay.requireFit(over: base.size)
    return spooled
  }

  private static func cannotMerge(_ log: ByteString, _ refusal: LogRefusal) -> LifecycleError {
    LifecycleError(
      .failed, "cannot merge the log '\(log)' into its database: \(refusal.reason)",
      hint: "'--tar' writes both as they are")
  }

  private struct Enough: Error {}

  private static func pageSize(
    of content: Content, from reader: RepositoryReader
  ) throws -> Int? {
    var head: [UInt8] = []
    do {
      try reader.writeBytes(of: content) { bytes in
        let count = min(bytes.count, DatabaseUnit.headSize - head.count)
        for place in 0..<count { head.append(bytes[place]) }
        if head.count == DatabaseUnit.headSize { throw Enough() }
      }
    } catch is Enough {}
    return DatabaseUnit.pageSize(head: head.span)
  }

  /// Gives the database's bytes in order, once. Each blob of it is verified before its bytes are given.
  public func write(to sink: (Span<UInt8>) throws -> Void) throws {
    try write(through: logs[...], to: sink)
  }

  private func write(
    through logs: ArraySlice<SpooledLog>, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    guard let log = logs.last else { return try reader.writeBytes(of: content, to: sink) }
    let pages: PageMerge.Log = { try log.read(count: $1, at: $0, into: &$2) }
    var merge = PageMerge(log.overlay)
    try write(through: logs.dropLast()) { try merge.take($0, pages, to: sink) }
    try merge.finish(pages, to: sink)
  }
}
