internal import Codecs
internal import SystemIO

extension SnapshotHeadCache {
  /// The content of the file: the heads, and the members that they have in common.
  ///
  /// The common members are JSON lines, each of which is stored once: one for each app and each
  /// container in one state, one for the rest. So a run that adds a snapshot parses and encodes
  /// little, however many snapshots there are.
  struct Content {
    var records: [SnapshotID: Record] = [:]
    /// The file that was read. Its common members, and the heads that remain, are stored again
    /// without being encoded.
    private var stored = Stored()
    /// Equal common members of heads that were read from snapshots.
    private var found: Set<SnapshotHead.Common> = []

    /// The file that was read.
    private struct Stored {
      var bytes: [UInt8] = []
      /// JSON, one value each.
      var lines: [[UInt8]] = []
      var commons: [(object: SnapshotHead.Common, lines: Lines)] = []
    }

    /// The numbers of the lines that make up common members.
    private struct Lines {
      let rest: UInt32
      let apps: [UInt32]
      let containers: [UInt32]
    }

    init() {}

    /// Creates the content of the next file, without heads.
    init(sharing other: Content) { stored = other.stored }

    /// Returns a head that shares its common members with other heads.
    mutating func interned(_ head: SnapshotHead) -> SnapshotHead {
      if found.isEmpty { found = Set(stored.commons.map(\.object)) }
      var head = head
      head.share(found.insert(head.common).memberAfterInsert)
      return head
    }
  }
}

// MARK: - Encoding

/// The file has a magic, the numbers of lines, common members and heads, these three tables, and
/// the hash of all bytes before it. Numbers are little-endian.
extension SnapshotHeadCache.Content {
  private static let magic = Array("sandboxctl-snapshot-heads 3\n".utf8)
  /// The size of a head in bytes.
  private static let headSize = 5 * Digest.byteCount + 4 * 4 + 6 * 8 + 2 * 12

  func encode() -> [UInt8] {
    var table = Table(stored.lines.count)
    let used = Set(records.values.map { ObjectIdentifier($0.head.common) })
    // Lines that are no longer needed are dropped once they are half of all. Until then their
    // numbers, and the heads in the file, do not change.
    let keepsNumbers = used.count * 2 >= stored.commons.count
    if keepsNumbers {
      table.lines = stored.lines
      for (object, lines) in stored.commons { table.add(object, lines) }
    }
    var heads: [UInt8] = []
    heads.reserveCapacity(records.count * Self.headSize)
    for id in records.keys.sorted() {
      guard let record = records[id] else { continue }
      if keepsNumbers, let offset = record.offset {
        heads += stored.bytes[offset..<(offset + Self.headSize)]
      } else {
        Self.append(record, to: &heads, &table)
      }
    }
    var bytes = Self.magic
    bytes.reserveCapacity(heads.count + table.lines.reduce(4096) { $0 + $1.count + 4 })
    for count in [table.lines.count, table.commons.count, records.count] {
      bytes.append(littleEndian: UInt32(count))
    }
    for line in table.lines {
      bytes.append(littleEndian: UInt32(line.count))
      bytes += line
    }
    for lines in table.commons {
      bytes.append(littleEndian: lines.rest)
      for numbers in [lines.apps, lines.containers] {
        bytes.append(littleEndian: UInt32(numbers.count))
        for number in numbers { bytes.append(littleEndian: number) }
      }
    }
    bytes += heads
    return bytes + Blake2b.hash(bytes).bytes
  }

  /// The lines and common members of a new file.
  private struct Table {
    var lines: [[UInt8]] = []
    private(set) var commons: [Lines] = []
    private var numbers: [ObjectIdentifier: UInt32] = [:]
    private var indexes: [[UInt8]: UInt32] = [:]
    private var hasIndexes = false

    init(_ capacity: Int) { lines.reserveCapacity(capacity) }

    mutating func add(_ object: SnapshotHead.Common, _ lines: Lines) {
      numbers[ObjectIdentifier(object)] = UInt32(commons.count)
      commons.append(lines)
    }

    /// Returns the number of common members.
    mutating func number(of object: SnapshotHead.Common) -> UInt32 {
      if let number = numbers[ObjectIdentifier(object)] { return number }
      var rest = object.members
      let (apps, containers) = (rest.apps, rest.device.containers)
      (rest.apps, rest.device.containers) = ([], [])
      let lines = Lines(
        rest: index(of: rest.encode().dropLast()),
        apps: apps.map { index(of: $0.json.compactBytes) },
        containers: containers.map { index(of: $0.json.compactBytes) })
      add(object, lines)
      return UInt32(commons.count - 1)
    }

    mutating func index(of line: [UInt8]) -> UInt32 {
      if !hasIndexes {
        for (number, line) in lines.enumerated() { indexes[line] = UInt32(number) }
        hasIndexes = true
      }
      if let index = indexes[line] { return index }
      lines.append(line)
      indexes[line] = UInt32(lines.count - 1)
      return UInt32(lines.count - 1)
    }
  }

  private static func append(
    _ record: SnapshotHeadCache.Record, to bytes: inout [UInt8], _ table: inout Table
  ) {
    let (head, status) = (record.head, record.status)
    let tags: JSON = ["tags": .array(head.tags) { .string($0) }]
    let numbers = [
      table.number(of: head.common), head.tags.isEmpty ? 0 : 1 + table.index(of: tags.compactBytes),
      signature(head.signature, &table),
    ]
    let original = head.original
    for digest in [head.id, head.tree.digest, head.parent ?? .missing] { digest.append(to: &bytes) }
    (original?.repository ?? .missing).append(to: &bytes)
    (original?.id ?? .missing).append(to: &bytes)
    for number in numbers { bytes.append(littleEndian: number) }
    bytes.append(littleEndian: (head.parent == nil ? 0 : 1) + (original == nil ? 0 : UInt32(2)))
    for number in [
      head.sequence, head.counts.entries, head.counts.files, head.counts.bytes, head.counts.stored,
      status.size,
    ] {
      bytes.append(littleEndian: number)
    }
    for time in [head.time, status.modified] {
      bytes.append(littleEndian: time.seconds)
      bytes.append(littleEndian: time.nanoseconds)
    }
  }
}

// MARK: - Decoding

extension SnapshotHeadCache.Content {
  /// The number of an invalid or missing signature; greater numbers refer to the line with the
  /// signer of a valid one.
  private static let invalidSignatures: [SnapshotSignature] = [.absent, .wrong, .malformed]

  /// Returns the number of a signature.
  private static func signature(
    _ signature: SnapshotSignature, _ table: inout Table
  ) -> UInt32 {
    guard let signer = signature.signer else {
      return UInt32(invalidSignatures.firstIndex(of: signature) ?? 0)
    }
    let line: JSON = ["signer": .string(signer.description)]
    return UInt32(invalidSignatures.count) + table.index(of: line.compactBytes)
  }

  /// Returns the signature of a number.
  private static func signature(
    _ number: UInt32, _ parts: inout Parts
  ) throws(StoreError) -> SnapshotSignature {
    if number < invalidSignatures.count { return invalidSignatures[Int(number)] }
    return .valid(try parts.signer(number - UInt32(invalidSignatures.count)))
  }

  /// Reads a file.
  ///
  /// - Throws: `damaged` if it is not intact, or of another version.
  init(decoding bytes: [UInt8]) throws(StoreError) {
    let end = bytes.count - Digest.byteCount
    let table = bytes.span.bytes
    guard end >= Self.magic.count, bytes.starts(with: Self.magic),
      Blake2b.hash(table.extracting(0..<end)) == Digest(table, at: end)
    else { throw Self.damage }
    var reader = Reader(bytes: bytes, end: end, at: Self.magic.count)
    let counts = (try reader.count(), try reader.count(), try reader.count())
    for _ in 0..<counts.0 { stored.lines.append(try reader.line()) }
    var parts = Parts(stored.lines)
    for _ in 0..<counts.1 {
      let rest = try reader.integer(UInt32.self)
      let lines = Lines(rest: rest, apps: try reader.numbers(), containers: try reader.numbers())
      var members = try parts.snapshot(lines.rest)
      for number in lines.apps { members.apps.append(try parts.app(number)) }
      for number in lines.containers {
        members.device.containers.append(try parts.container(number))
      }
      stored.commons.append((SnapshotHead.Common(of: members), lines))
    }
    records.reserveCapacity(counts.2)
    for _ in 0..<counts.2 {
      let offset = reader.at
      var record = try record(&reader, &parts)
      record.offset = offset
      records[record.head.id] = record
    }
    guard reader.at == end else { throw Self.damage }
    stored.bytes = bytes
  }

  private func record(
    _ reader: inout Reader, _ parts: inout Parts
  ) throws(StoreError) -> SnapshotHeadCache.Record {
    let (id, tree, parent) = (try reader.digest(), try reader.digest(), try reader.digest())
    let original = Snapshot.Original(repository: try reader.digest(), id: try reader.digest())
    let (common, tags) = (Int(try reader.integer(UInt32.self)), try reader.integer(UInt32.self))
    let signature = try Self.signature(reader.integer(UInt32.self), &parts)
    let flags = try reader.integer(UInt32.self)
    guard stored.commons.indices.contains(common), flags < 4 else { throw Self.damage }
    let sequence = try reader.integer(UInt64.self)
    let counts = SnapshotHead.Counts(
      entries: try reader.integer(UInt64.self), files: try reader.integer(UInt64.self),
      bytes: try reader.integer(UInt64.self), stored: try reader.integer(UInt64.self))
    let size = try reader.integer(UInt64.self)
    let (time, modified) = (try reader.time(), try reader.time())
    let head = SnapshotHead(
      id: id, sequence: sequence, time: time, tree: TreeReference(tree),
      parent: flags & 1 == 0 ? nil : parent, original: flags & 2 == 0 ? nil : original,
      tags: tags == 0 ? [] : try parts.tags(tags - 1), signature: signature, counts: counts,
      common: stored.commons[common].object)
    let status = ObjectStatus(isDirectory: false, size: size, modified: modified)
    return SnapshotHeadCache.Record(head: head, status: status)
  }

  fileprivate static var damage: StoreError {
    .damaged("snapshot-heads", "it is not an intact file of snapshot heads")
  }

  /// Reads values one after another.
  private struct Reader {
    let bytes: [UInt8]
    let end: Int
    private(set) var at: Int

    init(bytes: [UInt8], end: Int, at start: Int) {
      (self.bytes, self.end, at) = (bytes, end, start)
    }

    private mutating func advance(_ count: Int) throws(StoreError) -> Int {
      guard count <= end - at else { throw SnapshotHeadCache.Content.damage }
      at += count
      return at - count
    }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(
      _ type: Value.Type
    ) throws(StoreError) -> Value {
      let start = try advance(MemoryLayout<Value>.size)
      return bytes.span.bytes.integer(at: start, as: type)
    }

    /// Reads a number of elements that take at least four bytes each.
    mutating func count() throws(StoreError) -> Int {
      let count = Int(try integer(UInt32.self))
      guard count <= (end - at) / 4 else { throw SnapshotHeadCache.Content.damage }
      return count
    }

    mutating func numbers() throws(StoreError) -> [UInt32] {
      var numbers: [UInt32] = []
      for _ in 0..<(try count()) { numbers.append(try integer(UInt32.self)) }
      return numbers
    }

    mutating func line() throws(StoreError) -> [UInt8] {
      let count = Int(try integer(UInt32.self))
      let start = try advance(count)
      return Array(bytes[start..<(start + count)])
    }

    mutating func digest() throws(StoreError) -> Digest {
      let start = try advance(Digest.byteCount)
      return Digest(bytes.span.bytes, at: start)
    }

    mutating func time() throws(StoreError) -> Timestamp {
      Timestamp(
        seconds: try integer(Int64.self), nanoseconds: try integer(UInt32.self))
    }
  }

  /// The values of the lines, each of which is parsed once.
  private struct Parts {
    private let lines: [[UInt8]]
    private var apps: [UInt32: AppRecord] = [:]
    private var containers: [UInt32: DeviceRecord.Container] = [:]
    private var snapshots: [UInt32: Snapshot] = [:]
    private var lists: [UInt32: [String]] = [:]
    private var signers: [UInt32: Signer] = [:]

    init(_ lines: [[UInt8]]) { self.lines = lines }

    private func line(_ number: UInt32) throws(StoreError) -> [UInt8] {
      guard number < lines.count else { throw SnapshotHeadCache.Content.damage }
      return lines[Int(number)]
    }

    private func fields(_ number: UInt32) throws(StoreError) -> JSONFields {
      let limits = JSON.Limits(
        bytes: FormatLimit.snapshot, depth: 16, values: FormatLimit.snapshotValues)
      let line = try line(number)
      let json = try StoreError.wrap(coding: "snapshot-heads") { () throws(CodecError) in
        try JSON(parsing: line, limits: limits)
      }
      return JSONFields(json: json, object: "snapshot-heads")
    }

    mutating func app(_ number: UInt32) throws(StoreError) -> AppRecord {
      if let app = apps[number] { return app }
      let app = try AppRecord(fields(number))
      apps[number] = app
      return app
    }

    mutating func container(_ number: UInt32) throws(StoreError) -> DeviceRecord.Container {
      if let container = containers[number] { return container }
      let container = try DeviceRecord.Container(fields(number))
      containers[number] = container
      return container
    }

    mutating func snapshot(_ number: UInt32) throws(StoreError) -> Snapshot {
      if let snapshot = snapshots[number] { return snapshot }
      let snapshot = try SnapshotHead.members(line(number), object: "snapshot-heads")
      snapshots[number] = snapshot
      return snapshot
    }

    mutating func tags(_ number: UInt32) throws(StoreError) -> [String] {
      if let tags = lists[number] { return tags }
      let tags = try fields(number).strings("tags")
      lists[number] = tags
      return tags
    }

    mutating func signer(_ number: UInt32) throws(StoreError) -> Signer {
      if let signer = signers[number] { return signer }
      guard let signer = try? Signer(fields(number).string("signer")) else {
        throw SnapshotHeadCache.Content.damage
      }
      signers[number] = signer
      return signer
    }
  }
}
