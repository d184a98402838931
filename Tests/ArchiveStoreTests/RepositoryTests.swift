import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

struct RepositoryTests {
  private static let encryption = TestEncryption.isOn ? "age" : "none"
  private let directory = TemporaryDirectory()

  private func create() throws -> (LocalStorage, Repository) {
    let storage = try LocalStorage.create(path: ByteString(directory("repo")))
    return (storage, try Repository.create(in: storage, program: "test"))
  }

  /// Replaces a part of the text of `repository.json`.
  private func rewrite(_ part: String, _ other: String) throws {
    let path = directory("repo/repository.json")
    let text = try String(contentsOfFile: path, encoding: .utf8)
    #expect(text.contains(part), "\(part)")
    try text.replacingOccurrences(of: part, with: other)
      .write(toFile: path, atomically: true, encoding: .utf8)
  }

  private func openError() throws -> StoreError? {
    let storage = try LocalStorage(path: ByteString(directory("repo")))
    return storeError { try Repository.open(storage) }
  }

  @Test func newRepositoryHasTheDocumentedLayout() throws {
    let (_, repository) = try create()
    let names = try FileManager.default.contentsOfDirectory(atPath: directory("repo")).sorted()
    #expect(
      names == [
        "README.txt", "condemned", "index", "keys", "leases", "packs", "pins", "recover.py",
        "repository.json", "reserve", "snapshots",
      ])
    let packs = try FileManager.default.contentsOfDirectory(atPath: directory("repo/packs"))
    #expect(packs.sorted() == (0..<256).map { String(format: "%02x", $0) })
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory("repo/leases")).isEmpty)
    let reserve = try #require(FileManager.default.contents(atPath: directory("repo/reserve")))
    #expect(reserve.count == 4 << 20)
    let mode = try FileManager.default.attributesOfItem(atPath: directory("repo"))
    #expect(mode[.posixPermissions] as? Int == 0o700)
    #expect(
      try Repository.open(LocalStorage(path: ByteString(directory("repo")))).id == repository.id)
  }

  @Test func settingsContainAllMembersOfTheFormat() throws {
    let (_, repository) = try create()
    let text = try String(contentsOfFile: directory("repo/repository.json"), encoding: .utf8)
    let json = try JSON(parsing: text)
    #expect(json["format"]?.string == "sandboxctl-repository")
    #expect(json["version"]?.integer == 1)
    #expect(json["id"]?.string == repository.id.hex)
    #expect(json["hash"]?.string == "blake2b-256")
    #expect(json["compression"]?.string == "zstd")
    #expect(json["chunking"]?["gear"]?.string == GearChunker.tableDigest.hex)
    #expect(json["chunking"]?["sqlite"]?.integer == 16384)
    #expect(json["features"] == ["read": [], "write": [], "prune": []])
  }

  @Test func nonEmptyDirectoryIsRefused() throws {
    try FileManager.default.createDirectory(
      atPath: directory("repo"), withIntermediateDirectories: true)
    _ = FileManager.default.createFile(atPath: directory("repo/x"), contents: nil)
    let error = storeError { try create() }
    #expect(error?.code == .notEmpty)
    #expect(error?.kind == .refused)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory("repo")) == ["x"])
  }

  /// An interrupted creation leaves nothing behind, except if another program may be using the
  /// repository.
  @Test func remainsOfAnInterruptedCreationAreRemoved() throws {
    let storage = MemoryStorage()
    let error = storeError {
      try Repository.create(in: storage, program: "test") { _ throws(StoreError) in
        throw StoreError.interrupted("create the repository in", "memory", hint: "run it again")
      }
    }
    #expect(error?.code == .interrupted)
    try storage.put([], RepositoryLayout.keys.appending("a"))
    let other = RepositoryLayout.leases.appending("other")
    for path in [other, RepositoryLayout.settings] {
      try storage.put([], path)
      let before = try storage.objects()
      Repository.removeUnfinished(in: storage)
      #expect(try storage.objects() == before, "\(path)")
      try storage.remove(path)
    }
    Repository.removeUnfinished(in: storage)
    #expect(try storage.list(.root).isEmpty)
  }

  @Test func missingRepositoryIsAnError() throws {
    let empty = MemoryStorage()
    #expect(storeError { try Repository.open(empty) }?.kind == .noRepository)
    _ = try create()
    try FileManager.default.removeItem(atPath: directory("repo/repository.json"))
    #expect(try openError()?.kind == .noRepository)
  }

  @Test(arguments: [
    (#""version": 1"#, #""version": 2"#, "version"),
    (#""hash": "blake2b-256""#, #""hash": "sha256""#, "hash"),
    (#""compression": "zstd""#, #""compression": "lz4""#, "compression"),
    (#""encryption": "\#(encryption)""#, #""encryption": "gpg""#, "encryption"),
    (#""id": "gear-1""#, #""id": "gear-2""#, "chunking.id"),
    (#""sqlite": 16384"#, #""sqlite": 4096"#, "chunking.sqlite"),
    (#""max": 4194304"#, #""max": 8388608"#, "chunking.max"),
    (#""sqlite": 16384"#, #""sqlite": 16384, "secret": "5ec2e7""#, "chunking.secret"),
  ])
  func unknownSettingsAreRefusedByName(part: String, other: String, name: String) throws {
    _ = try create()
    try rewrite(part, other)
    let error = try #require(try openError())
    #expect(error.code == .unsupported)
    #expect(error.reason.contains("\"\(name)\""))
    #expect(!error.description.contains("5ec2e7"), "a secret is not printed")
  }

  @Test func missingChunkerSecretMeansTheFixedTable() throws {
    let (_, repository) = try create()
    try rewrite(#""sqlite": 16384"#, #""sqlite": 16384, "secret": null"#)
    #expect(
      try Repository.open(LocalStorage(path: ByteString(directory("repo")))).id == repository.id)
  }

  @Test func damagedSettingsAreRefused() throws {
    _ = try create()
    try rewrite("{", "[")
    #expect(try openError()?.kind == .damaged)
  }

  @Test func unknownFeatureRefusesOnlyItsOperations() throws {
    let (_, repository) = try create()
    try repository.back(up: [("a", [1, 2, 3])])
    try rewrite(#""write": []"#, #""write": ["erasure"]"#)
    let again = try Repository.open(LocalStorage(path: ByteString(directory("repo"))))
    #expect(try again.snapshots().snapshots.count == 1)
    let error = storeError { try again.beginWriting() }
    #expect(error?.code == .unknownFeature)
    #expect(error?.reason.contains("\"erasure\"") == true)
    try rewrite(#""read": []"#, #""read": ["shards"]"#)
    #expect(try openError()?.reason.contains("\"shards\"") == true)
  }

  @Test func snapshotsAreFoundByPrefixAndLatest() throws {
    let (_, repository) = try create()
    #expect(storeError { try repository.snapshot(matching: "latest") }?.code == .noSnapshot)
    let first = try repository.back(up: [("a", [1])], sequence: 1)
    let second = try repository.back(up: [("a", [2])], sequence: 2)
    #expect(try repository.snapshots().snapshots == [first, second])
    #expect(try repository.snapshot(matching: "latest") == second)
    #expect(try repository.snapshot(matching: "latest~1") == first)
    #expect(storeError { try repository.snapshot(matching: "latest~2") }?.code == .noSnapshot)
    #expect(try repository.snapshot(matching: String(first.id.hex.prefix(8))) == first)
    #expect(try repository.snapshot(matching: first.id.hex.uppercased()) == first)
    #expect(try repository.snapshot(matching: "latest", where: { $0.sequence == 1 }) == first)
    for text in ["", "abc", "latest~", "latest~x", "xyzw", "0000000000"] {
      let error = storeError { try repository.snapshot(matching: text) }
      #expect(error?.code == .noSnapshot, "\(text)")
      #expect(error?.hint != nil)
    }
  }

  @Test func damagedSnapshotDoesNotHideOthers() throws {
    let (_, repository) = try create()
    let first = try repository.back(up: [("a", [1])], sequence: 1)
    let second = try repository.back(up: [("a", [2])], sequence: 2)
    let path = directory("repo/\(RepositoryLayout.tested.snapshot(second.id))")
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path))
    let listing = try repository.snapshots()
    #expect(listing.snapshots == [first])
    #expect(listing.damaged.map(\.code) == [.damaged])
  }

  @Test func everyErrorCodeHasAKind() {
    let kinds = StoreError.Code.allCases.map {
      StoreError($0, "use", subject: "x", reason: "y").kind
    }
    #expect(Set(kinds) == Set(StoreError.Kind.allCases))
    #expect(StoreError(.busy, "use", subject: "x", reason: "y").description == "cannot use 'x': y")
  }
}
