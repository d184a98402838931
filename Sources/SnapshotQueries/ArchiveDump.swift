package import ArchiveStore
internal import Codecs
package import SystemIO

/// A writer of a snapshot's content as a POSIX archive, in tree order.
///
/// Each file is read and verified completely before its member begins, so damaged files are omitted
/// and reported. It is then read again for the archive, since it may be larger than memory. If the
/// second read fails, the archive ends within that member, which every reader detects. Omitted
/// entries are reported at once and not collected, since their number is unlimited. Hard links
/// refer to their first name in the archive.
package struct ArchiveDump {
  private let reader: RepositoryReader
  private let sink: (Span<UInt8>) throws -> Void
  private let report: (Exclusion, PathRemark) -> Void
  private let users: [UInt32: String]
  private let groups: [UInt32: String]
  private var firstNames: [ByteString: (path: ByteString, node: Node)] = [:]
  /// The number of damaged entries, which are not in the archive.
  package private(set) var damaged = 0

  /// The reason why an entry is not in the archive.
  package enum Exclusion: Sendable {
    case damaged
    /// The archive format has no such entry type.
    case unfit
  }

  /// Prepares an archive that is written to `sink` in pieces. `report` receives the omitted entries.
  package init(
    of snapshot: StoredSnapshot, from reader: RepositoryReader,
    to sink: @escaping (Span<UInt8>) throws -> Void,
    reportingOmissions report: @escaping (Exclusion, PathRemark) -> Void
  ) {
    self.reader = reader
    self.sink = sink
    self.report = report
    users = Self.table(snapshot.snapshot.users)
    groups = Self.table(snapshot.snapshot.groups)
  }

  private static func table(_ records: [NameRecord]) -> [UInt32: String] {
    Dictionary(records.map { ($0.id, $0.name) }, uniquingKeysWith: { $1 })
  }

  /// Writes the content of a directory, with paths relative to it.
  package mutating func write(_ tree: TreeReference) throws {
    try reader.walkPastDamage(tree) { path, finding in
      switch finding {
      case .entry(let entry): try write(entry, as: path)
      case .damage(let error), .lost(_, let error): record(path.isEmpty ? "." : path, error)
      }
      return .enter
    }
  }

  /// Writes one entry under a name.
  package mutating func write(_ entry: TreeEntry, as path: ByteString) throws {
    let member: PaxMember
    reader.watch?.counters.begin(path)
    do {
      guard let verified = try verifiedMember(entry, path) else {
        report(.unfit, PathRemark(path: path, remark: "an archive cannot hold a socket"))
        return
      }
      member = verified
    } catch let error as StoreError where error.kind == .damaged {
      reader.watch?.counters.didFail()
      return record(path, error)
    }
    if let group = entry.linkGroup, firstNames[group] == nil {
      firstNames[group] = (path, entry.node)
    }
    try write(member.header())
    guard case .file(let content) = entry.node, case .file = member.kind else { return }
    do {
      try reader.writeBytes(of: content, to: sink)
    } catch let error as StoreError where error.kind != .interrupted {
      throw Self.endsWithin(path, error)
    }
    try write([UInt8](repeating: 0, count: PaxMember.padding(after: content.size)))
  }

  /// Returns the member of an entry after everything that it needs was read successfully, or nil if
  /// the archive format has no such entry type.
  private func verifiedMember(_ entry: TreeEntry, _ path: ByteString) throws -> PaxMember? {
    guard var member = try member(entry, path) else { return nil }
    if let group = entry.linkGroup, let first = firstNames[group],
      first.node == entry.node
    {
      member.kind = .hardLink(target: Array(first.path.bytes))
    } else if case .file(let content) = entry.node {
      try reader.readContent(content) { _, _ in try reader.watch?.checkCancellation() }
    }
    return member
  }

  /// Returns the error for a file that can no longer be read after its header was written. The
  /// archive has to end there: anything that followed would be taken for the file's bytes.
  private static func endsWithin(_ path: ByteString, _ error: StoreError) -> StoreError {
    StoreError(
      error.code, "finish the archive member", subject: path.description,
      reason: "it was verified, but cannot be read again: \(error.reason)",
      hint: "the archive ends within this file; delete it and run the command again",
      cause: error.cause)
  }

  /// Writes the end of the archive.
  package func finish() throws { try write(PaxMember.end) }

  private func write(_ bytes: [UInt8]) throws { try sink(bytes.span) }

  private mutating func record(_ path: ByteString, _ error: StoreError) {
    damaged += 1
    report(.damaged, PathRemark(path: path, remark: error.reason))
  }

  private func member(_ entry: TreeEntry, _ path: ByteString) throws -> PaxMember? {
    guard let kind = kind(of: entry.node) else { return nil }
    var member = PaxMember(path: Array(path.bytes), kind: kind, mode: entry.permissions)
    (member.owner, member.group) = (entry.owner, entry.group)
    member.userName = users[entry.owner] ?? ""
    member.groupName = groups[entry.group] ?? ""
    (member.modified, member.nanoseconds) = (entry.modified.seconds, entry.modified.nanoseconds)
    for attribute in entry.attributes {
      member.attributes.append(
        .init(name: Array(attribute.name.bytes), value: try reader.value(of: attribute)))
    }
    return member
  }

  private func kind(of node: Node) -> PaxMember.Kind? {
    switch node {
    case .file(let content): .file(size: content.size)
    case .directory: .directory
    case .symlink(let target): .symbolicLink(target: Array(target.bytes))
    case .fifo: .fifo
    case .socket: nil
    case .characterDevice(let number): .characterDevice(major: number.major, minor: number.minor)
    case .blockDevice(let number): .blockDevice(major: number.major, minor: number.minor)
    }
  }
}

extension RepositoryReader {
  /// Writes all bytes of a file in order, with holes as zeros. Each blob is verified before its
  /// bytes are written. The watch counts the bytes.
  package func writeBytes(
    of content: Content, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    func give(_ bytes: Span<UInt8>) throws {
      try watch?.checkCancellation()
      try sink(bytes)
      watch?.counters.didHandle(bytes: UInt64(bytes.count))
    }
    var end: UInt64 = 0
    try readContent(content) { offset, bytes in
      try Self.writeZeros(offset - end, to: give)
      try give(bytes)
      end = offset + UInt64(bytes.count)
    }
    try Self.writeZeros(content.size - end, to: give)
  }

  private static func writeZeros(
    _ count: UInt64, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    guard count > 0 else { return }
    let zeros = [UInt8](repeating: 0, count: Int(min(count, 64 << 10)))
    var left = count
    while left > 0 {
      let piece = Int(min(left, UInt64(zeros.count)))
      try sink(zeros.span.extracting(0..<piece))
      left -= UInt64(piece)
    }
  }
}
