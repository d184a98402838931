import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Encrypted repositories: the data that the storage sees, and the operations that each key
/// permits.
struct EncryptionTests {
  private let storage = MemoryStorage()
  private let identity = AgeIdentity()
  private let repository: Repository

  init() throws {
    let keys = RepositoryKeys(identities: [identity], recipients: [identity.recipient])
    repository = try Repository.create(in: storage, program: "test", keys: keys)
  }

  private static let magic = Array("age-encryption.org/v1\n".utf8)

  /// Opens the repository as a host that can write but not read.
  private func writer() throws -> Repository {
    try Repository.open(storage, key: .recipients([identity.recipient]))
  }

  /// Returns the paths of all packs, index objects and snapshots.
  private func objects() throws -> [ObjectPath] {
    var found: [ObjectPath] = []
    for directory in [RepositoryLayout.packs, RepositoryLayout.indexes, RepositoryLayout.snapshots]
    {
      try storage.forEachObject(below: directory) { path, _ in found.append(path) }
    }
    return found
  }

  private func bytes(_ name: ByteString, of stored: StoredSnapshot) throws -> [UInt8]? {
    let opened = try Repository.open(storage, key: .identities([identity]))
    return try opened.beginReading().bytes(at: name, in: stored)
  }

  // MARK: - Data that the storage sees

  @Test func everyObjectIsAnAgeFileNamedByItsStoredBytes() throws {
    let secret = Array("a secret that no store may see".utf8)
    try repository.back(up: [("secret-name", secret + SeededBytes.some(seed: 1, count: 100_000))])
    let paths = try objects()
    #expect(paths.count == 4)
    for path in paths {
      #expect(path.name.hasSuffix(".age"))
      let stored = try storage.load(path, limit: 1 << 30)
      #expect(stored.starts(with: Self.magic))
      #expect(path.name.description.hasPrefix(Blake2b.hash(stored).hex))
      #expect(!stored.contains(secret) && !stored.contains(Array("secret-name".utf8)))
      let content = try AgeFile(opening: stored.span, with: [identity]).decrypt(stored.span)
      #expect(!content.starts(with: Self.magic))
    }
    let settings = try storage.load(RepositoryLayout.settings, limit: 1 << 20)
    #expect(settings.contains(Array(identity.recipient.description.utf8)))
  }

  @Test func indexNamesTheStoredSizeOfPacks() throws {
    try repository.back(up: PruneFixture.files(0..<5, size: 70_000))
    let sizes = try RepositoryListing.packSizes(repository.storage)
    #expect(try LoadedIndex.loadAll(from: repository.storage).packSizes == sizes)
  }

  // MARK: - Keys

  @Test func withoutAKeyNothingIsReadOrWritten() throws {
    let stored = try repository.back(up: [("file", [1, 2, 3])])
    let locked = try Repository.open(storage, key: .none)
    #expect(locked.isEncrypted && locked.keys == nil && !locked.isReadable)
    let failures = [
      storeError { try locked.heads() }, storeError { try locked.snapshot(stored.id) },
      storeError { try locked.beginReading() },
      storeError { try locked.back(up: [("file", [4])], sequence: 2) },
      storeError { try RepositoryPrune(locked, PruneRequest(), workers: 1).run() },
      storeError { try Checked(locked, .everything) },
    ]
    for failure in failures {
      #expect(failure?.code == .keyRequired)
      #expect(failure?.kind == .wrongKey)
      #expect(failure?.hint?.contains("--identity FILE") == true)
    }
    #expect(try repository.heads().heads.map(\.id) == [stored.id])
  }

  @Test func identityOfAnotherRepositoryIsRefused() throws {
    try repository.back(up: [("file", [1, 2, 3])])
    let error = storeError { try Repository.open(storage, key: .identities([AgeIdentity()])) }
    #expect(error?.code == .wrongKey)
    #expect(error?.hint?.contains(identity.recipient.description) == true)
  }

  /// Any one of several identities may be the right one.
  @Test func oneOfSeveralIdentitiesOpens() throws {
    let stored = try repository.back(up: [("file", [1, 2, 3])])
    let opened = try Repository.open(storage, key: .identities([AgeIdentity(), identity]))
    #expect(try opened.beginReading().bytes(at: "file", in: stored) == [1, 2, 3])
  }

  @Test func recoveryRecipientReadsEverything() throws {
    let (host, recovery) = (AgeIdentity(), AgeIdentity())
    let storage = MemoryStorage()
    let keys = RepositoryKeys(
      identities: [host], recipients: [host.recipient, recovery.recipient])
    let stored = try Repository.create(in: storage, program: "test", keys: keys).back(
      up: [("file", [1, 2, 3])])
    for identity in [host, recovery] {
      let opened = try Repository.open(storage, key: .identities([identity]))
      #expect(try opened.beginReading().bytes(at: "file", in: stored) == [1, 2, 3])
    }
  }

  // MARK: - Hosts that only write

  @Test func writeOnlyHostAddsToItsEarlierBackups() throws {
    let cache = TemporaryDirectory()
    let path = ByteString(cache("index"))
    let host = try writer()
    func copies() -> IndexCache { IndexCache(directory: path, isEncrypted: true) }
    let first = PruneFixture.files(0..<10, size: 50_000)
    let one = try host.back(up: first, cache: copies())
    let before = try RepositoryListing.packSizes(repository.storage).values.reduce(0, +)
    let second = first + PruneFixture.files(10..<11)
    let two = try host.back(up: second, sequence: 2, cache: copies())
    let added = try RepositoryListing.packSizes(repository.storage).values.reduce(0, +) - before
    #expect(added < 20_000)
    for (stored, files) in [(one, first), (two, second)] {
      for file in files { #expect(try bytes(ByteString(file.name), of: stored) == file.bytes) }
    }
    #expect(storeError { try host.snapshot(one.id) }?.code == .keyRequired)
    #expect(storeError { try host.heads() }?.code == .keyRequired)
  }

  /// A lost cache costs only space.
  @Test func writeOnlyHostWithoutItsCacheStoresAgain() throws {
    let host = try writer()
    let files = PruneFixture.files(0..<5, size: 50_000)
    let one = try host.back(up: files)
    let before = try RepositoryListing.packSizes(repository.storage).values.reduce(0, +)
    let two = try host.back(up: files, sequence: 2)
    let after = try RepositoryListing.packSizes(repository.storage).values.reduce(0, +)
    #expect(after > before + 200_000)
    for stored in [one, two] {
      for file in files { #expect(try bytes(ByteString(file.name), of: stored) == file.bytes) }
    }
  }

  /// A host that can read merges index objects that are in the cache of the write-only host.
  @Test func writeOnlyHostReliesOnItsCopiesOfMergedObjects() throws {
    let cache = TemporaryDirectory()
    let path = ByteString(cache("index"))
    let host = try writer()
    let files = PruneFixture.files(0..<10, size: 50_000)
    try host.back(up: files, cache: IndexCache(directory: path, isEncrypted: true))
    for number in 2..<6 {
      try repository.back(
        up: PruneFixture.files((number * 20)..<(number * 20 + 12)), sequence: UInt64(number))
    }
    #expect(try RepositoryListing.indexes(repository.storage).count < 5)
    let before = try RepositoryListing.packSizes(repository.storage).values.reduce(0, +)
    let stored = try host.back(
      up: files, sequence: 9, cache: IndexCache(directory: path, isEncrypted: true))
    let added = try RepositoryListing.packSizes(repository.storage).values.reduce(0, +) - before
    #expect(added < 20_000)
    for file in files { #expect(try bytes(ByteString(file.name), of: stored) == file.bytes) }
  }

  /// A write-only host does not merge, so a backup of another host has to.
  @Test func backupThatCanReadMergesObjectsOfWriteOnlyHosts() throws {
    let host = try writer()
    for number in 1...20 {
      try host.back(up: PruneFixture.files(number..<(number + 1)), sequence: UInt64(number))
    }
    #expect(try RepositoryListing.indexes(repository.storage).count == 20)
    let stored = try repository.back(up: PruneFixture.files(1..<21), sequence: 21)
    // Objects of similar sizes are merged, so that only a logarithmic number of them remains.
    #expect(try RepositoryListing.indexes(repository.storage).count <= 5)
    for file in PruneFixture.files(1..<21) {
      #expect(try bytes(ByteString(file.name), of: stored) == file.bytes)
    }
  }

  // MARK: - Lost packs

  /// Removes a directory of packs with its content.
  private func lose(_ directory: ObjectPath) throws {
    for name in try storage.list(directory) { try storage.remove(directory.appending(name)) }
    try storage.remove(directory)
  }

  /// The directories of all packs.
  private func packDirectories() throws -> Set<ObjectPath> {
    Set(
      try RepositoryListing.packs(repository.storage).map {
        repository.storage.layout.pack($0).directory
      })
  }

  @Test func writeOnlyHostRefusesAStoreThatLostPacks() throws {
    let cache = TemporaryDirectory()
    let path = ByteString(cache("index"))
    let host = try writer()
    let files = PruneFixture.files(0..<5, size: 50_000)
    try host.back(up: files, cache: IndexCache(directory: path, isEncrypted: true))
    let lost = try packDirectories().sorted { "\($0)" < "\($1)" }
    for directory in lost { try lose(directory) }
    func backUp() throws -> StoredSnapshot {
      try host.back(up: files, sequence: 2, cache: IndexCache(directory: path, isEncrypted: true))
    }
    let error = storeError { try backUp() }
    #expect(error?.code == .missing)
    #expect(error?.reason.contains("the index names packs in it") == true)
    try storage.makeDirectories(lost.map(\.name), in: RepositoryLayout.packs)
    let stored = try backUp()
    for file in files { #expect(try bytes(ByteString(file.name), of: stored) == file.bytes) }
  }

  /// If the cache contains index objects that have been merged, and some of their packs are gone,
  /// the backup is not refused, and the blobs are stored again.
  @Test func writeOnlyHostStoresAgainBlobsThatOnlyItsCopiesName() throws {
    let cache = TemporaryDirectory()
    let path = ByteString(cache("index"))
    let host = try writer()
    let files = PruneFixture.files(0..<10, size: 50_000)
    try host.back(up: files, cache: IndexCache(directory: path, isEncrypted: true))
    let own = try packDirectories()
    let copied = try RepositoryListing.indexes(repository.storage)
    for number in 2..<6 {
      try repository.back(
        up: PruneFixture.files((number * 20)..<(number * 20 + 12)), sequence: UInt64(number))
    }
    #expect(
      try copied.allSatisfy { try !RepositoryListing.indexes(repository.storage).contains($0) })
    for directory in own { try lose(directory) }
    let stored = try host.back(
      up: files, sequence: 9, cache: IndexCache(directory: path, isEncrypted: true))
    for file in files { #expect(try bytes(ByteString(file.name), of: stored) == file.bytes) }
  }

  @Test func historyOfAWriteOnlyHostIsInItsCache() throws {
    let cache = TemporaryDirectory()
    let heads = SnapshotHeadCache(directory: ByteString(cache("heads")))
    let host = try writer()
    let stored = try host.back(up: [("file", [1])], sequence: 7)
    let source = stored.snapshot.source
    let status = try host.storage.status(host.storage.layout.snapshot(stored.id))
    host.record(stored, size: try #require(status?.size), in: heads)
    let known = try host.history(of: source, scope: .device, cache: heads)
    #expect(known.sequence == 7 && known.last?.id == stored.id)
    #expect(known.last?.snapshot.tree == stored.snapshot.tree)
    // Without the cache, the next sequence number is larger than any that was used.
    let lost = try host.history(of: source, scope: .device, cache: nil)
    #expect(lost.last == nil && lost.sequence > 1_700_000_000)
  }

  // MARK: - Damage and a hostile store

  @Test func everyChangedByteIsFound() throws {
    try repository.back(up: PruneFixture.files(0..<3, size: 70_000))
    var random = SeededBytes(seed: 20)
    for path in try objects() {
      let intact = try storage.load(path, limit: 1 << 30)
      for _ in 0..<8 {
        let position = random.number(0..<intact.count)
        try storage.change(path) { $0[position] ^= 1 }
        let found = try Checked(repository, .everything)
        #expect(found.damaged.contains { $0.hasPrefix("\(path)") }, "byte \(position) of \(path)")
        try storage.change(path) { $0 = intact }
      }
    }
    #expect(try Checked(repository, .everything).findings.isEmpty)
  }

  /// A changed header looks like that of another repository, but only its object is affected.
  @Test func everyChangedByteOfAHeadIsDamage() throws {
    let files = PruneFixture.files(0..<3)
    let stored = try repository.back(up: files)
    for path in try objects() where path.directory != RepositoryLayout.snapshots {
      let intact = try storage.load(path, limit: 1 << 30)
      let known = AgeFile.headCount(in: intact.span)
      for position in stride(from: 0, to: try #require(known), by: 7) {
        try storage.change(path) { $0[position] ^= 1 }
        let opened = try Repository.open(storage, key: .identities([identity]))
        let found = try Checked(opened, .everything)
        #expect(found.damaged.contains { $0.hasPrefix("\(path)") }, "byte \(position) of \(path)")
        if path.directory == RepositoryLayout.indexes {
          let reader = try opened.beginReading()
          for file in files {
            #expect(try reader.bytes(at: ByteString(file.name), in: stored) == file.bytes)
          }
        }
        try storage.change(path) { $0 = intact }
      }
    }
  }

  /// An object whose header no identity opens is damaged; the user is not told to try another key.
  @Test func aHeaderThatDoesNotOpenIsDamage() throws {
    try repository.back(up: PruneFixture.files(0..<3))
    let pack = try #require(try RepositoryListing.packSizes(repository.storage).keys.min())
    let other = try AgeFile(for: [AgeIdentity().recipient]).encrypt([UInt8]().span)
    let header = AgeHeader.count(in: other.span) ?? 0
    try #require(header > 0)
    try storage.change(repository.storage.layout.pack(pack)) { bytes in
      let count = AgeHeader.count(in: bytes.span) ?? 0
      bytes.replaceSubrange(..<count, with: other.prefix(header))
    }
    let opened = try Repository.open(storage, key: .identities([identity]))
    let error = storeError { try opened.storage.load(pack: pack, offset: 0, count: 1) }
    #expect(error?.code == .damaged)
    let words = "the key opens the repository but not this object: its header was changed"
    #expect(error?.reason.hasPrefix(words) == true, "\(error as Any)")
    // The object may be intact, so the hint must not suggest removing it.
    let path = repository.storage.layout.snapshot(pack)
    let remedy = error.flatMap { DamageRemedy.remedy(for: path, $0) }
    #expect(remedy?.contains("recovery key") == true && remedy?.contains("forget") == false)
  }

  /// A truncated pack is read up to its end, at any length.
  @Test(arguments: [0, 1, 16, 17, 5000]) func truncatedPackIsReadUpToItsEnd(_ rest: Int) throws {
    let files = PruneFixture.files(0..<8, size: 100_000)
    let stored = try repository.back(up: files)
    let sizes = try RepositoryListing.packSizes(repository.storage)
    let pack = try #require(sizes.max { $0.value < $1.value }?.key)
    try storage.change(repository.storage.layout.pack(pack)) { bytes in
      let head = AgeFile.headCount(in: bytes.span) ?? 0
      bytes.removeLast(bytes.count - head - 5 * AgePayload.storedCount - rest)
    }
    let opened = try Repository.open(storage, key: .identities([identity]))
    let read = try opened.storage.load(pack: pack, offset: 0, count: 5 * AgePayload.plainCount)
    #expect(read.count == 5 * AgePayload.plainCount)
    #expect(
      storeError {
        try opened.storage.load(pack: pack, offset: 6 * UInt64(AgePayload.plainCount), count: 1)
      }?.kind == .damaged)
    #expect(try opened.snapshot(stored.id).id == stored.id)
  }

  /// Reading a file reads only the pieces of its frame. A later read does not need the header
  /// again.
  @Test func rangeOfAPackReadsOnlyItsPieces() throws {
    let stored = try repository.back(up: [("file", SeededBytes.some(seed: 3, count: 1 << 20))])
    #expect(try bytes("file", of: stored)?.count == 1 << 20)
    let sizes = try RepositoryListing.packSizes(repository.storage)
    let pack = try #require(sizes.max { $0.value < $1.value }?.key)
    let path = repository.storage.layout.pack(pack)
    let intact = try storage.load(path, limit: 1 << 30)
    let found = AgeFile.headCount(in: intact.span)
    let head = try #require(found)
    let piece = AgePayload.storedCount
    // Bytes 100,000 to 100,099 are in the second piece: all other pieces may be damaged.
    try storage.change(path) { bytes in
      for index in bytes.indices where index >= head && (index - head) / piece != 1 {
        bytes[index] ^= 1
      }
    }
    let watched = WatchedStorage(storage)
    let opened = try Repository.open(watched, key: .identities([identity]))
    let plain = try AgeFile(opening: intact.span, with: [identity]).decrypt(intact.span)
    for _ in 0..<2 {
      #expect(
        try opened.storage.load(pack: pack, offset: 100_000, count: 100)
          == Array(plain[100_000..<100_100]))
    }
    #expect(watched.state.withLock(\.events).count { $0 == "range \(path)" } == 3)
    for offset in [0, 200_000] as [UInt64] {
      let error = storeError { try opened.storage.load(pack: pack, offset: offset, count: 100) }
      #expect(error?.code == .damaged && error?.subject == "\(path)")
    }
  }

  /// Messages about a path contain only the reason of an error, so the reason has to name the pack.
  @Test func reasonOfADamagedFrameNamesThePack() throws {
    let stored = try repository.back(up: [("file", SeededBytes.some(seed: 3, count: 100_000))])
    let sizes = try RepositoryListing.packSizes(repository.storage)
    let pack = try #require(sizes.max { $0.value < $1.value }?.key)
    let path = repository.storage.layout.pack(pack)
    try storage.change(path) { $0[$0.count / 2] ^= 1 }
    let error = storeError { try bytes("file", of: stored) }
    #expect(error?.code == .damaged)
    #expect(error?.reason.hasPrefix("\(path): piece 0 is damaged") == true, "\(error as Any)")
  }

  /// An index object whose bytes match its name, but are not a valid index.
  @Test func malformedIndexObjectIsNamedByItsStoredBytes() throws {
    try repository.back(up: [("file", [1, 2, 3])])
    let object = try repository.storage.encode(Array("no index".utf8))
    let path = repository.storage.layout.index(object.id)
    try storage.put(object.bytes, path)
    let error = storeError { try IndexObject.load(object.id, from: repository.storage) }
    #expect(error?.code == .damaged && error?.subject == "index/\(object.id.hex).index.age")
    #expect(try Checked(repository, .trees).damaged == ["\(path)"])
  }

  @Test func truncatedPackLosesItsData() throws {
    let files = PruneFixture.files(0..<40, size: 100_000)
    let stored = try repository.back(up: files)
    let sizes = try RepositoryListing.packSizes(repository.storage)
    let pack = try #require(sizes.max { $0.value < $1.value }?.key)
    try storage.change(repository.storage.layout.pack(pack)) { $0.removeLast($0.count / 2) }
    let found = try Checked(repository, .everything)
    #expect(found.damaged.contains { $0.hasPrefix("packs/") })
    let reader = try repository.beginReading()
    let lost = files.filter {
      (try? reader.bytes(at: ByteString($0.name), in: stored)) != $0.bytes
    }
    #expect(!lost.isEmpty)
    #expect(Set(found.costs.keys.map(\.description)) == Set(lost.map(\.name)))
  }

  /// An attacker with write access to the store can swap files. The name is the hash of the bytes.
  @Test func exchangedObjectsAreRefused() throws {
    let one = try repository.back(up: [("file", [1])])
    let two = try repository.back(up: [("file", [2])], sequence: 2)
    let paths = [one, two].map { repository.storage.layout.snapshot($0.id) }
    let bytes = try paths.map { try storage.load($0, limit: 1 << 20) }
    try storage.change(paths[0]) { $0 = bytes[1] }
    #expect(storeError { try repository.snapshot(one.id) }?.code == .damaged)
    #expect(try Checked(repository, .trees).damaged == ["\(paths[0])"])
  }

  @Test func plainObjectIsNotPartOfAnEncryptedRepository() throws {
    try repository.back(up: [("file", [1])])
    let plain = MemoryStorage()
    let other = try Repository.create(in: plain, program: "test", keys: nil)
    let forged = try other.back(up: [("file", [2])], sequence: 2)
    let path = RepositoryLayout.plain.snapshot(forged.id)
    try storage.save(
      plain.load(path, limit: 1 << 20), as: path, by: RepositoryLayout.snapshots)
    #expect(try repository.heads().heads.count == 1)
    #expect(storeError { try repository.snapshot(forged.id) }?.code == .missing)
    #expect(
      try Checked(repository, .everything).findings.contains { finding in
        if case .remark(let object, _) = finding { object == "\(path)" } else { false }
      })
  }

  /// The foreign object is the only one that cannot be read.
  @Test func objectForAnotherKeyIsNamed() throws {
    try repository.back(up: [("file", [1])])
    let stranger = try AgeFile(for: [AgeIdentity().recipient]).encrypt([1, 2, 3].span)
    let id = Blake2b.hash(stranger)
    try storage.save(
      stranger, as: repository.storage.layout.snapshot(id), by: RepositoryLayout.snapshots)
    #expect(storeError { try repository.snapshot(id) }?.code == .damaged)
    #expect(try repository.heads().damaged.map(\.code) == [.damaged])
    #expect(try repository.heads().heads.count == 1)
  }

  // MARK: - Copies of the index

  @Test func copyOfAnEncryptedIndexIsVerified() throws {
    let directory = TemporaryDirectory()
    let path = ByteString(directory("index"))
    let stored = try repository.back(
      up: PruneFixture.files(0..<4), cache: IndexCache(directory: path, isEncrypted: true))
    let id = try #require(try RepositoryListing.indexes(repository.storage).first)
    let copy = try Directory.open(path: path).file(ByteString(id.hex + ".index")).readAll(
      limit: 1 << 20)
    #expect(copy?.starts(with: Array("sbxindex".utf8)) == true)
    #expect(try RepositoryReader.usesCopies(repository, path))
    // If the list of verified copies is lost, the copy is made again.
    try Directory.open(path: path).remove("checked")
    let reader = try repository.beginReading(
      cache: IndexCache(directory: path, isEncrypted: true))
    #expect(try reader.bytes(at: "file-1", in: stored) == PruneFixture.files(1..<2)[0].bytes)
  }

  /// A host with an identity that does not open the objects ignores their copies, and stores
  /// everything again.
  @Test func copyThatAnotherIdentityOpenedIsNotUsed() throws {
    let directory = TemporaryDirectory()
    let path = ByteString(directory("index"))
    let files = PruneFixture.files(0..<4)
    try repository.back(up: files, cache: IndexCache(directory: path, isEncrypted: true))
    let identity = AgeIdentity()
    let keys = RepositoryKeys(identities: [identity], recipients: [identity.recipient])
    let other = Repository(storage, settings: repository.settings, keys: keys)
    let loaded = try LoadedIndex.loadAll(
      from: other.storage, cache: IndexCache(directory: path, isEncrypted: true))
    #expect(loaded.objects.isEmpty && loaded.faults.map(\.error.code) == [.damaged])
    let stored = try other.back(
      up: files, sequence: 2, cache: IndexCache(directory: path, isEncrypted: true))
    let reader = try other.beginReading()
    for (name, bytes) in files {
      #expect(try reader.bytes(at: ByteString(name), in: stored) == bytes)
    }
    // The copy made with the first identity is still there.
    #expect(try RepositoryReader.usesCopies(repository, path))
  }

  @Test func damagedCopyIsMadeAgain() throws {
    let directory = TemporaryDirectory()
    let path = ByteString(directory("index"))
    let stored = try repository.back(
      up: PruneFixture.files(0..<4), cache: IndexCache(directory: path, isEncrypted: true))
    let id = try #require(try RepositoryListing.indexes(repository.storage).first)
    let name = ByteString(id.hex + ".index")
    let copy = try #require(
      try Directory.open(path: path).file(name).readAll(limit: 1 << 20))
    var changed = copy
    changed[100] ^= 1
    let file = try AtomicFile(in: Directory.open(path: path), permissions: 0o600)
    try file.write(changed)
    try file.commit(as: name, durably: false)
    let reader = try repository.beginReading(
      cache: IndexCache(directory: path, isEncrypted: true))
    #expect(try reader.bytes(at: "file-1", in: stored) == PruneFixture.files(1..<2)[0].bytes)
    #expect(try Directory.open(path: path).file(name).readAll(limit: 1 << 20) == copy)
  }
}

extension RepositoryReader {
  /// Whether a reader uses this host's copies.
  fileprivate static func usesCopies(_ repository: Repository, _ path: ByteString) throws -> Bool {
    let index = try LoadedIndex.loadAll(
      from: repository.storage, cache: IndexCache(directory: path, isEncrypted: true))
    return index.objects.allSatisfy { if case .mapped = $0.bytes { true } else { false } }
  }
}
