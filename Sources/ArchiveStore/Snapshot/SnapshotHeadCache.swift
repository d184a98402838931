internal import Codecs
public import SystemIO

/// The host's file of the heads of a repository's snapshots, so that years of snapshots are not read
/// by each command (docs/decisions/0020-snapshot-heads.md).
///
/// Which snapshots there are is never asked of it: the repository's own listing says that. A head is
/// used while the object's size and time of modification are those that it was read with. A file that
/// is damaged, of another user or of another version costs time and nothing else: the heads are read
/// again. For any thread.
public struct SnapshotHeadCache: Sendable {
  /// A head, and the status of the object that it was read from.
  struct Record: Hashable {
    let head: SnapshotHead
    let status: ObjectStatus
  }

  private let directory: ByteString
  private static let name: ByteString = "snapshot-heads"
  private static let magic = "sandboxctl-snapshot-heads 1"
  private static let limit = 1 << 30

  /// Uses a directory for the heads of one repository; it is made, with those above it, where it is
  /// missing. It is not used where others can write to it.
  public init(directory: ByteString) { self.directory = directory }

  private func open() -> Directory? {
    guard let directory = try? Directory.make(path: directory, permissions: 0o700),
      let status = try? directory.status(), status.user == Host.userID,
      status.permissions & 0o022 == 0
    else { return nil }
    return directory
  }
}

// MARK: - File

/// A line of the file's name and version; a line `apps JSON` for each list of apps; a line
/// `ID SIZE SECONDS NANOSECONDS APPS JSON` for each head, APPS being the number of its list; the hash
/// of all lines before.
extension SnapshotHeadCache {
  /// Reads the heads; none if there is no whole file.
  func load() -> [SnapshotID: Record] {
    guard let directory = open(), let file = try? directory.file(Self.name),
      let status = try? file.status(), status.kind == .file, status.user == Host.userID,
      let bytes = try? file.readAll(limit: Self.limit)
    else { return [:] }
    return (try? Self.decode(bytes)) ?? [:]
  }

  /// Replaces the file. If that fails, the heads are read again next time.
  func save(_ records: some Collection<Record>) {
    guard let directory = open() else { return }
    let bytes = Self.encode(records)
    do throws(SystemError) {
      let file = try AtomicFile(in: directory, permissions: 0o600)
      try file.write(bytes)
      try file.commit(as: Self.name, durably: false)
    } catch {}
  }

  static func encode(_ records: some Collection<Record>) -> [UInt8] {
    var text = Array("\(magic)\n".utf8)
    var numbers: [[AppRecord]: Int] = [:]
    for record in records.sorted(by: { $0.head.id < $1.head.id }) {
      let apps = record.head.apps
      if numbers[apps] == nil {
        numbers[apps] = numbers.count
        let json: JSON = ["apps": .array(apps) { $0.json }]
        text += "apps ".utf8 + json.compactBytes + [newline]
      }
      let (status, time) = (record.status, record.status.modified)
      let words = "\(record.head.id.hex) \(status.size) \(time.seconds) \(time.nanoseconds) "
      text += "\(words)\(numbers[apps] ?? 0) ".utf8
      text += record.head.lineWithoutApps + [newline]
    }
    return text + Array(Blake2b.hash(text).hex.utf8) + [newline]
  }

  static func decode(_ bytes: [UInt8]) throws(StoreError) -> [SnapshotID: Record] {
    let end = bytes.count - 2 * Digest.byteCount - 1
    guard end > 0, bytes.last == newline,
      let digest = Digest(hex: String(decoding: bytes[end..<(bytes.count - 1)], as: UTF8.self)),
      Blake2b.hash(bytes.span.bytes.extracting(0..<end)) == digest
    else { throw damage }
    var lines = bytes[..<end].split(separator: newline)[...]
    guard lines.popFirst()?.elementsEqual(magic.utf8) == true else { throw damage }
    var lists: [[AppRecord]] = []
    var records: [SnapshotID: Record] = [:]
    for line in lines {
      if line.starts(with: "apps ".utf8) {
        lists.append(try apps(line.dropFirst(5)))
      } else {
        let record = try record(line, lists)
        records[record.head.id] = record
      }
    }
    return records
  }

  private static func apps(_ text: ArraySlice<UInt8>) throws(StoreError) -> [AppRecord] {
    let limits = JSON.Limits(
      bytes: FormatLimit.snapshot, depth: 16, values: FormatLimit.snapshotValues)
    let json = try StoreError.wrap(coding: "\(name)") { () throws(CodecError) in
      try JSON(parsing: Array(text), limits: limits)
    }
    return try JSONFields(json: json, object: "\(name)").elements("apps") {
      field throws(StoreError) in try AppRecord(field)
    }
  }

  private static func record(
    _ line: ArraySlice<UInt8>, _ lists: [[AppRecord]]
  ) throws(StoreError) -> Record {
    let words = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
    guard words.count == 6 else { throw damage }
    let texts = words.prefix(5).map { String(decoding: $0, as: UTF8.self) }
    guard let id = Digest(hex: texts[0]), let size = UInt64(texts[1]),
      let seconds = Int64(texts[2]), let nanoseconds = UInt32(texts[3]), let list = Int(texts[4]),
      lists.indices.contains(list)
    else { throw damage }
    return Record(
      head: try SnapshotHead(id: id, line: Array(words[5])).with(apps: lists[list]),
      status: ObjectStatus(
        isDirectory: false, size: size,
        modified: Timestamp(seconds: seconds, nanoseconds: nanoseconds)))
  }

  private static var damage: StoreError { .damaged("\(name)", "it is not a whole file of heads") }
  private static let newline = UInt8(ascii: "\n")
}
