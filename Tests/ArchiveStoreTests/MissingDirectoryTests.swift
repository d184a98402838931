import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Some copy programs omit empty directories. A repository without them is valid, but not one that
/// has lost a directory with contents.
struct MissingDirectoryTests {
  private let storage = MemoryStorage()
  private let repository: Repository
  private let files = [("a", [UInt8](repeating: 1, count: 100)), ("b", [2, 3])]

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// Removes all empty directories, as a copy by rclone does, and returns the number of pack
  /// directories among them.
  private func removeEmptyDirectories() throws -> Int {
    var packs = 0
    for name in RepositoryLayout.packDirectories {
      let directory = RepositoryLayout.packs.appending(name)
      guard try storage.list(directory).isEmpty else { continue }
      try storage.remove(directory)
      packs += 1
    }
    for name in RepositoryLayout.directories {
      let directory = ObjectPath.root.appending(name)
      if try storage.list(directory).isEmpty { try storage.remove(directory) }
    }
    return packs
  }

  private func removeWithContents(_ directory: ObjectPath) throws {
    for name in try storage.list(directory) {
      let path = directory.appending(name)
      if try storage.status(path)?.isDirectory == true {
        try removeWithContents(path)
      } else {
        try storage.remove(path)
      }
    }
    try storage.remove(directory)
  }

  private func expectAllDirectories() throws {
    #expect(try Set(storage.list(.root)).isSuperset(of: RepositoryLayout.directories))
    #expect(try storage.list(RepositoryLayout.packs) == RepositoryLayout.packDirectories)
  }

  private func expectReadable(_ stored: StoredSnapshot) throws {
    let reader = try repository.beginReading()
    for (name, bytes) in files {
      #expect(try reader.bytes(at: ByteString(name), in: stored) == bytes)
    }
    #expect(reader.remarks.isEmpty)
  }

  @Test func emptyDirectoriesAreReportedAndRecreated() throws {
    let first = try repository.back(up: files)
    let packs = try removeEmptyDirectories()
    #expect(packs == 254 || packs == 255)
    let found = try Checked(repository, .everything)
    #expect(found.damaged.isEmpty && found.costs.isEmpty, "\(found.findings)")
    #expect(Set(found.remarks) == ["condemned", "leases", "pins", "packs"])
    #expect("\(found.findings)".contains("\(packs) of the 256 directories"))
    try expectReadable(first)
    #expect(try repository.snapshots().snapshots == [first])
    #expect(try repository.statistics(of: repository.heads()).packs == 2)
    let second = try repository.back(up: files + [("c", [9])], sequence: 2)
    try expectAllDirectories()
    try expectReadable(second)
    #expect(try Checked(repository, .everything).findings.isEmpty)
  }

  /// An empty repository contains only empty directories.
  @Test func newRepositoryWorksWithoutItsDirectories() throws {
    #expect(try removeEmptyDirectories() == 256)
    // `packs` had become empty as well.
    #expect(try storage.status(RepositoryLayout.packs) == nil)
    #expect(try Checked(repository, .everything).damaged.isEmpty)
    #expect(try repository.snapshots().snapshots.isEmpty)
    try expectReadable(try repository.back(up: files))
    try expectAllDirectories()
  }

  /// Another program may create a directory at the same moment.
  @Test func directoriesMayBeCreatedConcurrently() throws {
    _ = try removeEmptyDirectories()
    let other = WatchedStorage(storage)
    other.state.withLock { state in
      state.action = { [storage] event in
        guard event == "directories ." else { return }
        try? storage.makeMissing(RepositoryLayout.directories, in: .root)
      }
    }
    let lease = try Lease(other)
    #expect(try storage.list(RepositoryLayout.leases).count == 1)
    lease.release()
  }

  // MARK: - Directories that were not empty

  @Test func missingPacksAreDamageAndStopAWriter() throws {
    let first = try repository.back(up: files)
    try removeWithContents(RepositoryLayout.packs)
    let found = try Checked(repository, .trees)
    #expect(found.damaged.count >= 3 && found.costs.count == 1, "\(found.findings)")
    #expect(found.costs.values.first == [first.id])
    let error = storeError { try repository.beginWriting() }
    #expect(error?.kind == .damaged && error?.hint?.contains("an empty directory") == true)
    #expect("\(error as Any)".contains("snapshots need its content"))
    #expect(try storage.status(RepositoryLayout.packs) == nil)
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  @Test func missingPackDirectoryStopsAWriter() throws {
    try repository.back(up: files)
    let pack = try #require(try RepositoryListing.packs(storage).first)
    let directory = RepositoryLayout.tested.pack(pack).directory
    try removeWithContents(directory)
    #expect(try Checked(repository, .trees).damaged.contains("\(directory)"))
    let error = storeError { try repository.beginWriting() }
    #expect(error?.code == .missing && error?.subject == "\(directory)")
    // Follow the hint.
    try storage.makeDirectories([directory.name], in: RepositoryLayout.packs)
    try expectReadable(try repository.back(up: files, sequence: 2))
  }

  @Test func missingIndexIsRebuilt() throws {
    let first = try repository.back(up: files)
    try removeWithContents(RepositoryLayout.indexes)
    let found = try Checked(repository, .everything)
    #expect(found.damaged.contains("index") && found.report.isIndexDamaged)
    #expect(try repository.statistics(of: repository.heads()).packs == 2)
    let error = storeError { try repository.beginWriting() }
    #expect(error?.code == .missing && error?.hint?.contains("repair index") == true)
    #expect(try IndexRepair(repository, isDry: true).run().packs == 2)
    #expect(try IndexRepair(repository).run().written.count == 1)
    #expect(try Checked(repository, .everything).findings.isEmpty)
    try expectReadable(first)
    #expect(try repository.back(up: files, sequence: 2).snapshot.totals.stored == 0)
  }

  @Test func missingSnapshotsAreDamageAndStopAWriter() throws {
    try repository.back(up: files)
    try removeWithContents(RepositoryLayout.snapshots)
    #expect(try Checked(repository, .trees).damaged == ["snapshots"])
    #expect(try repository.snapshots().snapshots.isEmpty)
    let error = storeError { try repository.beginWriting() }
    #expect(error?.code == .missing && error?.subject == "snapshots" && error?.hint != nil)
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
    // An index repair does not create the directory: if it existed, its emptiness would mean that
    // there were no snapshots.
    #expect(try IndexRepair(repository).run().written.isEmpty)
    #expect(try Checked(repository, .trees).damaged == ["snapshots"])
  }

  /// An empty directory may result from an incomplete copy. A host that has made snapshots knows
  /// better.
  @Test func emptySnapshotsAreDamageIfThisHostKnowsSome() throws {
    let directory = TemporaryDirectory()
    let cache = SnapshotHeadCache(directory: ByteString(directory("cache")))
    let id = try repository.back(up: files).id
    #expect(try repository.heads(cache: cache).heads.map(\.id) == [id])
    #expect(try Checked(repository, .trees, headCache: cache).findings.isEmpty)
    try storage.remove(RepositoryLayout.tested.snapshot(id))
    #expect(try Checked(repository, .trees).damaged.isEmpty)
    // A listing updates the host's cache, but must not forget the lost snapshot.
    for _ in 0..<2 {
      let found = try Checked(repository, .trees, headCache: cache)
      #expect(found.damaged == ["snapshots"], "\(found.findings)")
      #expect("\(found.findings)".contains("does not exist: \(id.hex.prefix(8)) of "))
      #expect(try repository.heads(cache: cache).heads.isEmpty)
    }
    try storage.remove(RepositoryLayout.snapshots)
    let missing = try Checked(repository, .trees, headCache: cache)
    #expect(missing.damaged == ["snapshots"], "\(missing.findings)")
    #expect("\(missing.findings)".contains("the directory is missing: the snapshot that this host"))
    // As if this host had removed the snapshot.
    try storage.makeDirectories([RepositoryLayout.snapshots.name], in: .root)
    cache.clear()
    #expect(try Checked(repository, .trees, headCache: cache).damaged.isEmpty)
  }

  /// A repository without data was never used, or everything was removed from it.
  @Test func emptyRepositoryHasLostNoSnapshot() throws {
    let directory = TemporaryDirectory()
    let cache = SnapshotHeadCache(directory: ByteString(directory("cache")))
    let id = try repository.back(up: files).id
    #expect(try repository.heads(cache: cache).heads.count == 1)
    try storage.remove(RepositoryLayout.tested.snapshot(id))
    for path in try RepositoryListing.packs(storage).map(RepositoryLayout.tested.pack) {
      try storage.remove(path)
    }
    for index in try RepositoryListing.indexes(storage) {
      try storage.remove(RepositoryLayout.tested.index(index))
    }
    #expect(try Checked(repository, .trees, headCache: cache).damaged.isEmpty)
  }

  /// Only the packs show that the index and the snapshots were not empty.
  @Test func missingIndexAndSnapshotsAreDamage() throws {
    try repository.back(up: files)
    try removeWithContents(RepositoryLayout.indexes)
    try removeWithContents(RepositoryLayout.snapshots)
    #expect(try Checked(repository, .trees).damaged.sorted() == ["index", "snapshots"])
    let error = storeError { try repository.beginWriting() }
    #expect(error?.subject == "index" && error?.hint?.contains("repair index") == true)
    #expect(try IndexRepair(repository).run().written.count == 1)
    #expect(storeError { try repository.beginWriting() }?.subject == "snapshots")
    // Follow the hint: then everything is already stored.
    try storage.makeDirectories([RepositoryLayout.snapshots.name], in: .root)
    #expect(try repository.back(up: files).snapshot.totals.stored == 0)
  }

  /// Without an index, only the snapshots show that there were packs.
  @Test func missingPacksAndIndexAreDamage() throws {
    try repository.back(up: files)
    for id in try RepositoryListing.indexes(storage) {
      try storage.remove(RepositoryLayout.tested.index(id))
    }
    try removeWithContents(RepositoryLayout.packs)
    #expect(try Checked(repository, .trees).damaged.contains("packs"))
    #expect(storeError { try repository.beginWriting() }?.subject == "packs")
  }

  /// A link, a file or a pipe in place of a directory is not replaced.
  @Test func otherFileTypeInsteadOfADirectoryIsDamage() throws {
    let directory = TemporaryDirectory()
    let location = directory("repo")
    let storage = try LocalStorage.create(path: ByteString(location))
    let repository = try Repository.create(in: storage, program: "test")
    for name in ["pins", "index", "leases"] {
      try storage.remove(.root.appending(ByteString(name)))
      try storage.touch(.root.appending(ByteString(name)))
      #expect(try Checked(repository, .trees).damaged.contains(name))
      if name != "pins" {
        #expect(storeError { try repository.beginWriting() }?.kind == .damaged, "\(name)")
      }
    }
  }
}
