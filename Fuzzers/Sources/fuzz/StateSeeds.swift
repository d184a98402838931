import ArchiveStore
import Codecs
import SystemIO

@testable import Backup

/// A state file, the file of an interrupted run, and their records, as a run writes them.
enum StateSeeds {
  private static let key = StateKey(repository: Blake2b.hash([1]), source: Blake2b.hash([2]))

  static func all() throws -> [(target: String, bytes: [UInt8])] {
    let records = RecordFile(try Descriptor.inMemory([]), end: KnownState.Head.firstRecord)
    let inner = directory(records, names: 0..<3, below: nil)
    let top = directory(records, names: 0..<20, below: inner)
    let paged = directory(records, names: 0..<2000, below: nil)
    let table = ContainerTable.encode([
      row("apps/org.example.a/data", top), row("groups/org.example.g", paged),
    ])
    let location = records.append(table)
    try records.flush()
    let end = records.end
    let bytes = try records.descriptor.read(count: Int(end), at: 0)
    let smallTable = ContainerTable.encode([row("folders/a", inner)])
    var small = Array(bytes.prefix(Int((top ?? .nowhere).offset)))
    let smallPointer = RecordPointer(of: smallTable, at: UInt64(small.count))
    small += smallTable
    var seeds = [("state", put(smallPointer, into: small)), ("state", interrupted())]
    for location in [inner, top, location] {
      guard let location, let record = records.read(location) else { continue }
      seeds.append(("state-record", record))
    }
    seeds.append(("state-record", entries(0..<4)))
    seeds.append(("state-record", Array(pieces(0..<3).dropFirst(ChunkCheckpoint.FileVersion.size))))
    seeds.append(("state-record", Array(put(location, into: bytes).prefix(KnownState.Head.size))))
    return seeds
  }

  /// Returns the bytes with a head at both positions.
  private static func put(_ containers: RecordPointer?, into bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    var head = KnownState.Head(key, program: "sandboxctl", end: UInt64(bytes.count))
    head.containers = containers
    for location in KnownState.Head.locations {
      head.generation += 1
      bytes.replaceSubrange(
        Int(location)..<(Int(location) + KnownState.Head.size), with: head.encoded())
    }
    return bytes
  }

  private static func interrupted() -> [UInt8] {
    var bytes = KnownState.Head(key, program: "sandboxctl").encoded()
    let keys = ["apps/org.example.a/data", "folders/a"].map {
      DirectoryKey(container: ByteString($0))
    }
    for (key, content) in [
      (keys[0], entries(0..<5)), (keys[1], entries(0..<5)), (keys[1].file("large"), pieces(0..<5)),
    ] {
      let batch = key.digest.bytes + content
      LittleEndian.append(UInt32(batch.count), to: &bytes)
      LittleEndian.append(Blake2b.hash(batch).leadingWord, to: &bytes)
      bytes += batch
    }
    return bytes
  }

  // MARK: - Entries

  private static func status(_ number: Int) -> FileStatus {
    let time = Timestamp(seconds: 1_700_000_000 + Int64(number), nanoseconds: 5)
    return FileStatus(
      number % 7 == 6 ? .directory : .file,
      identity: FileIdentity(device: 1, inode: UInt64(number)), size: UInt64(number) * 100,
      modified: time, changed: time)
  }

  private static func name(_ number: Int) -> [UInt8] {
    Array("file \(number + 10_000)".utf8)
  }

  private static func encoded(_ number: Int) -> [UInt8]? {
    if number % 5 == 4 { return nil }
    return try? TreeEntry(name: ByteString(name(number)), node: .symlink(target: "x")).encoded()
  }

  private static func directory(
    _ file: RecordFile, names: Range<Int>, below: RecordPointer?
  ) -> RecordPointer? {
    var record = DirectoryRecord(file)
    for number in names {
      record.add(
        name(number).span, status(number), isStable: number % 2 == 0, encoded: encoded(number),
        record: number % 7 == 6 ? below : nil)
    }
    return record.write(tree: TreeReference(Blake2b.hash([UInt8(names.count % 256)])))
  }

  private static func entries(_ numbers: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    for number in numbers {
      _ = KnownEntry.Layout.append(
        name(number).span, status: status(number), isStable: number % 2 == 0,
        encoded: encoded(number), record: nil, to: &bytes)
    }
    return bytes
  }

  /// Returns a large file and pieces of it.
  private static func pieces(_ numbers: Range<Int>) -> [UInt8] {
    var bytes = ChunkCheckpoint.FileVersion(status(1_000_000)).bytes
    for number in numbers {
      ChunkCheckpoint.Piece(
        offset: UInt64(number) << 20, length: 1 << 20, digest: Blake2b.hash([UInt8(number)])
      ).append(to: &bytes)
    }
    return bytes
  }

  private static func row(_ path: ByteString, _ directory: RecordPointer?) -> ContainerTable.Row {
    var entry: [UInt8] = []
    path.withSpan { name in
      _ = KnownEntry.Layout.append(
        name, status: status(6), isStable: true, encoded: nil, record: directory, to: &entry)
    }
    return ContainerTable.Row(
      path: path, snapshot: Blake2b.hash([3]), packs: .nowhere, entry: entry)
  }
}
