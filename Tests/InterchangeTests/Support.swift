import ArchiveStore
import Codecs
import Interchange
import SystemIO
import TestSupport
import Testing

/// A source of entries in memory.
struct ListedSource: EntrySource {
  /// An entry with its content, as successive parts.
  struct Item {
    var entry: ForeignEntry
    var parts: [Part] = []
  }

  /// A part of a file's content.
  enum Part {
    case bytes([UInt8])
    case hole(UInt64)
    /// The content cannot be read beyond this point.
    case failure(InterchangeError.Kind)
  }

  private var items: [Item]
  private var parts: [Part] = []
  var skipped = SkippedEntries()
  var madeAt: Timestamp?
  var apps: [ForeignApp] = []
  /// The error after the last entry, or nil.
  var end: InterchangeError.Kind?

  init(_ items: [Item]) { self.items = items }

  mutating func next() throws(InterchangeError) -> ForeignEntry? {
    guard !items.isEmpty else {
      if let end { throw Self.error(end) }
      return nil
    }
    let item = items.removeFirst()
    parts = item.parts
    return item.entry
  }

  mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    switch parts.first {
    case .bytes(let bytes):
      let count = min(bytes.count, buffer.count)
      buffer.copyBytes(from: bytes.prefix(count))
      parts[0] = .bytes(Array(bytes.dropFirst(count)))
      if count == bytes.count { parts.removeFirst() }
      return count
    case .failure(let kind): throw Self.error(kind)
    case .hole, nil: return 0
    }
  }

  mutating func skipHole() throws(InterchangeError) -> UInt64 {
    guard case .hole(let length) = parts.first else { return 0 }
    parts.removeFirst()
    return length
  }

  private static func error(_ kind: InterchangeError.Kind) -> InterchangeError {
    InterchangeError(kind, "read", subject: "the list", reason: "it is broken on purpose")
  }
}

extension ListedSource.Item {
  /// An entry of a type at a path with slashes.
  static func entry(_ path: String, _ kind: ForeignEntry.Kind) -> Self {
    Self(entry: ForeignEntry(path: ByteString(path).components, kind: kind))
  }

  static func file(_ path: String, _ text: String) -> Self {
    file(path, Array(text.utf8))
  }

  static func file(_ path: String, _ bytes: [UInt8]) -> Self {
    var item = entry(path, .file(size: UInt64(bytes.count)))
    item.parts = bytes.isEmpty ? [] : [.bytes(bytes)]
    return item
  }

  static func link(_ path: String, to target: String) -> Self {
    entry(path, .hardLink(to: ByteString(target).components))
  }
}

/// A repository in memory, with the data that imports store in it.
struct Fixture {
  let storage = MemoryStorage()
  let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// Imports a source as `folders/x`.
  func run<Source: EntrySource & ~Copyable>(
    _ source: inout Source, _ change: (inout ImportRequest) -> Void = { _ in }
  ) throws -> ImportReport {
    var request = ImportRequest(.directory("x", from: "/archive"), program: "test")
    request.workers = 2
    change(&request)
    return try ImportOperation(to: repository, request).run(&source)
  }

  func run(_ items: [ListedSource.Item]) throws -> ImportReport {
    var source = ListedSource(items)
    return try run(&source)
  }

  /// The entries of a snapshot by logical path.
  func entries(_ report: ImportReport) throws -> [ByteString: TreeEntry] {
    let reader = try repository.beginReading()
    var entries: [ByteString: TreeEntry] = [:]
    try reader.walkPastDamage(report.snapshot.snapshot.tree) { path, finding in
      switch finding {
      case .entry(let entry): entries[path] = entry
      case .damage(let error), .lost(_, let error): throw error
      }
      return .enter
    }
    return entries
  }

  /// The bytes of a file of a snapshot.
  func bytes(_ path: ByteString, _ report: ImportReport) throws -> [UInt8] {
    let reader = try repository.beginReading()
    let entry = try #require(try reader.entry(at: path, in: report.snapshot.snapshot.tree))
    guard case .file(let content) = entry.node else {
      throw Program.Failure(description: "\(path)")
    }
    var bytes: [UInt8] = []
    try reader.writeBytes(of: content) { span in bytes += span.indices.map { span[$0] } }
    return bytes
  }

  func text(_ path: ByteString, _ report: ImportReport) throws -> String {
    String(decoding: try bytes(path, report), as: UTF8.self)
  }

  /// Writes a snapshot's directory `folders/x` as a tar archive.
  func tar(_ report: ImportReport) throws -> [UInt8] {
    var archive: [UInt8] = []
    var sink = try TarSink(
      to: { bytes throws(InterchangeError) in archive += bytes.indices.map { bytes[$0] } },
      names: OwnerNames(of: report.snapshot.snapshot))
    try export(report, to: &sink)
    return archive
  }

  /// Writes a snapshot's directory to a sink, which has the entries below another path.
  func export<Sink: EntrySink & ~Copyable>(
    _ report: ImportReport, of top: ByteString = "folders/x", below path: ByteString = "",
    to sink: inout Sink
  ) throws {
    let reader = try repository.beginReading()
    var export = ExportOperation(from: reader, below: path) { Issue.record("\($0) \($1)") }
    guard case .directory(let tree, let entry) = try reader.source(top, in: report.snapshot)
    else { throw Program.Failure(description: "no directory") }
    try export.write(entry, tree, to: &sink)
    try sink.finish()
  }
}
