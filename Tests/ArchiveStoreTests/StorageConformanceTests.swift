import ArchiveStore
import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// Requirements on every storage, tested with each implementation.
@Suite struct StorageConformanceTests {
  enum Kind: String, CaseIterable, Sendable {
    case local
    case memory
    /// The storage of a repository, which passes on stored bytes.
    case repository
  }

  private let directory = TemporaryDirectory()

  private func make(_ kind: Kind) throws -> any Storage {
    let storage: any Storage =
      switch kind {
      case .local: try LocalStorage.create(path: ByteString(directory("store")))
      case .memory: MemoryStorage()
      case .repository: RepositoryStorage(MemoryStorage())
      }
    try storage.makeDirectories(["objects", "lease"], in: .root)
    return storage
  }

  private func path(_ text: String) throws -> ObjectPath { try #require(ObjectPath(text)) }

  @Test(arguments: Kind.allCases) func savesAndLoads(kind: Kind) throws {
    let storage = try make(kind)
    try storage.save([1, 2, 3, 4], as: path("objects/a"), by: path("lease"))
    #expect(try storage.load(path("objects/a"), limit: 4) == [1, 2, 3, 4])
    #expect(try storage.load(path("objects/a"), offset: 1, count: 2) == [2, 3])
    #expect(try storage.list(path("lease")).isEmpty)
    #expect(storage.canRename)
  }

  @Test(arguments: Kind.allCases) func limitsAreEnforced(kind: Kind) throws {
    let storage = try make(kind)
    try storage.save([1, 2, 3, 4], as: path("objects/a"), by: path("lease"))
    #expect(storeError { try storage.load(path("objects/a"), limit: 3) }?.code == .damaged)
    #expect(
      storeError { try storage.load(path("objects/a"), offset: 3, count: 2) }?.code == .damaged)
    #expect(
      storeError { try storage.load(path("objects/a"), offset: 9, count: 1) }?.code == .damaged)
  }

  @Test(arguments: Kind.allCases) func missingObjectsAreReported(kind: Kind) throws {
    let storage = try make(kind)
    #expect(storeError { try storage.load(path("objects/a"), limit: 3) }?.code == .missing)
    #expect(storeError { try storage.load(path("no/a"), limit: 3) }?.code == .missing)
    #expect(storeError { try storage.list(path("no")) }?.code == .missing)
    #expect(storeError { try storage.remove(path("objects/a")) }?.code == .missing)
    #expect(storeError { try storage.touch(path("no/alive")) }?.code == .missing)
    #expect(
      storeError { try storage.rename(path("objects/a"), to: path("objects/b")) }?.code
        == .missing)
    #expect(try storage.status(path("objects/a")) == nil)
    #expect(try storage.status(path("no/a")) == nil)
  }

  @Test(arguments: Kind.allCases) func objectsAreListedInByteOrder(kind: Kind) throws {
    let storage = try make(kind)
    for name in ["b", "a", "B", "\u{e9}"] {
      try storage.save([], as: path("objects/" + name), by: path("lease"))
    }
    #expect(try storage.list(path("objects")) == ["B", "a", "b", "\u{e9}"])
    #expect(try storage.list(.root) == ["lease", "objects"])
  }

  @Test(arguments: Kind.allCases) func listsObjectsOfAllDirectoriesWithSizes(kind: Kind) throws {
    let storage = try make(kind)
    try storage.makeDirectories(["aa", "bb", "empty"], in: path("objects"))
    for (name, size) in [("top", 0), ("aa/one", 1), ("aa/two", 2), ("bb/one", 3)] {
      try storage.save(
        [UInt8](repeating: 1, count: size), as: path("objects/" + name), by: path("lease"))
    }
    try storage.save([1], as: path("lease/not-below"), by: path("lease"))
    var sizes: [String: UInt64] = [:]
    try storage.forEachObject(below: path("objects")) { path, status throws(StoreError) in
      sizes["\(path)"] = status.size
      #expect(!status.isDirectory)
      let same = try storage.status(path)
      #expect(same == status)
    }
    #expect(
      sizes == ["objects/top": 0, "objects/aa/one": 1, "objects/aa/two": 2, "objects/bb/one": 3])
    var count = 0
    try storage.forEachObject(below: path("objects/empty")) { _, _ in count += 1 }
    #expect(count == 0)
    let error = storeError { try storage.forEachObject(below: path("no")) { _, _ in } }
    #expect(error?.code == .missing)
  }

  @Test(arguments: Kind.allCases) func errorEndsTheListingOfObjects(kind: Kind) throws {
    let storage = try make(kind)
    for name in ["a", "b"] {
      try storage.save([], as: path("objects/" + name), by: path("lease"))
    }
    var count = 0
    let error = storeError {
      try storage.forEachObject(below: .root) { path, _ throws(StoreError) in
        count += 1
        throw StoreError(.damaged, "use", subject: "\(path)", reason: "the test says so")
      }
    }
    #expect(error?.code == .damaged)
    #expect(count == 1)
  }

  @Test(arguments: Kind.allCases) func statusGivesSizeAndTime(kind: Kind) throws {
    let storage = try make(kind)
    try storage.save([1, 2], as: path("objects/a"), by: path("lease"))
    let status = try #require(try storage.status(path("objects/a")))
    #expect(status.size == 2)
    #expect(!status.isDirectory)
    #expect(try storage.status(path("objects"))?.isDirectory == true)
  }

  @Test(arguments: Kind.allCases) func directoriesAreCreatedOnce(kind: Kind) throws {
    let storage = try make(kind)
    #expect(storeError { try storage.makeDirectories(["lease"], in: .root) }?.code == .notEmpty)
    #expect(storeError { try storage.makeDirectories(["x"], in: path("no")) }?.code == .missing)
  }

  @Test(arguments: Kind.allCases) func touchUpdatesTheTime(kind: Kind) throws {
    let storage = try make(kind)
    try storage.touch(path("lease/alive"))
    let first = try #require(try storage.status(path("lease/alive")))
    usleep(20_000)
    try storage.touch(path("lease/alive"))
    let second = try #require(try storage.status(path("lease/alive")))
    #expect(second.modified > first.modified)
    #expect(second.size == 0)
  }

  @Test(arguments: Kind.allCases) func renamesObjectsAndDirectories(kind: Kind) throws {
    let storage = try make(kind)
    try storage.save([1], as: path("lease/a"), by: path("lease"))
    try storage.rename(path("lease/a"), to: path("objects/b"))
    #expect(try storage.load(path("objects/b"), limit: 1) == [1])
    try storage.rename(path("objects"), to: path("lease/taken"))
    #expect(try storage.load(path("lease/taken/b"), limit: 1) == [1])
    #expect(try storage.status(path("objects")) == nil)
  }

  @Test(arguments: Kind.allCases) func removesObjectsAndEmptyDirectories(kind: Kind) throws {
    let storage = try make(kind)
    try storage.save([1], as: path("objects/a"), by: path("lease"))
    #expect(storeError { try storage.remove(path("objects")) } != nil)
    try storage.remove(path("objects/a"))
    try storage.remove(path("objects"))
    #expect(try storage.list(.root) == ["lease"])
  }

  @Test(arguments: Kind.allCases) func nothingIsVisibleBeforeCommit(kind: Kind) throws {
    let storage = try make(kind)
    let writer = try storage.startObject(in: path("lease"))
    try writer.append([1, 2])
    #expect(try storage.list(path("objects")).isEmpty)
    try writer.append([3])
    try writer.commit(as: path("objects/a"), digest: Blake2b.hash([1, 2, 3]), isReadSoon: true)
    #expect(try storage.load(path("objects/a"), limit: 3) == [1, 2, 3])
    let other = try storage.startObject(in: path("lease"))
    try other.append([1])
    other.discard()
    #expect(try storage.list(path("lease")).isEmpty)
  }

  @Test(arguments: Kind.allCases) func commitFailsWithoutTheLease(kind: Kind) throws {
    let storage = try make(kind)
    let writer = try storage.startObject(in: path("lease"))
    try writer.append([1])
    try storage.rename(path("lease"), to: path("objects/taken"))
    let error = storeError {
      try writer.commit(as: path("objects/a"), digest: Blake2b.hash([1]), isReadSoon: true)
    }
    #expect(error?.code == .missing)
    #expect(try storage.status(path("objects/a")) == nil)
  }

  @Test func unsafePathsAreRefused() {
    for text in ["", "/a", "a//b", "a/", ".", "..", "a/../b", "a/./b", "a\0"] {
      #expect(ObjectPath(text) == nil, "\(text)")
    }
    #expect(ObjectPath.root.appending("../../etc").components == ["______etc"])
    #expect(ObjectPath.root.appending("..").components == ["__"])
    #expect(ObjectPath.root.appending("").components == ["_"])
    #expect(ObjectPath("packs/ab")?.directory == ObjectPath("packs"))
  }
}

/// Properties of storage in files.
@Suite struct LocalStorageTests {
  private let directory = TemporaryDirectory()

  private func make() throws -> LocalStorage {
    let storage = try LocalStorage.create(path: ByteString(directory("a/b/store")))
    try storage.makeDirectories(["objects", "lease"], in: .root)
    return storage
  }

  private func path(_ text: String) throws -> ObjectPath { try #require(ObjectPath(text)) }

  private func mode(_ name: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: directory("a/b/store" + name))
    return try #require(attributes[.posixPermissions] as? Int)
  }

  @Test func filesAreReadableByTheirOwnerOnly() throws {
    let storage = try make()
    try storage.save([1], as: path("objects/a"), by: path("lease"))
    #expect(try mode("") == 0o700)
    #expect(try mode("/objects") == 0o700)
    #expect(try mode("/objects/a") == 0o600)
  }

  @Test func linksAreNotFollowed() throws {
    let storage = try make()
    try FileManager.default.createSymbolicLink(
      atPath: directory("a/b/store/objects/link"), withDestinationPath: "/etc/passwd")
    try FileManager.default.createSymbolicLink(
      atPath: directory("a/b/store/elsewhere"), withDestinationPath: "/etc")
    #expect(storeError { try storage.load(path("objects/link"), limit: 1 << 20) }?.code == .damaged)
    #expect(storeError { try storage.list(path("elsewhere")) } != nil)
    #expect(try storage.status(path("objects/link")) == nil)
    try storage.forEachObject(below: .root) { path, _ in Issue.record("\(path) was listed") }
    #expect(storeError { try storage.forEachObject(below: path("elsewhere")) { _, _ in } } != nil)
  }

  @Test func missingDirectoryIsAnError() {
    let error = storeError { try LocalStorage(path: ByteString(directory("none"))) }
    #expect(error?.kind == .noRepository)
    #expect(error?.hint != nil)
  }

  /// The name of a new repository, and those of the directories created above it, are on the disk
  /// before anything is written to it.
  @Test(arguments: 1...3) func newNamesAreSyncedInTheirParents(call: Int) throws {
    let top = ByteString(directory("created"))
    _ = try Directory.make(path: top)
    let parents = [top, top.appending("above"), top.appending("above/deeper")]
    let plan = Faults.Plan(failing: [.sync], at: call, number: 5)
    let error = storeError {
      try Faults.inject(plan) {
        _ = try LocalStorage.create(path: top.appending("above/deeper/repo"))
      }
    }
    #expect(error?.code == .system && error?.cause?.operation == .sync)
    #expect(error?.cause?.path == parents[call - 1])
  }

  /// A disk that fails to sync a file once: the object is written again and is intact.
  @Test func failedSyncIsRetriedWithANewFile() throws {
    let storage = try make()
    let plan = Faults.Plan(failing: [.sync], at: 1, number: 5)
    let bytes = [UInt8](repeating: 7, count: 3 << 20)
    try Faults.inject(plan) {
      try storage.save(bytes, as: path("objects/a"), by: path("lease"))
    }
    #expect(plan.hasFired)
    #expect(try storage.load(path("objects/a"), limit: 4 << 20) == bytes)
    #expect(try storage.list(path("lease")).isEmpty)
  }

  /// The sync of the directory fails after the rename: the object is written again.
  @Test func failedSyncOfTheDirectoryIsRetried() throws {
    let storage = try make()
    let plan = Faults.Plan(failing: [.sync], at: 2, number: 5)
    try Faults.inject(plan) {
      try storage.save([1, 2], as: path("objects/a"), by: path("lease"))
    }
    #expect(plan.hasFired)
    #expect(try storage.load(path("objects/a"), limit: 2) == [1, 2])
    #expect(try storage.list(path("lease")).isEmpty)
  }

  @Test func secondFailedSyncIsAnError() throws {
    let storage = try make()
    let plan = Faults.Plan(failing: [.sync], at: 1, number: 5, failsRepeatedly: true)
    let error = storeError {
      try Faults.inject(plan) {
        try storage.save([1, 2], as: path("objects/a"), by: path("lease"))
      }
    }
    #expect(error?.code == .system)
    #expect(error?.cause?.operation == .sync)
    #expect(plan.count == 2)
    #expect(try storage.status(path("objects/a")) == nil)
    #expect(try storage.list(path("lease")).isEmpty)
  }

  /// The data of a file that failed to sync is not trusted: it is checked against the hash.
  @Test func retryVerifiesTheBytes() throws {
    let storage = try make()
    let plan = Faults.Plan(failing: [.sync], at: 1, number: 5)
    let error = storeError {
      try Faults.inject(plan) {
        let writer = try storage.startObject(in: path("lease"))
        try writer.append([1, 2])
        try writer.commit(as: path("objects/a"), digest: Blake2b.hash([9, 9]), isReadSoon: true)
      }
    }
    #expect(error?.code == .system)
    #expect(try storage.status(path("objects/a")) == nil)
  }
}
