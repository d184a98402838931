import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The findings of a check in intact and damaged repositories.
struct CheckTests {
  private let storage = MemoryStorage()
  private let repository: Repository
  private let first: StoredSnapshot
  private let second: StoredSnapshot

  init() throws {
    var random = SeededBytes(seed: 51)
    repository = try Repository.create(in: storage, program: "test")
    let old = (name: "old", bytes: random.bytes(3000))
    let both = (name: "both", bytes: random.bytes(2000))
    first = try repository.back(up: [old, both])
    second = try repository.back(up: [both, ("new", random.bytes(1000))], sequence: 2)
  }

  private func pack(of snapshot: StoredSnapshot, _ path: ByteString) throws -> Digest {
    let reader = try repository.beginReading()
    let entry = try #require(try reader.entry(at: path, in: snapshot.snapshot.tree))
    guard case .file(let content) = entry.node, case .blob(let digest, _) = content.pieces[0]
    else { throw StoreError.missing("\(path)") }
    return try #require(reader.locate(BlobID(kind: .data, digest: digest))).pack
  }

  @Test(arguments: [RepositoryCheck.Reading.trees, .everything, .fraction(1), .group(1, count: 1)])
  func intactRepositoryHasNoFindings(_ reading: RepositoryCheck.Reading) throws {
    let found = try Checked(repository, reading)
    #expect(found.findings.isEmpty)
    let report = found.report
    #expect(report.snapshots == 2 && report.indexes == 1 && report.packs == 4)
    #expect(report.trees == 2 && report.entries == 4)
    #expect(report.packsRead == (reading == .trees ? 0 : 4))
    #expect(report.bytesRead == (reading == .trees ? 0 : report.storedBytes))
    #expect(report.blobsRead == (reading == .trees ? 0 : 5))
  }

  @Test func missingPackLosesItsContents() throws {
    try storage.remove(RepositoryLayout.tested.pack(pack(of: first, "both")))
    for reading in [RepositoryCheck.Reading.trees, .everything] {
      let found = try Checked(repository, reading)
      #expect(found.damaged.count == 1 && found.damaged[0].hasPrefix("packs/"))
      #expect(found.costs == ["both": [first.id, second.id], "old": [first.id]])
    }
  }

  @Test func flippedByteIsFoundWhenDataIsRead() throws {
    let path = RepositoryLayout.tested.pack(try pack(of: second, "new"))
    try storage.change(path) { $0[700] ^= 1 }
    #expect(try Checked(repository, .trees).findings.isEmpty)
    let found = try Checked(repository, .everything)
    #expect(found.damaged == ["\(path)"])
    #expect(found.costs == ["new": [second.id]])
  }

  @Test func truncatedPackIsFoundByItsSize() throws {
    let path = RepositoryLayout.tested.pack(try pack(of: second, "new"))
    try storage.change(path) { $0.removeLast() }
    let found = try Checked(repository, .trees)
    #expect(found.damaged == ["\(path)"])
    // Only the table at the end is cut off, or the only piece of an encrypted pack.
    #expect(found.costs == (TestEncryption.isOn ? ["new": [second.id]] : [:]))
    try storage.change(path) { $0.removeSubrange(100...) }
    #expect(try Checked(repository, .trees).costs == ["new": [second.id]])
    #expect(try Checked(repository, .everything).costs == ["new": [second.id]])
  }

  @Test func damagedSnapshotDoesNotAffectOthers() throws {
    let path = RepositoryLayout.tested.snapshot(first.id)
    try storage.change(path) { $0[5] ^= 1 }
    let found = try Checked(repository, .everything)
    #expect(found.damaged == ["\(path)"])
    #expect(found.costs.isEmpty)
    #expect(found.report.snapshots == 1)
  }

  /// A blob in several packs is lost only if all are damaged.
  @Test(arguments: [2, 20])
  func oneCopyOfABlobIsSufficient(copies: Int) throws {
    let sessions = try (0..<copies).map { _ in try repository.beginWriting() }
    for (number, session) in sessions.enumerated() {
      let content = try session.storeFile(logicalPath: "folders/test/twice", bytes: [1, 2, 3])
      let tree = try session.storeTree([TreeEntry(name: "twice", node: .file(content))])
      _ = try session.finish(repository.makeSnapshot(tree, sequence: UInt64(number + 3)))
    }
    let blob = BlobID(kind: .data, digest: Blake2b.hash([1, 2, 3]))
    let packs = IndexSet(try LoadedIndex.loadAll(from: storage).objects).findAll(blob).map(\.pack)
    #expect(packs.count == copies)
    for (number, pack) in packs.enumerated() {
      try storage.change(RepositoryLayout.tested.pack(pack)) {
        $0[TestEncryption.isOn ? $0.count - 20 : 0] ^= 1
      }
      let found = try Checked(repository, .everything)
      #expect(found.damaged.count == number + 1)
      #expect(found.costs.keys.sorted() == (number < copies - 1 ? [] : ["twice"]))
    }
  }

  /// An index object whose blob locations differ from the packs' own tables, even beyond the end of
  /// a frame.
  @Test(arguments: [(1, 0), (1 << 20, 1 << 20)] as [(UInt32, UInt32)])
  func wrongIndexIsReported(shift: UInt32, more: UInt32) throws {
    let object = try #require(try LoadedIndex.loadAll(from: storage).objects.first)
    var builder = IndexBuilder()
    builder.records = (0..<object.blobs).compactMap { object.record($0) }
    let lying = Set(builder.records.filter { $0.kind == .data }.map { Int($0.pack) })
    for number in 0..<object.packs {
      let pack = object.pack(number)
      let more = lying.contains(number) ? more : 0
      let frames = (0..<pack.frames).map { object.frame(pack.firstFrame + $0) }.map {
        FrameLocation(offset: $0.offset, stored: $0.stored, plain: $0.plain + more)
      }
      builder.packs.append(.init(id: pack.id, size: pack.size, frames: frames))
    }
    for number in builder.records.indices where builder.records[number].kind == .data {
      builder.records[number].offset += shift
    }
    let bytes = builder.encode()
    try storage.remove(RepositoryLayout.tested.index(object.id))
    try storage.put(bytes, kind: .index)
    #expect(try Checked(repository, .trees).findings.isEmpty)
    let found = try Checked(repository, .everything)
    #expect(found.damaged.count == 2)
    #expect(
      found.costs == ["both": [first.id, second.id], "old": [first.id], "new": [second.id]])
  }

  /// Objects that later versions add to a repository of version 1 (docs/repository-format.md).
  @Test func pendingSnapshotsAndReadLeasesAreNotDamage() throws {
    let pending = ObjectPath.root.appending("pending")
    try storage.makeDirectories([pending.name], in: .root)
    let bytes = try storage.load(RepositoryLayout.tested.snapshot(second.id), limit: 1 << 20)
    try storage.remove(RepositoryLayout.tested.snapshot(second.id))
    try storage.put(bytes, pending.appending(RepositoryLayout.tested.snapshot(second.id).name))
    try storage.put([1], pending.appending("of a later version"))
    let reader = RepositoryLayout.leases.appending(ByteString(String(repeating: "ab", count: 16)))
    try storage.makeDirectories([reader.name], in: RepositoryLayout.leases)
    for name: ByteString in ["alive", "reader"] { try storage.touch(reader.appending(name)) }
    let found = try Checked(repository, .everything)
    #expect(found.damaged.isEmpty && found.costs.isEmpty && found.report.snapshots == 1)
    #expect(
      found.findings == [
        .remark(object: "\(reader)", reason: "a program is running, with 0 unfinished objects")
      ])
    #expect(try repository.snapshots().snapshots == [first])
    #expect(try repository.heads().heads.map(\.id) == [first.id])
    try repository.back(up: [("more", [1, 2, 3])], sequence: 3)
    #expect(try repository.snapshots().snapshots.count == 2)
    #expect(try storage.list(reader) == ["alive", "reader"])
    #expect(try storage.list(pending).count == 2)
  }

  /// The lease of a program that ends during the check is not reported.
  @Test func programsThatEndDuringTheCheckAreNotReported() throws {
    let lease = try Lease(repository.storage)
    let watched = WatchedStorage(storage)
    watched.state.withLock {
      $0.action = { event in if event.hasPrefix("load snapshots/") { lease.release() } }
    }
    let found = try Checked(Repository.open(watched), .everything)
    #expect(found.findings.isEmpty, "\(found.findings)")
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  /// Leftovers of an interrupted run are remarks, not damage.
  @Test func leftoversAreRemarks() throws {
    let session = try repository.beginWriting()
    _ = try session.storeBytes([1], kind: .data)
    let writing = try Checked(repository, .everything)
    #expect(writing.damaged.isEmpty && writing.costs.isEmpty)
    #expect(writing.remarks.count == 1 && writing.remarks[0].hasPrefix("leases/"))
    session.abandon()
    let unused = try storage.load(
      RepositoryLayout.tested.pack(pack(of: first, "old")), limit: 1 << 20)
    let copy = Array(unused.reversed())
    try storage.put(copy, RepositoryLayout.tested.pack(Blake2b.hash(copy)))
    try storage.put([], RepositoryLayout.packs.appending("00").appending("stranger"))
    try storage.put([], RepositoryLayout.pins.appending("nothing"))
    try storage.remove(RepositoryLayout.readme)
    let left = try Checked(repository, .trees)
    #expect(left.damaged.isEmpty && left.costs.isEmpty)
    #expect(
      Set(left.remarks) == ["packs", "packs/00/stranger", "pins/nothing", "README.txt"])
  }

  @Test func unreadableCondemnedObjectIsDamage() throws {
    let id = try #require(Digest(hex: try storage.condemn([])))
    let path = CondemnedObject.path(id)
    #expect(try Checked(repository, .trees).findings.isEmpty)
    try storage.change(path) { $0[$0.count / 2] ^= 1 }
    let found = try Checked(repository, .trees)
    #expect(found.damaged == ["\(path)"])
    #expect("\(found.findings)".contains("the next backup or prune removes it"))
  }

  /// The groups together contain each pack once; a fraction selects only some of the packs.
  @Test func groupsAndFractionsSelectPacks() throws {
    var packs = 0
    for group in 1...3 {
      packs += try Checked(repository, .group(group, count: 3)).report.packsRead
    }
    #expect(packs == 4)
    let part = try Checked(repository, .fraction(0.01)).report
    #expect(part.packsRead == 1)
  }

  /// An object that another program replaces during a check is not damage.
  @Test func objectReplacedDuringTheCheckIsNotDamage() throws {
    let changing = WatchedStorage(storage)
    let path = RepositoryLayout.tested.snapshot(second.id)
    changing.state.withLock { state in
      state.action = { [storage] event in if event == "load \(path)" { try? storage.remove(path) } }
    }
    let found = try Checked(Repository.open(changing), .everything)
    #expect(found.findings.isEmpty, "\(found.findings)")
    #expect(found.report.snapshots == 1)
  }

  /// The check reports its progress and the number of errors so far.
  @Test func progressIsReported() throws {
    let counters = ProgressCounters()
    let check = RepositoryCheck(repository, reading: .everything, workers: 2, counters: counters)
    _ = try check.run()
    var progress = counters.progress
    #expect(progress.filesToDo == 4 && progress.filesDone == 4 && progress.problems == 0)
    let bytes = try RepositoryInventory(storage).packs.values.reduce(0, +)
    #expect(progress.bytesToDo == bytes && progress.bytesDone == bytes)
    #expect("\(progress.active)".hasPrefix("packs/"))
    try storage.change(RepositoryLayout.tested.pack(pack(of: second, "new"))) { $0[700] ^= 1 }
    let trees = ProgressCounters()
    _ = try RepositoryCheck(repository, workers: 1, counters: trees).run()
    #expect(trees.progress == ProgressCounters.State())
    let damaged = ProgressCounters()
    _ = try RepositoryCheck(repository, reading: .everything, workers: 1, counters: damaged).run()
    progress = damaged.progress
    // Both frames of an encrypted pack, and its own tables, are in the damaged piece.
    #expect(progress.problems == (TestEncryption.isOn ? 3 : 1) && progress.filesDone == 4)
  }

  /// The check ends with an error whenever an end is requested.
  @Test(arguments: [RepositoryCheck.Reading.trees, .everything])
  func checkEndsOnRequest(_ reading: RepositoryCheck.Reading) throws {
    try storage.remove(RepositoryLayout.tested.pack(pack(of: first, "both")))
    let asked = Atomic<Int>(0)
    let end = Atomic<Int>(Int.max)
    let check = RepositoryCheck(repository, reading: reading, workers: 2) {
      asked.add(1, ordering: .relaxed).newValue > end.load(ordering: .relaxed)
    }
    let whole = try check.run()
    let looks = asked.load(ordering: .relaxed)
    #expect(looks >= 5)
    #expect(try whole.forEachFinding { _ in }.costs > 0)
    for number in 0..<5 {
      asked.store(0, ordering: .relaxed)
      end.store(number, ordering: .relaxed)
      let error = storeError { try check.run() }
      #expect(error?.kind == .interrupted && error?.hint != nil, "\(number): \(error as Any)")
    }
    // The cost of the damage is determined only while findings are reported.
    end.store(.max, ordering: .relaxed)
    #expect(storeError { try whole.forEachFinding { _ in } }?.kind == nil)
    end.store(0, ordering: .relaxed)
    #expect(storeError { try whole.forEachFinding { _ in } }?.kind == .interrupted)
  }

  /// A snapshot of another repository, as after a change of repository.json.
  @Test func snapshotOfAnotherRepositoryIsReported() throws {
    var snapshot = first.snapshot
    snapshot.repository = Blake2b.hash([9])
    let bytes = snapshot.encode()
    let path = RepositoryLayout.tested.snapshot(try storage.put(bytes, kind: .snapshot))
    let found = try Checked(repository, .everything)
    #expect(found.damaged == ["\(path)"])
    #expect(found.costs.isEmpty)
  }
}

/// The findings of a check by kind.
struct Checked {
  private(set) var findings: [RepositoryCheck.Finding] = []
  let report: RepositoryCheck.Report

  init(
    _ repository: Repository, _ reading: RepositoryCheck.Reading,
    headCache: SnapshotHeadCache? = nil
  ) throws {
    var findings: [RepositoryCheck.Finding] = []
    let check = RepositoryCheck(repository, reading: reading, headCache: headCache, workers: 2)
    report = try check.run().forEachFinding { findings.append($0) }
    self.findings = findings
    #expect(report.damaged == damaged.count && report.remarks == remarks.count)
  }

  var damaged: [String] {
    findings.compactMap { if case .damage(let object, _, _) = $0 { object } else { nil } }
  }

  var remarks: [String] {
    findings.compactMap { if case .remark(let object, _) = $0 { object } else { nil } }
  }

  /// The lost paths with their snapshots.
  var costs: [ByteString: [SnapshotID]] {
    var costs: [ByteString: [SnapshotID]] = [:]
    for case .cost(let path, let snapshots, _) in findings { costs[path, default: []] += snapshots }
    return costs
  }
}

extension MemoryStorage {
  /// Replaces the bytes of an object without recording an event.
  func put(_ bytes: [UInt8], _ path: ObjectPath) throws {
    let directory = RepositoryLayout.leases.appending("test")
    try makeDirectories(["test"], in: RepositoryLayout.leases)
    try save(bytes, as: path, by: directory)
    try remove(directory)
  }

  /// Stores a condemned object for packs and returns its ID.
  func condemn(_ packs: some Sequence<Digest>, version: Int = 1) throws -> String {
    let list = packs.map { "\"\($0.hex)\"" }.joined(separator: ",")
    return try condemn(
      text: "{\"format\":\"sandboxctl-condemned\",\"version\":\(version),\"packs\":[\(list)]}")
  }

  /// Stores a text as a condemned object and returns its ID.
  func condemn(text: String) throws -> String {
    let id = Blake2b.hash(Array(text.utf8))
    try put(Array(text.utf8), CondemnedObject.path(id))
    return id.hex
  }

  /// Changes an object's bytes.
  func change(_ path: ObjectPath, _ body: (inout [UInt8]) -> Void) throws {
    var bytes = try load(path, limit: 1 << 24)
    body(&bytes)
    try put(bytes, path)
  }
}
