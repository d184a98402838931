internal import ArchiveStore
internal import SystemIO

/// Stores the entries of a source one after the other: contents in the repository, the rest in a
/// table.
///
/// Small contents are collected and stored together, since hashing them together takes a fraction
/// of the time. The entries after one wait with it, because the table has the order of the source.
struct EntryIntake {
  let writer: ContentWriter
  let session: WritingSession
  private let request: ImportRequest
  private(set) var entries = ImportedEntries()
  private(set) var skipped = SkippedEntries()
  /// The number of files whose content was not read.
  private(set) var unchanged = 0
  /// The versions of the contents, for the next import.
  private(set) var contents = ContentRecord.Builder()
  private let portions: PortionReader
  /// The threads that store contents that are detached from the source.
  var helpers: ImportHelpers?

  init(_ session: WritingSession, _ request: ImportRequest) throws(StoreError) {
    writer = try session.makeWriter()
    self.session = session
    self.request = request
    portions = PortionReader(request.counters, isStopping: request.isStopping)
  }

  /// The entries that wait for small contents, and the bytes of these.
  private var waiting: [Waiting] = []
  private var small: [UInt8] = []

  /// An entry whose content is stored or among those that wait.
  private struct Waiting {
    let entry: ForeignEntry
    let path: ByteString
    let node: PendingNode
  }

  private enum PendingNode {
    case link(to: [ByteString])
    case stored(Node)
    case small(Range<Int>)
    /// A helper stores the content.
    case pending(ImportHelpers.Pending)
  }

  /// The maximum size of a content that is collected, of all of them, and the number of entries.
  private static let smallFile = min(UInt64(ContentWriter.smallFile), 128 << 10)
  private static let capacity = 1 << 20
  private static let countLimit = 256

  /// Stores an entry, or records why that is not possible.
  mutating func store<Source: EntrySource & ~Copyable>(
    _ entry: ForeignEntry, from source: inout Source
  ) throws {
    let path = entry.joinedPath
    request.counters.begin(path)
    do {
      let node = try node(of: entry, path, from: &source)
      waiting.append(Waiting(entry: entry, path: path, node: node))
    } catch let error as InterchangeError where error.keepsEarlierEntries {
      skipped.append(path: path, reason: "it is incomplete: \(error.reason)")
      throw error
    } catch {
      try skip(path, after: error)
    }
    if waiting.count >= Self.countLimit || small.count >= Self.capacity { try storeWaiting() }
    if session.checkpointIsDue {
      try storeWaiting()
      try writer.flush()
      try session.checkpoint()
    }
  }

  /// Skips an entry that cannot be stored; rethrows errors that are not those of an entry.
  private mutating func skip(_ path: ByteString, after error: any Error) throws {
    switch error {
    case let error as StoreError where error.code == .invalid: skip(path, error.reason)
    case let error as InterchangeError where error.kind == .damagedEntry:
      skip(path, "it is damaged: \(error.reason)")
    default: throw error
    }
  }

  private mutating func skip(_ path: ByteString, _ reason: String) {
    request.counters.didFail()
    skipped.append(path: path, reason: reason)
  }

  /// Stores the entries that wait. Called also after the last entry.
  mutating func storeWaiting() throws {
    let contents = try smallContents()
    var next = 0
    for waiting in exchange(&waiting, with: []) {
      switch waiting.node {
      case .link(let target): entries.append(linkTo: target, at: waiting.entry.path)
      case .stored(let node): try append(waiting, node)
      case .small:
        next += 1
        switch contents[next - 1] {
        case .success(let content): try append(waiting, .file(content))
        case .failure(let error): skip(waiting.path, error.reason)
        }
      case .pending(let pending): try append(waiting, pending)
      }
    }
    waiting.reserveCapacity(Self.countLimit)
    small.removeAll(keepingCapacity: true)
  }

  /// Stores waiting entries after an interruption, which has ended the helpers' contents as well.
  mutating func storeInterrupted() throws {
    do { try storeWaiting() } catch let error as OperationError where error.kind == .interrupted {}
  }

  /// Adds an entry to the table when a helper has stored its content.
  private mutating func append(_ waiting: Waiting, _ pending: ImportHelpers.Pending) throws {
    do {
      guard let result = helpers?.result(of: pending, helpedBy: writer) else { return }
      try append(waiting, .file(try result.get()))
    } catch { try skip(waiting.path, after: error) }
  }

  /// Adds an entry to the table.
  private mutating func append(_ waiting: Waiting, _ node: Node) throws {
    let entry = waiting.entry
    do {
      var stored = TreeEntry(
        name: entry.path.last ?? "root", node: node, permissions: entry.permissions,
        owner: entry.owner, group: entry.group, modified: entry.modified)
      stored.attributes = try attributes(of: entry, waiting.path)
      try entries.append(stored, at: entry.path)
    } catch let error as StoreError where error.code == .invalid {
      return skip(waiting.path, error.reason)
    }
    if case .file(let content) = node {
      request.counters.didHandle(files: 1)
      if let version = entry.version { try contents.add(version, content) }
    }
  }

  /// Stores the small contents, in their order.
  private func smallContents() throws -> [Result<Content, StoreError>] {
    let files = waiting.compactMap { waiting -> ContentWriter.SmallFile? in
      guard case .small(let range) = waiting.node else { return nil }
      return ContentWriter.SmallFile(
        logicalPath: request.placement.prefix.appending(waiting.path), range: range,
        hints: FileHints(of: waiting.entry, size: UInt64(range.count)))
    }
    do {
      return try writer.storeFiles(files, of: small.span).map { .success($0) }
    } catch let error as StoreError where error.code == .invalid {
      // One of the paths is invalid: each file has its own result.
      return try files.map { file in
        do {
          return .success(try writer.storeFiles([file], of: small.span)[0])
        } catch let error as StoreError where error.code == .invalid {
          return .failure(error)
        }
      }
    }
  }

  // MARK: - Contents

  private mutating func node<Source: EntrySource & ~Copyable>(
    of entry: ForeignEntry, _ path: ByteString, from source: inout Source
  ) throws -> PendingNode {
    switch entry.kind {
    case .file(let size):
      if let content = entry.content {
        unchanged += 1
        request.counters.didFindUnchanged()
        return .stored(.file(content))
      }
      request.counters.didOpen()
      return try content(size, of: entry, path, from: &source)
    case .directory: return .stored(.directory(TreeAssembler.pending))
    case .symlink(let target): return .stored(.symlink(target: target))
    case .fifo: return .stored(.fifo)
    case .characterDevice(let major, let minor):
      return .stored(.characterDevice(TreeEntry.DeviceNumber(major: major, minor: minor)))
    case .blockDevice(let major, let minor):
      return .stored(.blockDevice(TreeEntry.DeviceNumber(major: major, minor: minor)))
    case .hardLink(let target): return .link(to: target)
    }
  }

  /// Reads a content: a small one into memory, any other into the repository.
  private mutating func content<Source: EntrySource & ~Copyable>(
    _ size: UInt64, of entry: ForeignEntry, _ path: ByteString, from source: inout Source
  ) throws -> PendingNode {
    if let pending = detached(size, of: entry, path, from: &source) { return .pending(pending) }
    let start = small.count
    var hole: UInt64 = 0
    do {
      // A source may return more bytes than the size that it claims, and holes.
      while size <= Self.smallFile, hole == 0, small.count - start <= Int(Self.smallFile) {
        hole = try source.skipHole()
        if hole > 0 { break }
        let isMore = try portions.append(to: &small) { (bytes) throws(InterchangeError) in
          try source.append(to: &bytes)
        }
        if !isMore { return .small(start..<small.count) }
      }
      let begin = Array(small[start...])
      let content = try large(size, of: entry, path, from: &source) { file in
        try file.append(begin.span)
        if hole > 0 { try file.appendHole(length: hole) }
      }
      small.removeLast(small.count - start)
      return .stored(.file(content))
    } catch {
      small.removeLast(small.count - start)
      throw error
    }
  }

  /// Lets a helper store a content that is large and can be detached from the source; otherwise
  /// returns nil.
  private func detached<Source: EntrySource & ~Copyable>(
    _ size: UInt64, of entry: ForeignEntry, _ path: ByteString, from source: inout Source
  ) -> ImportHelpers.Pending? {
    guard size > Self.smallFile, let helpers, !helpers.isEmpty,
      let content = source.detachContent()
    else { return nil }
    let pending = ImportHelpers.Pending(capacity: 1)
    let (request, hints) = (request, FileHints(of: entry, size: size))
    let logicalPath = request.placement.prefix.appending(path)
    let job = ImportHelpers.Job { writer in
      pending.enqueue(
        Result {
          try writer.storeFile(logicalPath: logicalPath, hints: hints) { file in
            let portions = PortionReader(request.counters) {
              request.isStopping() || helpers.isFinished
            }
            var isMore = true
            while isMore {
              isMore = try portions.append(to: file) { (bytes) throws(InterchangeError) in
                try content.append(to: &bytes)
              }
            }
          }
        })
    }
    helpers.run(job, orHereBy: writer)
    return pending
  }

  private mutating func large<Source: EntrySource & ~Copyable>(
    _ size: UInt64, of entry: ForeignEntry, _ path: ByteString, from source: inout Source,
    after begin: (FileWriter) throws -> Void
  ) throws -> Content {
    let hints = FileHints(of: entry, size: size)
    let logicalPath = request.placement.prefix.appending(path)
    return try writer.storeFile(logicalPath: logicalPath, hints: hints) { file in
      try begin(file)
      var isMore = true
      while isMore {
        let hole = try source.skipHole()
        if hole > 0 { try file.appendHole(length: hole) }
        isMore = try portions.append(to: file) { (bytes) throws(InterchangeError) in
          try source.append(to: &bytes)
        }
      }
    }
  }

  /// Stores the attributes. Those that a snapshot cannot hold are recorded.
  private mutating func attributes(
    of entry: ForeignEntry, _ path: ByteString
  ) throws -> [Attribute] {
    var stored: [Attribute] = []
    for attribute in entry.attributes {
      if attribute.value.count > FormatLimit.blob {
        skipped.append(
          path: path, reason: "the attribute '\(attribute.name)' is too large and was dropped",
          isPropertyOnly: true)
      } else {
        stored.append(try writer.makeAttribute(name: attribute.name, value: attribute.value))
      }
    }
    return stored
  }
}

extension FileHints {
  /// Creates the hints for the content of an entry.
  fileprivate init(of entry: ForeignEntry, size: UInt64) {
    self.init(size: size, permissions: entry.permissions, modified: entry.modified)
  }
}

/// Reads contents in portions and counts their bytes.
private struct PortionReader {
  /// Appends the next bytes to its argument and returns their number.
  typealias Read = (inout [UInt8]) throws(InterchangeError) -> Int

  private let counters: ProgressCounters
  private let isStopping: () -> Bool

  init(_ counters: ProgressCounters, isStopping: @escaping () -> Bool) {
    (self.counters, self.isStopping) = (counters, isStopping)
  }

  /// Reads the next bytes into a file of the repository. Returns whether there were any.
  ///
  /// - Throws: `OperationError` of the kind `interrupted`, and the errors of `read`.
  func append(to file: FileWriter, _ read: Read) throws -> Bool {
    var isMore = false
    _ = try file.append { isMore = try append(to: &$0, read) }
    return isMore
  }

  /// Reads the next bytes into memory in the same way.
  func append(to bytes: inout [UInt8], _ read: Read) throws -> Bool {
    if isStopping() { throw ImportOperation.interrupted }
    let count = try read(&bytes)
    counters.didHandle(bytes: UInt64(count))
    return count > 0
  }
}

extension EntrySource where Self: ~Copyable {
  /// Appends the next bytes of the file that `next` returned last, at most 1 MiB, and returns their
  /// number, as `read(into:)` does.
  fileprivate mutating func append(to bytes: inout [UInt8]) throws(InterchangeError) -> Int {
    let start = bytes.count
    try bytes.append(addingCapacity: 1 << 20) {
      (output: inout OutputSpan<UInt8>) throws(InterchangeError) in
      try output.withUnsafeMutableBufferPointer {
        (target: UnsafeMutableBufferPointer<UInt8>, filled: inout Int) throws(InterchangeError) in
        filled = try read(into: UnsafeMutableRawBufferPointer(target))
      }
    }
    return bytes.count - start
  }
}
