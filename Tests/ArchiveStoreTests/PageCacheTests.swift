import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Data that a backup writes and that is not read soon is dropped from the page cache, where it
/// would evict the user's data.
struct PageCacheTests {
  private let directory: TestSupport.TemporaryDirectory
  private let storage: LocalStorage
  private let canBeEmptied: Bool

  init() throws {
    directory = try TestSupport.TemporaryDirectory("page-cache")
    canBeEmptied = try PageCache.canBeEmptied(in: directory)
    storage = try LocalStorage.create(path: directory.path("r"))
  }

  /// Returns the number of cached pages of an object and of all its pages.
  private func pages(_ path: ObjectPath) throws -> (present: Int, all: Int) {
    try PageCache.pages(of: path.components.reduce(directory.path("r")) { $0.appending($1) })
  }

  private func save(_ name: ByteString, isReadSoon: Bool) throws -> ObjectPath {
    let path = ObjectPath.root.appending(name)
    let bytes = SeededBytes.some(seed: 1, count: 3 << 20)
    let writer = try storage.startObject(in: .root)
    try writer.append(bytes)
    try writer.commit(as: path, digest: Blake2b.hash(bytes), isReadSoon: isReadSoon)
    let middle = 1_000_000..<1_000_005
    #expect(
      try storage.load(path, offset: UInt64(middle.lowerBound), count: middle.count)
        == Array(bytes[middle]))
    return path
  }

  @Test func objectIsDroppedUnlessItIsReadSoon() throws {
    guard canBeEmptied else { return print("skipped: the temporary directory has no disk") }
    let soon = try pages(try save("soon", isReadSoon: true))
    #expect(soon.present > soon.all * 9 / 10, "\(soon)")
    // Pages that were read again are cached, with some read-ahead.
    let later = try pages(try save("later", isReadSoon: false))
    #expect(later.present < later.all / 2)
  }

  /// The data pack is dropped; the tree pack, index, snapshot and all other objects stay.
  @Test func onlyDataPacksAreDropped() throws {
    guard canBeEmptied else { return print("skipped: the temporary directory has no disk") }
    let repository = try Repository.create(in: storage, program: "test")
    let session = try WritingSession(repository, workers: 2, cache: nil)
    let writer = try session.makeWriter()
    let content = try writer.storeFile(
      logicalPath: "folders/x/f", bytes: SeededBytes.some(seed: 2, count: 2 << 20))
    try writer.flush()
    let tree = try session.storeTree([TreeEntry(name: "f", node: .file(content))])
    _ = try session.finish(repository.makeSnapshot(tree))
    let packs = try session.indexedPacks.map { try pages(RepositoryLayout.tested.pack($0)) }
      .sorted { $0.all < $1.all }
    #expect(packs.count == 2 && packs[0].all * 4 < packs[1].all)
    #expect(packs[0].present == packs[0].all && packs[1].present == 0, "\(packs)")
    for id in try storage.list(RepositoryLayout.indexes) {
      let index = try pages(RepositoryLayout.indexes.appending(id))
      #expect(index.present == index.all && index.all > 0)
    }
  }
}
