import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The test vector `Tests/Vectors/repository-v1-encrypted`: later versions read encrypted data of
/// version 1. It has the contents of `repository-v1`.
struct EncryptedGoldenTests {
  private static let directory = Shared.packageRoot.appendingPathComponent(
    "Tests/Vectors/repository-v1-encrypted")

  enum Key: String, CaseIterable, Sendable { case passphrase, identity }

  private static func bytes(of name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: directory.appendingPathComponent(name)))
  }

  private static func storage() throws -> LocalStorage {
    try LocalStorage(path: ByteString(directory.appendingPathComponent("repository").path))
  }

  private static func open(with key: Key) throws -> Repository {
    switch key {
    case .passphrase:
      let line = try bytes(of: "passphrase.txt").dropLast()
      let passphrase = try AgePassphrase(Array(line).span)
      return try Repository.open(storage(), key: .passphrase({ passphrase }))
    case .identity:
      let text = try bytes(of: "identity.txt")
      return try Repository.open(storage(), key: .identities(AgeKeyList.identities(text.span)))
    }
  }

  @Test(arguments: Key.allCases) func everyEntryIsReadAsStored(key: Key) throws {
    let repository = try Self.open(with: key)
    let expected = try GoldenTests.expected()
    let listing = try repository.snapshots()
    #expect(listing.damaged.isEmpty && repository.isEncrypted)
    let originals = listing.snapshots.compactMap { $0.snapshot.original?.id.hex }
    #expect(originals.sorted() == expected.keys.sorted() && originals.count == 2)
    for stored in listing.snapshots {
      let found = try GoldenTests.lines(of: stored, try repository.beginReading())
      let wanted = try #require(expected[stored.snapshot.original?.id.hex ?? ""])
      #expect(wanted.count > 300)
      #expect(found.subtracting(wanted).isEmpty && wanted.subtracting(found).isEmpty)
    }
  }

  /// The id of an encrypted object is the hash of its stored bytes.
  @Test func namesAreHashesOfTheStoredBytes() throws {
    let base = Self.directory.appendingPathComponent("repository").path
    let objects = try FileManager.default.subpathsOfDirectory(atPath: base).filter {
      $0.hasSuffix(".age") && !$0.hasPrefix("keys/")
    }
    #expect(objects.count == 5)
    for path in objects {
      let hash = Blake2b.hash(try Self.bytes(of: "repository/" + path))
      #expect(URL(fileURLWithPath: path).lastPathComponent.hasPrefix(hash.hex + "."), "\(path)")
    }
  }

  @Test func unknownMembersAndTheKeyFileAreOfThisVersion() throws {
    let repository = try Self.open(with: .identity)
    let last = try #require(try repository.snapshots().snapshots.last)
    #expect(last.snapshot.unknown.map(\.name) == ["weather"] && last.signature == .absent)
    #expect(try repository.keyEntries().map(\.name) == ["vector"])
    // The work factor of new key files.
    let head = String(decoding: try Self.bytes(of: "repository/keys/vector.age"), as: UTF8.self)
    let lines = head.split(separator: "\n")
    #expect(lines[0] == "age-encryption.org/v1" && lines[1].hasPrefix("-> scrypt "))
    #expect(lines[1].hasSuffix(" \(KeyFile.workFactor)"))
  }

  @Test func otherKeysAreRefused() throws {
    let passphrase = try AgePassphrase(Array("another passphrase".utf8).span)
    for key in [KeySource.passphrase({ passphrase }), .identities([AgeIdentity()])] {
      let error = storeError { try Repository.open(Self.storage(), key: key) }
      #expect(error?.code == .wrongKey)
    }
    let locked = try Repository.open(Self.storage(), key: .none)
    #expect(storeError { try locked.beginReading() }?.code == .keyRequired)
  }
}
