import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Objects of another host that are once changed or truncated in transit. They are read a second
/// time, and are not reported as damaged.
@Suite(.serialized) struct SecondReadTests {
  /// The ways in which a read returns wrong data.
  enum Fault: CaseIterable, Sendable {
    case changed
    case cut
  }

  private let memory = MemoryStorage()
  private let storage: UnreliableStorage
  private let repository: Repository
  private let files: [(name: String, bytes: [UInt8])]

  init() throws {
    var random = SeededBytes(seed: 44)
    storage = UnreliableStorage(memory)
    repository = try Repository.create(in: storage, program: "test")
    files = (1...4).map { (name: "file\($0)", bytes: random.bytes(3000)) }
    for count in 1...files.count {
      _ = try repository.back(up: Array(files.prefix(count)), sequence: UInt64(count))
    }
  }

  /// Calls `body` with the n-th read being wrong, for each n, until there are no more reads.
  private func sweep(_ fault: Fault, _ body: (Int) throws -> Void) throws {
    var number = 0
    repeat {
      number += 1
      storage.fail(number, fault)
      try body(number)
      try #require(number < 300)
    } while storage.hasFailed
    // Index objects, snapshots and packs were read.
    #expect(number > 4)
  }

  @Test(arguments: Fault.allCases) func aCheckFindsNoDamage(_ fault: Fault) throws {
    let packs = try RepositoryListing.packs(repository.storage).count
    try sweep(fault) { number in
      let result = try RepositoryCheck(repository, reading: .everything, workers: 1).run()
      var findings: [RepositoryCheck.Finding] = []
      let report = try result.forEachFinding { findings.append($0) }
      #expect(findings.isEmpty, "read \(number): \(findings)")
      #expect(report.packsRead == packs, "read \(number)")
      try result.recordDamage()
      #expect(try DamageRecords(storage).packs.isEmpty)
    }
  }

  @Test(arguments: Fault.allCases) func readersGetAllContents(_ fault: Fault) throws {
    try sweep(fault) { number in
      let heads = try repository.heads()
      #expect(heads.heads.count == files.count && heads.damaged.isEmpty, "read \(number)")
      let newest = try repository.snapshot(matching: "latest")
      let ids = try RepositoryListing.snapshots(repository.storage)
      #expect(repository.unverified(among: ids, threads: 1).isEmpty, "read \(number)")
      let reader = try repository.beginReading()
      for file in files {
        let entry = try reader.entry(at: ByteString(file.name), in: newest.snapshot.tree)
        guard case .file(let content) = entry?.node else {
          Issue.record("read \(number): \(file.name) is no file")
          continue
        }
        #expect(try reader.bytes(of: content) == file.bytes, "read \(number)")
      }
      #expect(reader.damagedPacks.isEmpty && reader.remarks.isEmpty, "read \(number)")
    }
  }

  @Test(arguments: Fault.allCases) func aMirrorIsComplete(_ fault: Fault) throws {
    try sweep(fault) { number in
      let target = MemoryStorage(name: "mirror")
      let report = try RepositoryMirror(of: repository, in: target).run()
      #expect(report.damaged.isEmpty && report.incomplete.isEmpty, "read \(number)")
      let copied = try target.objects().filter { $0.key.hasPrefix("packs/") }
      #expect(try copied == memory.objects().filter { $0.key.hasPrefix("packs/") })
    }
  }

  /// A copy reads frames instead of whole packs.
  @Test(arguments: Fault.allCases) func aCopyIsComplete(_ fault: Fault) throws {
    try sweep(fault) { number in
      let target = try Repository.create(in: MemoryStorage(name: "copy"), program: "test")
      let report = try CopyFixture.copy(repository, target)
      #expect(report.snapshots == files.count, "read \(number)")
      #expect(report.damaged.isEmpty && report.incomplete.isEmpty, "read \(number)")
    }
  }

  /// Index objects of more than a few MiB are read in pieces.
  @Test(arguments: Fault.allCases) func objectsInPiecesAreComplete(_ fault: Fault) throws {
    let ids = try RepositoryListing.indexes(repository.storage)
    try sweep(fault) { number in
      for id in ids {
        let object = try IndexObject.load(id, from: repository.storage, by: 100)
        #expect(object.packs > 0, "read \(number)")
      }
    }
  }

  /// A repair reads the packs that a check has recorded, and keeps one that is intact.
  @Test(arguments: Fault.allCases) func aRepairFindsAnIntactPack(_ fault: Fault) throws {
    let pack = try #require(try RepositoryListing.packs(repository.storage).min())
    let path = repository.storage.layout.pack(pack)
    try memory.change(path) { $0[$0.count / 3] ^= 0xff }
    storage.fail(0, fault)
    try RepositoryCheck(repository, reading: .everything, workers: 1).run().recordDamage()
    try memory.change(path) { $0[$0.count / 3] ^= 0xff }
    try sweep(fault) { number in
      let report = try PackRepair(repository, isDry: true).run()
      #expect(report.packs.map(\.id) == [pack], "read \(number)")
      #expect(report.packs.map(\.state) == [.whole] && report.lostBlobs == 0, "read \(number)")
    }
  }

  /// If a writer mistook a wrong read for damage, it would ignore these lists and rely on the packs
  /// in them.
  @Test(arguments: Fault.allCases) func listsOfPacksAreRead(_ fault: Fault) throws {
    let packs = try RepositoryListing.packs(repository.storage)
    _ = try memory.condemn(packs)
    let record = DamageRecords.Record(packs.map { .init(id: $0, size: 1, expected: nil) }).encode()
    try memory.makeDirectories([RepositoryLayout.damaged.name], in: .root)
    try memory.put(record, RepositoryLayout.record(Blake2b.hash(record)))
    for number in 1...2 {
      storage.fail(number, fault)
      let condemned = try CondemnedObjects(repository.storage)
      #expect(condemned.packs == packs && condemned.damaged.isEmpty, "read \(number)")
      let damaged = try DamageRecords(repository.storage)
      #expect(Set(damaged.packs.keys) == packs && damaged.faults.isEmpty, "read \(number)")
      #expect(storage.hasFailed, "read \(number)")
    }
  }

  /// A mirror, or a copy with a check, compares these objects with their ids.
  @Test(arguments: Fault.allCases) func objectsAreIntact(_ fault: Fault) throws {
    for id in try RepositoryListing.indexes(repository.storage) {
      storage.fail(1, fault)
      let path = repository.storage.layout.index(id)
      #expect(try ObjectCopier.isIntact(id, at: path, in: repository.storage))
      #expect(storage.hasFailed)
    }
  }

  /// A pack that is wrong in each read is damaged, as on this host.
  @Test func damageIsStillFound() throws {
    let pack = try #require(try RepositoryListing.packs(storage).min())
    try memory.change(repository.storage.layout.pack(pack)) { $0[$0.count / 3] ^= 0xff }
    storage.fail(0, .changed)
    let found = try Checked(repository, .everything)
    #expect(found.damaged == ["\(repository.storage.layout.pack(pack))"])
  }
}

/// A storage on another host that once returns wrong data for an object named by its hash.
private final class UnreliableStorage: ForwardingStorage {
  private struct State {
    /// The number of correct reads before the wrong one, or nil if none is wrong.
    var left: Int?
    var fault = SecondReadTests.Fault.changed
    var hasFailed = false
  }

  let base: any Storage
  private let state = Mutex(State())

  init(_ base: any Storage) { self.base = base }

  /// nil, as for a storage on another host.
  func directoryIdentity() throws(StoreError) -> FileIdentity? { nil }

  /// Makes the read with this number (from 1) wrong; 0 for none.
  func fail(_ number: Int, _ fault: SecondReadTests.Fault) {
    state.withLock { $0 = State(left: number == 0 ? nil : number - 1, fault: fault) }
  }

  /// Whether a read was wrong.
  var hasFailed: Bool { state.withLock(\.hasFailed) }

  /// Returns the fault of the next read, or nil if it is correct.
  private func fault(of path: ObjectPath) -> SecondReadTests.Fault? {
    let directories: [ByteString?] = ["packs", "index", "snapshots", "condemned", "damaged"]
    guard directories.contains(path.components.first) else { return nil }
    return state.withLock { state in
      guard let left = state.left else { return nil }
      state.left = left == 0 ? nil : left - 1
      guard left == 0 else { return nil }
      state.hasFailed = true
      return state.fault
    }
  }

  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    var bytes = try base.load(path, limit: limit)
    switch fault(of: path) {
    case .changed: bytes[bytes.count / 2] ^= 0x10
    case .cut: bytes.removeLast(bytes.count / 2)
    case nil: break
    }
    return bytes
  }

  func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    try base.load(path, offset: offset, count: count, into: &buffer)
    guard count > 0 else { return }
    switch fault(of: path) {
    case .changed: buffer[count / 2] ^= 0x10
    case .cut: throw .damaged("\(path)", "it ends before byte \(offset + UInt64(count))")
    case nil: break
    }
  }
}
