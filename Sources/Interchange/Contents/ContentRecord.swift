internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The file in this host's cache of a repository that records the contents of a source's last
/// import, with their versions (docs/state-file.md, "Imported contents").
///
/// All integers are little-endian. After the head follow the packs of the repository, 8 bytes each,
/// then a row for each content, in the order of the names, and then the values of the rows.
enum ContentRecord {
  /// The first bytes of the file: its type and the version of its format.
  static let magic: [UInt8] = Array("sbximpt1".utf8)

  /// The offsets in the head.
  enum Head {
    static let snapshot = 8
    static let contents = 40
    static let packs = 48
    static let values = 56
    /// The digest of everything before it and of the packs.
    static let checksum = 64
    static let size = 96
  }

  /// The offsets in a row.
  enum Row {
    static let name = 0
    static let offset = 32
    static let length = 40
    /// The first 8 bytes of the digest of the name and the value.
    static let checksum = 44
    static let size = 52
  }

  /// The offsets in a value.
  enum Value {
    static let facts = 0
    static let size = 32
    static let inode = 40
    static let modified = 48
    static let nanoseconds = 56
    static let isSettled = 60
    /// The entry in its tree with the content, with the name `c` and nothing else.
    static let entry = 64
    /// The maximum size of a value in bytes: an entry has at most 256 pieces.
    static let limit = 1 << 16
  }

  /// Returns the name of a source's file. `HostCaches` removes files with names of this form.
  static func name(of source: Digest) -> ByteString { ByteString("imported-\(source.hex)") }

  /// Opens the directory of a repository's files on this host; nil if another user can write to it.
  static func open(_ path: ByteString) -> Directory? {
    guard let directory = try? Directory.make(path: path, permissions: 0o700),
      let status = try? directory.status(), status.user == Host.userID,
      status.permissions & 0o022 == 0
    else { return nil }
    return directory
  }

  /// Returns the checksum of a row.
  static func checksum(_ name: Digest, _ value: [UInt8]) -> UInt64 {
    Blake2b.hash(name.bytes + value).leadingWord
  }

  /// Returns the bytes of a value, or nil if it would be too long.
  static func value(_ version: ContentVersion, _ content: Content) throws(StoreError) -> [UInt8]? {
    var bytes: [UInt8] = []
    version.facts.append(to: &bytes)
    LittleEndian.append(version.file.size, to: &bytes)
    LittleEndian.append(version.file.inode, to: &bytes)
    LittleEndian.append(version.file.modified.seconds, to: &bytes)
    LittleEndian.append(version.file.modified.nanoseconds, to: &bytes)
    LittleEndian.append(UInt32(version.isSettled ? 1 : 0), to: &bytes)
    bytes += try TreeEntry(name: "c", node: .file(content)).encoded()
    return bytes.count <= Value.limit ? bytes : nil
  }

  /// Reads a value, whose checksum is right; nil if it is invalid.
  static func read(_ value: [UInt8], of name: Digest) -> (version: ContentVersion, Content)? {
    guard value.count > Value.entry,
      let entry = try? TreeEntry(encoded: Array(value[Value.entry...])),
      case .file(let content) = entry.node
    else { return nil }
    let bytes = value.span
    let file = ContentVersion.StoredFile(
      size: LittleEndian.integer(bytes, at: Value.size),
      inode: LittleEndian.integer(bytes, at: Value.inode),
      modified: Timestamp(
        seconds: LittleEndian.integer(bytes, at: Value.modified),
        nanoseconds: LittleEndian.integer(bytes, at: Value.nanoseconds)))
    guard let facts = Digest(bytes.extracting(Value.facts..<Value.size)) else { return nil }
    let isSettled = LittleEndian.integer(bytes, at: Value.isSettled, as: UInt32.self) == 1
    return (ContentVersion(name: name, facts: facts, isSettled: isSettled, file: file), content)
  }
}

extension ContentRecord {
  /// The contents of an import, until its snapshot exists. Their rows are in memory that can be
  /// spilled.
  struct Builder {
    private var rows = SpillableArray<Row>()
    private var values = SpillableArray<UInt8>()

    private struct Row: BitwiseCopyable, Sendable {
      let name: Digest
      let offset: UInt64
      let length: UInt32
      let checksum: UInt64
    }

    /// The number of bytes that are written at once.
    private static let portion = 1 << 20

    /// Adds a content.
    mutating func add(_ version: ContentVersion, _ content: Content) throws(StoreError) {
      guard let value = try ContentRecord.value(version, content) else { return }
      rows.append(
        Row(
          name: version.name, offset: UInt64(values.count), length: UInt32(value.count),
          checksum: ContentRecord.checksum(version.name, value)))
      values.append(value.span)
    }

    /// Replaces the source's file. A failure only makes the next import read more.
    ///
    /// - Parameters:
    ///   - path: the directory of the repository's files on this host.
    ///   - packs: the packs that the repository has.
    func save(in path: ByteString, source: Digest, snapshot: SnapshotID, packs: Set<Digest>) {
      guard rows.count > 0, let directory = ContentRecord.open(path) else { return }
      do throws(SystemError) {
        let file = try AtomicFile(in: directory, permissions: 0o600)
        let order = order()
        try file.write(head(of: order.count, snapshot, packs))
        var bytes: [UInt8] = []
        for row in order {
          append(rows[Int(row)], to: &bytes)
          guard bytes.count >= Self.portion else { continue }
          try file.write(bytes)
          bytes.removeAll(keepingCapacity: true)
        }
        try file.write(bytes)
        for start in stride(from: 0, to: values.count, by: Self.portion) {
          try file.write(
            Array(values.copy(start..<Swift.min(start + Self.portion, values.count))))
        }
        try file.commit(as: ContentRecord.name(of: source), durably: false)
      } catch {}
    }

    /// Returns the rows by name; of equal names the last one.
    private func order() -> [UInt32] {
      var order = Array(0..<UInt32(rows.count))
      rows.withSpan { rows in
        order.sort { left, right in
          let (one, other) = (rows[Int(left)].name, rows[Int(right)].name)
          return one == other ? left < right : one < other
        }
      }
      return order.indices.compactMap { position in
        let row = order[position]
        guard position + 1 < order.count else { return row }
        return rows[Int(order[position + 1])].name == rows[Int(row)].name ? nil : row
      }
    }

    private func head(of count: Int, _ snapshot: SnapshotID, _ packs: Set<Digest>) -> [UInt8] {
      var head = ContentRecord.magic
      snapshot.append(to: &head)
      LittleEndian.append(UInt64(count), to: &head)
      LittleEndian.append(UInt64(packs.count), to: &head)
      LittleEndian.append(UInt64(values.count), to: &head)
      var words: [UInt8] = []
      for pack in packs { LittleEndian.append(pack.leadingWord, to: &words) }
      Blake2b.hash(head + words).append(to: &head)
      return head + words
    }

    private func append(_ row: Row, to bytes: inout [UInt8]) {
      row.name.append(to: &bytes)
      LittleEndian.append(row.offset, to: &bytes)
      LittleEndian.append(row.length, to: &bytes)
      LittleEndian.append(row.checksum, to: &bytes)
    }
  }
}
