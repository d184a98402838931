internal import ArchiveStore
internal import SystemIO

/// Stores the entries of a source one after the other: contents in the repository, the rest in a
/// table.
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
  private var buffer = [UInt8](repeating: 0, count: 1 << 20)

  init(_ session: WritingSession, _ request: ImportRequest) throws(StoreError) {
    writer = try session.makeWriter()
    self.session = session
    self.request = request
  }

  /// Stores an entry, or records why that is not possible.
  mutating func store<Source: EntrySource & ~Copyable>(
    _ entry: ForeignEntry, from source: inout Source
  ) throws {
    let path = entry.joinedPath
    request.counters.begin(path)
    if case .hardLink(let target) = entry.kind {
      return entries.append(linkTo: target, at: entry.path)
    }
    do {
      let node = try node(of: entry, path, from: &source)
      var stored = TreeEntry(
        name: entry.path.last ?? "root", node: node, permissions: entry.permissions,
        owner: entry.owner, group: entry.group, modified: entry.modified)
      stored.attributes = try attributes(of: entry, path)
      entries.append(try stored.encoded(), at: entry.path)
      if case .file(let content) = node {
        request.counters.didHandle(files: 1)
        if let version = entry.version { try contents.add(version, content) }
      }
    } catch let error as StoreError where error.code == .invalid {
      request.counters.didFail()
      skipped.append(path: path, reason: error.reason)
    } catch let error as InterchangeError where error.kind == .damagedEntry {
      request.counters.didFail()
      skipped.append(path: path, reason: "it is damaged: \(error.reason)")
    } catch let error as InterchangeError where error.keepsEarlierEntries {
      skipped.append(path: path, reason: "it is incomplete: \(error.reason)")
      throw error
    }
    if session.checkpointIsDue {
      try writer.flush()
      try session.checkpoint()
    }
  }

  private mutating func node<Source: EntrySource & ~Copyable>(
    of entry: ForeignEntry, _ path: ByteString, from source: inout Source
  ) throws -> Node {
    switch entry.kind {
    case .file(let size):
      if let content = entry.content {
        unchanged += 1
        request.counters.didFindUnchanged()
        return .file(content)
      }
      request.counters.didOpen()
      return .file(try content(size, of: entry, path, from: &source))
    case .directory: return .directory(TreeAssembler.pending)
    case .symlink(let target): return .symlink(target: target)
    case .fifo: return .fifo
    case .characterDevice(let major, let minor):
      return .characterDevice(TreeEntry.DeviceNumber(major: major, minor: minor))
    case .blockDevice(let major, let minor):
      return .blockDevice(TreeEntry.DeviceNumber(major: major, minor: minor))
    case .hardLink: throw StoreError.notStored(path)
    }
  }

  private mutating func content<Source: EntrySource & ~Copyable>(
    _ size: UInt64, of entry: ForeignEntry, _ path: ByteString, from source: inout Source
  ) throws -> Content {
    let hints = FileHints(
      size: size, permissions: entry.permissions, modified: entry.modified)
    let logicalPath = request.placement.prefix.appending(path)
    return try writer.storeFile(logicalPath: logicalPath, hints: hints) { file in
      while true {
        if request.isStopping() {
          throw OperationError(.interrupted, "the import was interrupted: no snapshot was made")
        }
        let hole = try source.skipHole()
        if hole > 0 { try file.appendHole(length: hole) }
        let count = try buffer.withUnsafeMutableBytes { (raw) throws(InterchangeError) in
          try source.read(into: raw)
        }
        if count == 0 { return }
        try file.append(buffer.span.extracting(0..<count))
        request.counters.didHandle(bytes: UInt64(count))
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

extension StoreError {
  /// The error for an entry that has no node of its own.
  fileprivate static func notStored(_ path: ByteString) -> StoreError {
    StoreError(
      .invalid, "store", subject: path.description, reason: "a hard link has no content of its own")
  }
}
