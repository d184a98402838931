import ArchiveStore
import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// Requirements on every storage, tested with each implementation of this module.
struct StorageConformanceTests {
  enum Kind: String, CaseIterable, Sendable {
    case local
    case memory
    /// Object stores with and without conditional requests.
    case objects
    case simpleObjects
    /// The storage of a repository, which passes stored bytes on unchanged.
    case repository
    case repositoryOfObjects
    case watched
  }

  private let directory = TemporaryDirectory()

  private func make(_ kind: Kind) throws -> any Storage {
    switch kind {
    case .local: try LocalStorage.create(path: ByteString(directory("store")))
    case .memory: MemoryStorage()
    case .objects: MemoryObjectStorage()
    case .simpleObjects: MemoryObjectStorage(canCreateExclusively: false)
    case .repository: RepositoryStorage(MemoryStorage())
    case .repositoryOfObjects: RepositoryStorage(MemoryObjectStorage())
    case .watched: WatchedStorage(MemoryObjectStorage())
    }
  }

  @Test(arguments: Kind.allCases, StorageConformance.all)
  func meets(kind: Kind, requirement: StorageConformance) throws {
    try requirement.check(try make(kind))
  }

  @Test func capabilitiesArePassedOn() throws {
    for kind in Kind.allCases {
      let storage = try make(kind)
      let isOfObjects = ![Kind.local, .memory, .repository].contains(kind)
      #expect(storage.canRename == !isOfObjects, "\(kind)")
      #expect(storage.canCreateExclusively == (isOfObjects && kind != .simpleObjects), "\(kind)")
    }
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

/// Properties of the storage in local files.
struct LocalStorageTests {
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

  /// An impossible offset, as a wrong index may contain, counts as one beyond the end of the
  /// object.
  @Test(arguments: [UInt64(Int64.max), 1 << 63, .max - 3, .max])
  func offsetsThatNoFileHasAreDamage(offset: UInt64) throws {
    let storage = try make()
    try storage.save([1], as: path("objects/a"), by: path("lease"))
    let error = storeError {
      var bytes: [UInt8] = []
      try storage.load(path("objects/a"), offset: offset, count: 4, into: &bytes)
    }
    #expect(error?.code == .damaged && error?.reason.contains("it ends before byte") == true)
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

  /// The name of a new repository, and those of the directories created above it, are synced to the
  /// disk before anything is written into it.
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

  /// If a file fails to sync once, the object is written to a new file, and is intact.
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

  /// If the sync of the directory fails after the rename, the object is written again.
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

  /// The data of a file that failed to sync is not trusted, but compared with the hash.
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
