import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A repository in memory with a snapshot of a small tree that contains every kind of blob:
///
///     folders/d/{a,b}       files of one blob
///     folders/d/big         a file with a list of two blobs
///     folders/d/named       an empty file with a stored attribute and fields of a later version
///     folders/d/paged/…     a directory of three pages of two empty files
///     folders/d/sub/{c,e}   a directory in a separate pack
///     folders/d/whole/f     a directory
struct SnapshotRepairFixture {
  let memory: MemoryStorage
  let storage: WatchedStorage
  let repository: Repository
  /// The snapshot of the tree.
  private(set) var stored: StoredSnapshot
  /// The blobs by name: blobs of files by path, trees, pages, the list and the attribute.
  private(set) var blobs: [String: BlobID] = [:]
  /// The entries by path before any loss.
  private(set) var entries: [ByteString: TreeEntry] = [:]

  init() throws {
    let memory = MemoryStorage()
    (self.memory, storage) = (memory, WatchedStorage(memory))
    repository = try Repository.create(in: storage, program: "test")
    // The first snapshot is of `sub` alone, so that its tree is in a separate pack.
    let first = try repository.beginWriting()
    let below = try Self.files(["c", "e"], first, &blobs)
    let sub = try first.storeTree(below)
    stored = try first.finish(repository.makeSnapshot(sub))
    try memory.remove(RepositoryLayout.tested.snapshot(stored.id))
    let session = try repository.beginWriting()
    let directory = try Self.directory(sub: sub, session, &blobs)
    let top = try session.storeTree([TreeEntry(name: "d", node: .directory(directory))])
    let root = try session.storeTree([TreeEntry(name: "folders", node: .directory(top))])
    (blobs["sub"], blobs["root"]) = (tree(sub), tree(root))
    stored = try session.finish(Self.snapshot(of: repository, root))
    entries = try entries(of: stored)
  }

  private init(copying other: SnapshotRepairFixture) throws {
    (stored, blobs, entries) = (other.stored, other.blobs, other.entries)
    memory = other.memory.copy()
    storage = WatchedStorage(memory)
    repository = try Repository.open(storage)
  }

  /// Returns an independent fixture with the same content.
  func copy() throws -> SnapshotRepairFixture { try SnapshotRepairFixture(copying: self) }

  private static func snapshot(of repository: Repository, _ root: TreeReference) -> Snapshot {
    var snapshot = repository.makeSnapshot(root, sequence: 7)
    snapshot.classes = [
      ClassRun(path: "folders/d", name: "data"), ClassRun(path: "folders/d/sub", name: "cache"),
    ]
    snapshot.unreadable = [PathNote(path: "folders/d/locked", note: "permission denied")]
    snapshot.tags = ["weekly"]
    snapshot.reason = .scheduled
    snapshot.unknown = [JSON.Member("later", .string("version"))]
    return snapshot
  }

  private static func files(
    _ names: [String], _ session: WritingSession, _ blobs: inout [String: BlobID]
  ) throws -> [TreeEntry] {
    try names.map { name in
      let bytes = SeededBytes.some(seed: UInt64(name.utf8.first ?? 0), count: 2000)
      let content = try session.storeFile(logicalPath: ByteString(name), bytes: bytes)
      if case .blob(let digest, _) = content.pieces[0] {
        blobs[name] = BlobID(kind: .data, digest: digest)
      }
      return TreeEntry(name: ByteString(name), node: .file(content))
    }
  }

  private static func directory(
    sub: TreeReference, _ session: WritingSession, _ blobs: inout [String: BlobID]
  ) throws -> TreeReference {
    var entries = try files(["a", "b", "f", "g", "h"], session, &blobs)
    let pieces = try entries[3...].flatMap { entry in
      guard case .file(let content) = entry.node else { throw StoreError.missing("a file") }
      return content.pieces
    }
    let list = try session.storeList(level: 0, pieces: pieces)
    let value = SeededBytes.some(seed: 99, count: 600)
    let named = try session.makeAttribute(name: "user.note", value: value)
    if case .blob(let digest, _) = named.value {
      blobs["attribute"] = BlobID(kind: .data, digest: digest)
    }
    blobs["list"] = BlobID(kind: .list, digest: list)
    let whole = try session.storeTree([later(entries[2])])
    let big = Content(size: 4000, level: 1, pieces: [.blob(list, length: 4000)])
    entries[2...] = [
      TreeEntry(name: "big", node: .file(big)),
      later(TreeEntry(name: "named", node: .file(.empty), attributes: [named])),
      TreeEntry(name: "paged", node: .directory(try paged(session, &blobs))),
      TreeEntry(name: "sub", node: .directory(sub), permissions: 0o700),
      TreeEntry(name: "whole", node: .directory(whole)),
    ]
    let directory = try session.storeTree(entries)
    blobs["d"] = BlobID(kind: .tree, digest: directory.digest)
    return directory
  }

  /// Returns an entry with fields of a later version.
  private static func later(_ entry: TreeEntry) -> TreeEntry {
    var entry = entry
    entry.extensions = [TreeEntry.Extension(key: 200, value: [0x63, 0x61, 0x62, 0x63])]
    return entry
  }

  private static func paged(
    _ session: WritingSession, _ blobs: inout [String: BlobID]
  ) throws -> TreeReference {
    let table = try ["p", "q", "r"].map { page in
      let entries = ["1", "2"].map { number in
        TreeEntry(name: ByteString(page + number), node: .file(.empty))
      }
      let bytes = TreeCoding.encodePage(entries.map { TreeEntryCoding.encode($0) })
      let digest = try session.storeBytes(bytes, kind: .tree).digest
      blobs["page \(page)"] = BlobID(kind: .tree, digest: digest)
      return TreeBlob.Page(last: ByteString(page + "2"), digest: digest)
    }
    let id = try session.storeBytes(TreeCoding.encodeTable(table), kind: .tree)
    blobs["paged"] = id
    return TreeReference(id.digest)
  }

  private func tree(_ tree: TreeReference) -> BlobID { BlobID(kind: .tree, digest: tree.digest) }
}

extension SnapshotRepairFixture {
  /// Removes a blob from the index, as if its pack had been repaired without the blob.
  func lose(_ name: String) throws {
    let blob = try #require(blobs[name])
    for object in try LoadedIndex.loadAll(from: memory).objects {
      let records = (0..<object.blobs).compactMap { object.record($0) }
      guard records.contains(where: { $0.id == blob }) else { continue }
      let packs = (0..<object.packs).map { number in
        let pack = object.pack(number)
        return PackTables.Pack(
          id: pack.id, size: pack.size,
          frames: (0..<pack.frames).map { object.frame(pack.firstFrame + $0) })
      }
      let bytes = IndexBuilder(packs: packs, records: records.filter { $0.id != blob }).encode()
      try memory.remove(RepositoryLayout.tested.index(object.id))
      try memory.put(bytes, kind: .index)
    }
  }

  /// The pack of a blob.
  func pack(of name: String) throws -> Digest {
    let blob = try #require(blobs[name])
    return try #require(try Repository.open(memory).beginReading().locate(blob)?.pack)
  }

  /// Records damage, as a check of all data does.
  func check() throws {
    try RepositoryCheck(Repository.open(memory), reading: .everything, workers: 1).run()
      .recordDamage()
  }

  func repair(
    dry: Bool = false, forget: Bool = false, of ids: Set<SnapshotID>? = nil
  ) throws -> (report: SnapshotRepair.Report, repaired: [SnapshotRepair.Repaired]) {
    var repaired: [SnapshotRepair.Repaired] = []
    let report = try SnapshotRepair(repository, of: ids, isDry: dry, isForgetting: forget).run {
      repaired.append($0)
    }
    return (report, repaired)
  }

  /// Returns the entries of a snapshot that can be restored, by path, without lost attributes.
  func entries(of stored: StoredSnapshot) throws -> [ByteString: TreeEntry] {
    let reader = try Repository.open(memory).beginReading()
    var entries: [ByteString: TreeEntry] = [:]
    try reader.walkPastDamage(stored.snapshot.tree) { path, finding in
      if case .damage = finding { entries[path] = nil }
      guard case .entry(var entry) = finding else { return .enter }
      if case .file(let content) = entry.node, (try? reader.bytes(of: content)) == nil {
        return .skip
      }
      entry.attributes.removeAll { (try? reader.value(of: $0)) == nil }
      entries[path] = entry
      return .enter
    }
    return entries
  }

  /// Returns the snapshots that cannot be restored completely.
  func affected() throws -> Set<SnapshotID> {
    var affected: Set<SnapshotID> = []
    for finding in try Checked(Repository.open(memory), .everything).findings {
      if case .cost(_, let snapshots, _) = finding { affected.formUnion(snapshots) }
    }
    return affected
  }

  func snapshots() throws -> [SnapshotID] {
    try Repository.open(memory).snapshots().snapshots.map(\.id)
  }

  /// Removes leases that could not be released, as if they had expired.
  func removeLeases() throws {
    for name in try memory.list(RepositoryLayout.leases) {
      let lease = RepositoryLayout.leases.appending(name)
      for sign in try memory.list(lease) { try memory.remove(lease.appending(sign)) }
      try memory.remove(lease)
    }
  }
}
