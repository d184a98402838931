package import ArchiveStore
package import SystemIO

/// A writer of a snapshot's content to a sink, in tree order.
///
/// Each file is read and verified completely before its entry begins, so damaged files are omitted
/// and reported. It is then read again for the sink, since it may be larger than memory. If the
/// second read fails, the output ends within that entry, which every reader detects. Omitted
/// entries are reported at once and not collected, since their number is unlimited. Hard links
/// refer to the first name that is in the output.
package struct ExportOperation {
  private let reader: RepositoryReader
  private let prefix: [ByteString]
  private let report: (Exclusion, PathRemark) -> Void
  private var firstNames: [ByteString: (path: [ByteString], node: Node)] = [:]
  /// The number of damaged entries, which are not in the output.
  package private(set) var damaged = 0
  /// The number of entries that were passed to the sink.
  package private(set) var written = 0

  /// The reason why an entry is not in the output.
  package enum Exclusion: Sendable {
    case damaged
    /// No format of archives has such an entry type.
    case unfit
  }

  /// Prepares an export. `report` receives the omitted entries.
  ///
  /// - Parameter path: the path that the sink has above all exported ones; empty for none.
  package init(
    from reader: RepositoryReader, below path: ByteString = "",
    reportingOmissions report: @escaping (Exclusion, PathRemark) -> Void
  ) {
    self.reader = reader
    prefix = path.components
    self.report = report
  }

  /// Writes the content of a directory, with paths relative to it.
  package mutating func write<Sink: EntrySink & ~Copyable>(
    _ tree: TreeReference, to sink: inout Sink
  ) throws {
    try reader.walkPastDamage(tree) { path, finding in
      switch finding {
      case .entry(let entry): try write(entry, as: path, to: &sink)
      case .damage(let error), .lost(_, let error): record(path.isEmpty ? "." : path, error)
      }
      return .enter
    }
  }

  /// Writes a directory and its content, with paths relative to it.
  package mutating func write<Sink: EntrySink & ~Copyable>(
    _ directory: TreeEntry?, _ tree: TreeReference, to sink: inout Sink
  ) throws {
    if let directory { try write(directory, as: "", to: &sink) }
    try write(tree, to: &sink)
  }

  /// Writes one entry under a path; the empty one is the root of the output.
  package mutating func write<Sink: EntrySink & ~Copyable>(
    _ entry: TreeEntry, as path: ByteString, to sink: inout Sink
  ) throws {
    let foreign: ForeignEntry
    reader.watch?.counters.begin(path)
    do {
      guard let verified = try verified(entry, path, linking: sink.holdsHardLinks) else {
        report(.unfit, PathRemark(path: path, remark: "an archive cannot hold a socket"))
        return
      }
      foreign = verified
    } catch let error as StoreError where error.kind == .damaged {
      reader.watch?.counters.didFail()
      return record(path, error)
    }
    try add(foreign, of: entry, to: &sink)
    written += 1
    guard case .file(let content) = entry.node, case .file = foreign.kind else { return }
    do {
      try reader.writeRuns(of: content) { hole, bytes in
        if hole > 0 { return try sink.writeHole(hole) }
        try bytes.withUnsafeBytes { (raw) throws(InterchangeError) in try sink.write(raw) }
        return true
      }
    } catch let error as StoreError where error.kind != .interrupted {
      throw Self.endsWithin(path, error)
    }
  }

  /// Begins an entry. The first name of a hard-linked file that the sink accepts is the target of
  /// the others: one that it omits is not a file in the output.
  private mutating func add<Sink: EntrySink & ~Copyable>(
    _ foreign: ForeignEntry, of entry: TreeEntry, to sink: inout Sink
  ) throws {
    guard sink.holdsHardLinks, let group = entry.linkGroup, firstNames[group] == nil else {
      return try sink.add(foreign)
    }
    let omitted = sink.skipped.entryCount
    try sink.add(foreign)
    if sink.skipped.entryCount == omitted { firstNames[group] = (foreign.path, entry.node) }
  }

  /// Returns the entry after everything that it needs was read successfully, or nil if no archive
  /// has such an entry type.
  private func verified(
    _ entry: TreeEntry, _ path: ByteString, linking: Bool
  ) throws -> ForeignEntry? {
    guard var foreign = try foreignEntry(entry, path) else { return nil }
    if linking, let group = entry.linkGroup, let first = firstNames[group],
      first.node == entry.node
    {
      foreign.kind = .hardLink(to: first.path)
      foreign.holes = []
    } else if case .file(let content) = entry.node {
      try reader.readContent(content) { _, _ in try reader.watch?.checkCancellation() }
    }
    return foreign
  }

  /// Returns the error for a file that can no longer be read after its entry was begun. The output
  /// has to end there: anything that followed would be read as the file's bytes.
  private static func endsWithin(_ path: ByteString, _ error: StoreError) -> StoreError {
    StoreError(
      error.code, "finish the archive member", subject: path.description,
      reason: "it was verified, but cannot be read again: \(error.reason)",
      hint: "the archive ends within this file; delete it and run the command again",
      cause: error.cause)
  }

  private mutating func record(_ path: ByteString, _ error: StoreError) {
    damaged += 1
    report(.damaged, PathRemark(path: path, remark: error.reason))
  }
}

// MARK: - Entries

extension ExportOperation {
  private func foreignEntry(_ entry: TreeEntry, _ path: ByteString) throws -> ForeignEntry? {
    guard let kind = kind(of: entry.node) else { return nil }
    var foreign = ForeignEntry(
      path: prefix + path.components, kind: kind, permissions: entry.permissions,
      owner: entry.owner, group: entry.group, modified: entry.modified)
    for attribute in entry.attributes {
      foreign.attributes.append(
        .init(name: attribute.name, value: try reader.value(of: attribute)))
    }
    if case .file(let content) = entry.node { foreign.holes = try holes(in: content) }
    return foreign
  }

  private func kind(of node: Node) -> ForeignEntry.Kind? {
    switch node {
    case .file(let content): .file(size: content.size)
    case .directory: .directory
    case .symlink(let target): .symlink(target: target)
    case .fifo: .fifo
    case .socket: nil
    case .characterDevice(let number): .characterDevice(major: number.major, minor: number.minor)
    case .blockDevice(let number): .blockDevice(major: number.major, minor: number.minor)
    }
  }

  private func holes(in content: Content) throws -> [Range<UInt64>] {
    var holes: [Range<UInt64>] = []
    // Lists of a level above 0 belong to files of many pieces, whose lists have to be read.
    try reader.forEachPiece(of: content) { offset, piece in
      guard case .hole(let length) = piece else { return }
      if let last = holes.last, last.upperBound == offset {
        holes[holes.count - 1] = last.lowerBound..<(offset + length)
      } else {
        holes.append(offset..<(offset + length))
      }
    }
    return holes
  }
}

extension OwnerNames {
  /// Creates tables from those of a snapshot.
  package init(of snapshot: Snapshot) {
    self.init(
      users: snapshot.users.map { ($0.id, $0.name) },
      groups: snapshot.groups.map { ($0.id, $0.name) })
  }
}
