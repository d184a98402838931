import Codecs
import Synchronization
import SystemIO
import TestSupport

@testable import ArchiveStore
@testable import Mount

/// A repository in memory with snapshots of a small tree, and its mounted file system.
struct MountFixture {
  let storage = MemoryStorage()
  let repository: Repository
  let reports = Reports()

  /// The messages of a file system.
  final class Reports: Sendable {
    private let texts = Mutex<[String]>([])

    var all: [String] { texts.withLock { $0 } }

    func add(_ text: String) { texts.withLock { $0.append(text) } }
  }

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  static let large = Seeded(7).some(5 << 20)

  /// Stores the tree `apps/org.example.notes/data` and a snapshot of it.
  @discardableResult
  func backUp(note: String = "hello", sequence: UInt64 = 1) throws -> StoredSnapshot {
    let session = try repository.beginWriting()
    let writer = try session.makeWriter()
    var entries = try files(writer, note)
    let below = try session.storeTree([TreeEntry(name: "inner", node: .fifo)])
    entries.append(TreeEntry(name: "folder", node: .directory(below), permissions: 0o700))
    try writer.flush()
    let data = try session.storeTree(entries)
    let app = try session.storeTree([TreeEntry(name: "data", node: .directory(data))])
    let apps = try session.storeTree([
      TreeEntry(name: "org.example.notes", node: .directory(app), permissions: 0o750, owner: 7)
    ])
    let root = try session.storeTree([TreeEntry(name: "apps", node: .directory(apps))])
    return try session.finish(snapshot(root, sequence))
  }

  private func files(_ writer: ContentWriter, _ note: String) throws -> [TreeEntry] {
    let path: ByteString = "apps/org.example.notes/data/"
    let text = try writer.storeFile(
      logicalPath: path.concatenating("note"), bytes: Array(note.utf8).span)
    let large = try writer.storeFile(
      logicalPath: path.concatenating("large"), bytes: Self.large.span)
    let sparse = try writer.storeFile(logicalPath: path.concatenating("sparse")) { file in
      try file.append(Array("begin".utf8).span)
      try file.appendHole(length: 1 << 20)
      try file.append(Array("end".utf8).span)
      try file.appendHole(length: 4096)
    }
    let attribute = try writer.makeAttribute(
      name: "user.big", value: [UInt8](repeating: 65, count: 3000))
    let time = Timestamp(seconds: -5, nanoseconds: 7)
    var twin = TreeEntry(
      name: "note", node: .file(text), permissions: 0o4640, owner: 3, group: 4, modified: time,
      attributes: [Attribute(name: "user.a", value: .inline([1, 2])), attribute])
    twin.linkGroup = "apps/org.example.notes/data/note"
    return [
      twin, twin.named("twin"), TreeEntry(name: "large", node: .file(large)),
      TreeEntry(name: "link", node: .symlink(target: "note")),
      TreeEntry(name: "sparse", node: .file(sparse)),
      TreeEntry(
        name: "tty", node: .characterDevice(TreeEntry.DeviceNumber(major: 4, minor: 300))),
      TreeEntry(name: ByteString([0xff, 0x0a]), node: .socket),
    ]
  }

  func snapshot(_ root: TreeReference, _ sequence: UInt64) -> Snapshot {
    var snapshot = Snapshot(
      repository: repository.id, source: Blake2b.hash(Array("source".utf8)), sequence: sequence,
      time: Timestamp(seconds: 1_793_529_000 + Int64(sequence)), host: "host", user: "user",
      device: DeviceRecord(
        identity: "device", platform: "linux", layout: "folder", root: "/home/user"),
      scope: .device, reason: .manual,
      policy: PolicyRecord(name: "everything", digest: Blake2b.hash([])), tree: root,
      program: "sandboxctl test")
    snapshot.apps = [
      AppRecord(identifier: "org.example.notes", containers: ["apps/org.example.notes/data"]),
      AppRecord(identifier: "../escape", containers: ["apps/x"]),
    ]
    return snapshot
  }

  /// Returns a file system of all snapshots, whose list is always up to date.
  func files(
    _ selection: SnapshotSelection = SnapshotSelection(), interval: Double = 0,
    dataCapacity: Int = SharedReader.dataCapacity
  ) throws -> SnapshotFileSystem {
    let reader = try repository.beginSharedReading(dataCapacity: dataCapacity)
    return try SnapshotFileSystem(reader, selection, interval: interval) { [reports] in
      reports.add($0)
    }
  }

  /// Damages the frames of blobs, or only the blobs themselves if the data is incompressible.
  func damage(_ blobs: [BlobID]) throws {
    let reader = try repository.beginReading()
    for blob in blobs {
      guard let found = reader.index.set.find(blob) else { continue }
      let path = storage.layout.pack(found.pack)
      var bytes = try storage.load(path, limit: 1 << 30)
      // Random data is stored uncompressed, so the blob is at its own offset in the frame.
      let start = Int(found.frame.offset)
      let isRaw = found.frame.stored >= found.frame.plain
      let range =
        isRaw
        ? start + found.offset + found.length / 2..<start + found.offset + found.length / 2 + 8
        : start + 8..<start + Int(found.frame.stored)
      for index in range { bytes[index] ^= 0x55 }
      try storage.replace(path, by: bytes)
    }
  }

  static let data: ByteString = "apps/org.example.notes/data"
}

extension SnapshotFileSystem {
  /// Looks up a path from the root or from a directory.
  func find(_ path: ByteString, from start: UInt64 = root) throws -> NodeAttributes {
    var attributes = try attributes(of: start)
    for name in path.components { attributes = try lookUp(name, in: attributes.number) }
    return attributes
  }

  /// Returns the bytes of a file, read in ranges of `step` bytes.
  func bytes(of number: UInt64, step: Int = 100_000) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let parts = try read(number, from: UInt64(bytes.count), count: step)
      if parts.isEmpty { return bytes }
      for part in parts {
        switch part {
        case .bytes(let slice): bytes += slice.bytes
        case .zeros(let count): bytes += repeatElement(0, count: count)
        }
      }
    }
  }

  /// Returns the names in a directory, listed a few at a time.
  func names(in number: UInt64, step: Int = 3) throws -> [ByteString] {
    let handle = try openDirectory(number).handle
    defer { closeDirectory(handle) }
    var names: [ByteString] = []
    var offset: Int64 = 0
    while true {
      var room = step
      let before = names.count
      try readDirectory(handle, from: offset) { item in
        guard room > 0 else { return false }
        room -= 1
        names.append(item.name)
        offset = item.next
        return true
      }
      if names.count == before { return names }
    }
  }
}

extension Seeded {
  /// Returns random bytes from a copy of this generator.
  fileprivate func some(_ count: Int) -> [UInt8] {
    var generator = self
    return generator.bytes(count)
  }
}

extension MemoryStorage {
  fileprivate var layout: RepositoryLayout { RepositoryLayout(isEncrypted: false) }

  /// Replaces an object.
  fileprivate func replace(_ path: ObjectPath, by bytes: [UInt8]) throws {
    try remove(path)
    try save(bytes, as: path, by: RepositoryLayout.leases)
  }
}

/// Returns the error of a call, or nil if it throws none.
func mountError<Result>(_ body: () throws -> Result) -> FileSystemError? {
  do {
    _ = try body()
    return nil
  } catch { return error as? FileSystemError }
}
