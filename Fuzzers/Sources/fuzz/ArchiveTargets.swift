import Codecs
import SystemIO

@testable import ArchiveStore
@testable import Backup

extension Target {
  /// The objects of a repository and the state file.
  static let archiveTargets = [
    Target(name: "pack", run: pack),
    Target(name: "frame", run: frame),
    Target(name: "tar", run: tar),
    Target(name: "seek-table", run: seekTable),
    Target(name: "contents", run: contents),
    Target(name: "index", run: index),
    Target(name: "tree", run: tree),
    Target(name: "list", run: list),
    Target(name: "entry", run: entry),
    Target(name: "snapshot", run: snapshot),
    Target(name: "settings", run: settings),
    Target(name: "state", run: state),
    Target(name: "state-record", run: stateRecord),
  ]

  // MARK: - Packs

  /// A complete pack: its seek table, contents and frames.
  @Sendable private static func pack(_ bytes: [UInt8]) {
    let pack = OnePack(bytes)
    let storage = RepositoryStorage(pack, cipher: nil)
    let size = UInt64(bytes.count)
    _ = try? PackTables.load(pack.id, size: size, from: storage)
    guard var frames = try? PackCheck.FrameCheck() else { return }
    let check = PackCheck(
      pack.id, size: size, CheckedIndex([]), expected: 0, in: storage,
      outage: PackCheck.Outage(storage))
    check.work(&frames)
    require(check.finish().bytes <= size, "a pack was read more often than needed")
  }

  /// The decoded bytes of a pack's last frame. Mutations of the stored frame would fail its
  /// checksum.
  @Sendable private static func tar(_ bytes: [UInt8]) {
    let other = [UInt8](repeating: 7, count: 4096)
    var frames: [UInt8] = []
    guard var compressor = try? ZstdCompressor(ZstdMethod(level: 1)),
      let first = try? compressor.compress(other.span, appendingTo: &frames),
      let second = try? compressor.compress(bytes.span, appendingTo: &frames)
    else { return }
    let table = SeekTable(frames: [
      .init(storedSize: UInt32(first), contentSize: UInt32(other.count)),
      .init(storedSize: UInt32(second), contentSize: UInt32(bytes.count)),
    ])
    pack(frames + table.encoded())
    let limits = TarReader.Limits(members: 1000, contentSize: 1 << 20, totalSize: 1 << 20)
    try? TarReader.forEach(in: bytes.span, limits: limits) { _, _ in }
  }

  /// A zstd frame.
  @Sendable private static func frame(_ bytes: [UInt8]) {
    guard var strict = try? ZstdDecompressor(),
      var lenient = try? ZstdDecompressor(ignoresChecksum: true)
    else { return }
    let plain = try? lenient.decompress(bytes, limit: 1 << 20)
    require(plain?.count ?? 0 <= 1 << 20, "a frame had more bytes than its limit")
    guard let checked = try? strict.decompress(bytes, limit: 1 << 20) else { return }
    require(checked == plain, "a frame's bytes depend on whether its checksum is checked")
  }

  /// The end of a pack.
  @Sendable private static func seekTable(_ bytes: [UInt8]) {
    let limit = FormatLimit.framesPerPack
    guard let table = try? SeekTable(tail: bytes.span, maximumFrames: limit) else { return }
    require(table.frames.count <= limit, "more frames than a pack may have")
    var encoded = table.encoded()
    // Reserved flags of the format are not preserved.
    encoded[encoded.count - 5] = bytes[bytes.count - 5]
    require(
      bytes.suffix(encoded.count) == encoded[...], "a decoded seek table encodes to different bytes"
    )
  }

  /// The contents member.
  @Sendable private static func contents(_ bytes: [UInt8]) {
    let frames = (0..<4).map { FrameLocation(offset: $0 << 24, stored: 1 << 20, plain: 4 << 20) }
    guard let contents = try? PackTables.Contents(bytes, frames: frames, pack: "pack") else {
      return
    }
    let salt = Array(bytes.prefix(PackTables.Contents.saltSize))
    require(contents.encode(salt: salt) == bytes, "decoded contents encode to different bytes")
  }

  // MARK: - Tables and trees

  /// An index object. Each entry of an accepted object must be found.
  @Sendable private static func index(_ bytes: [UInt8]) {
    let content = SpillableArray(bytes)
    guard
      let object = try? IndexObject(
        id: Blake2b.hash(bytes), content: content, storedSize: UInt64(bytes.count))
    else { return }
    for number in 0..<object.packs {
      let pack = object.pack(number)
      for frame in 0..<pack.frames { _ = object.frame(pack.firstFrame + frame) }
    }
    for number in 0..<object.blobs {
      guard let record = object.record(number) else { fatalError("an entry cannot be read") }
      require(object.find(record.id) == record, "an entry is not found")
    }
    _ = CheckedIndex([object]).counts()
  }

  /// A tree blob. An accepted blob must encode to the same bytes.
  @Sendable private static func tree(_ bytes: [UInt8]) {
    guard let tree = try? TreeCoding.decode(bytes, object: "tree") else { return }
    switch tree {
    case .page(let entries):
      let encoded = entries.map { try? $0.encoded() }
      require(!encoded.contains(nil), "a decoded entry cannot be encoded")
      let page = TreeCoding.encodePage(encoded.compactMap(\.self))
      require(page == bytes, "a decoded page encodes to different bytes")
    case .table(let pages):
      require(TreeCoding.encodeTable(pages) == bytes, "a decoded table encodes to different bytes")
    }
  }

  /// A single entry, as in a state file.
  @Sendable private static func entry(_ bytes: [UInt8]) {
    guard let entry = try? TreeEntry(encoded: bytes) else { return }
    require((try? entry.encoded()) == bytes, "a decoded entry encodes to different bytes")
  }

  /// A list blob after its level and its length in the file.
  @Sendable private static func list(_ bytes: [UInt8]) {
    guard bytes.count > 9 else { return }
    let (level, length) = (bytes[0], LittleEndian.integer(bytes.span, at: 1, as: UInt64.self))
    let list = Array(bytes.dropFirst(9))
    guard
      let pieces = try? ContentCoding.decodeList(list, level: level, length: length, object: "list")
    else { return }
    let encoded = ContentCoding.encodeList(level: level, pieces: pieces)
    require(encoded == list, "a decoded list encodes to different bytes")
  }

  // MARK: - Text

  /// Line 1 of a snapshot. An accepted line must be equal after writing and reading it again.
  @Sendable private static func snapshot(_ bytes: [UInt8]) {
    _ = try? StoredSnapshot(id: Blake2b.hash(bytes), content: bytes, object: "a snapshot")
    guard let snapshot = try? Snapshot(line: bytes, object: "snapshot") else { return }
    let written = snapshot.encode()
    let again = try? Snapshot(line: written.dropLast(), object: "snapshot")
    require(again == snapshot, "a snapshot changed when it was written and read again")
  }

  /// `repository.json` and a list of condemned packs.
  @Sendable private static func settings(_ bytes: [UInt8]) {
    _ = try? CondemnedObject(bytes, object: "condemned")
    guard let settings = try? RepositorySettings(bytes) else { return }
    require(
      (try? RepositorySettings(settings.encode())) == settings,
      "settings changed when they were written and read again")
  }

  // MARK: - State files

  private static let key = StateKey(repository: Blake2b.hash([1]), source: Blake2b.hash([2]))

  /// A complete state file. The checksums of its heads are corrected, because they would reject
  /// most mutations.
  @Sendable private static func state(_ bytes: [UInt8]) {
    _ = StateExamination.examine(StateSums.corrected(bytes, key), as: key)
  }

  /// A record of a state file.
  @Sendable private static func stateRecord(_ bytes: [UInt8]) {
    _ = StateExamination.examineRecord(bytes)
  }
}

/// A storage with one pack under its id, which cannot be changed.
private struct OnePack: Storage {
  let id: Digest
  private let path: ObjectPath
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) {
    id = Blake2b.hash(bytes)
    path = RepositoryLayout.plain.pack(id)
    self.bytes = bytes
  }

  var location: String { "one pack" }
  var canRename: Bool { false }

  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    guard path == self.path else { throw .missing("\(path)") }
    guard bytes.count <= limit else { throw .damaged("\(path)", "it exceeds the limit") }
    return bytes
  }

  func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    guard path == self.path else { throw .missing("\(path)") }
    guard offset <= UInt64(bytes.count), count <= bytes.count - Int(offset) else {
      throw .damaged("\(path)", "it ends before byte \(offset &+ UInt64(count))")
    }
    buffer = Array(bytes[Int(offset)..<(Int(offset) + count)])
  }

  func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    guard path == self.path else { return nil }
    return ObjectStatus(
      isDirectory: false, size: UInt64(bytes.count), modified: Timestamp(seconds: 0))
  }

  func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    throw .missing("\(directory)")
  }

  func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    throw .missing("\(directory)")
  }

  func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    throw .missing("\(directory)")
  }

  func makeDirectories(_ names: [ByteString], in directory: ObjectPath) throws(StoreError) {
    throw .missing("\(directory)")
  }

  func touch(_ path: ObjectPath) throws(StoreError) { throw .missing("\(path)") }

  func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    throw .missing("\(path)")
  }

  func remove(_ path: ObjectPath) throws(StoreError) { throw .missing("\(path)") }
}
