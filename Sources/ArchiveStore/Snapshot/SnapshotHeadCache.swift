internal import Codecs
public import SystemIO

/// This host's file of the heads of a repository's snapshots, which spares each command from
/// reading all snapshots (docs/decisions/0020-snapshot-heads.md).
///
/// The cache never determines which snapshots exist: the listing of the repository does. A head is
/// used only while the object's size and modification time are unchanged. If the file is damaged,
/// owned by another user or of another version, the heads are read again, which costs only time.
/// Safe to use from any thread.
public struct SnapshotHeadCache: Sendable {
  /// A head, and the status of the object it was read from.
  struct Record: Hashable {
    let head: SnapshotHead
    let status: ObjectStatus
  }

  private let directory: ByteString
  private static let name: ByteString = "snapshot-heads"
  private static let magic = "sandboxctl-snapshot-heads 1"
  private static let limit = 1 << 30

  /// Uses a directory for the heads of one repository, and creates it with its parents if it is
  /// missing. A directory that other users can write to is not used.
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

/// The file has a line with its name and version, a line `apps JSON` for each list of apps, a line
/// `ID SIZE SECONDS NANOSECONDS APPS JSON` for each head, where APPS is the number of its list, and
/// a line with the hash of all lines before it.
extension SnapshotHeadCache {
  /// Reads the heads. Returns none if there is no intact file.
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

  private static var damage: StoreError {
    .damaged("\(name)", "it is not an intact file of snapshot heads")
  }
  private static let newline = UInt8(ascii: "\n")
}
