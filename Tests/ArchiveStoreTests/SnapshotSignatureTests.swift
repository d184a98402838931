import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Signed snapshots, and attacks on them by a store or another host (docs/repository-format.md,
/// "Signatures").
struct SnapshotSignatureTests {
  private let memory = MemoryStorage()
  private let key = SigningKey()
  /// A repository that this host signs for, and whose signer it trusts.
  private let repository: Repository

  init() throws {
    repository = try Self.create(in: memory, signedBy: key)
  }

  private static func create(in memory: MemoryStorage, signedBy key: SigningKey) throws
    -> Repository
  {
    var repository = try Repository.create(in: memory, program: "test")
    repository.signingKey = { key }
    repository.trust.trust(key.signer, name: "host")
    return repository
  }

  private func content(_ stored: StoredSnapshot) throws -> [UInt8] {
    try repository.storage.load(stored.id, kind: .snapshot, limit: FormatLimit.snapshot)
  }

  /// Stores the content of a snapshot, as any program with write access to the store can.
  private func put(_ content: [UInt8]) throws -> SnapshotID {
    let object = try repository.storage.encode(content)
    try memory.put(object.bytes, repository.storage.layout.snapshot(object.id))
    return object.id
  }

  private func refusal(of content: [UInt8]) throws -> TrustedSigners.Refusal? {
    try repository.refusal(of: repository.snapshot(put(content)))
  }

  /// Returns line 1 and line 2, without their line feeds.
  private func lines(_ content: [UInt8]) throws -> (first: [UInt8], second: [UInt8]) {
    let lines = content.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    try #require(lines.count == 3 && lines[2].isEmpty)
    return (Array(lines[0]), Array(lines[1]))
  }

  private static let newline = [UInt8(ascii: "\n")]

  // MARK: - The format

  @Test func secondLineIsTheSignatureOfTheFirst() throws {
    let stored = try repository.back(up: [("file", [1, 2, 3])])
    #expect(stored.signature == .valid(key.signer))
    #expect(try repository.snapshot(stored.id) == stored)
    #expect(try repository.heads().heads.map(\.signature) == [.valid(key.signer)])
    let (first, second) = try lines(content(stored))
    let json = try JSON(parsing: second)
    #expect(json.members?.map(\.name) == ["signer", "signature"])
    #expect(json["signer"]?.string == key.signer.description)
    let signature = try #require(json["signature"]?.string.flatMap { Signature(base64: $0) })
    let message = Array("sandboxctl snapshot v1\n\(repository.id.hex)\n".utf8) + first
    #expect(key.signer.verifies(signature, of: message))
    #expect(!key.signer.verifies(signature, of: first))
    #expect(repository.refusal(of: stored) == nil)
  }

  @Test func unknownMembersAndLinesOfTheSignatureAreIgnored() throws {
    let (first, second) = try lines(content(repository.back(up: [("file", [1])])))
    let members = try #require(JSON(parsing: second).members)
    let more = JSON.object(members + [JSON.Member("later", 1)]).compactBytes
    for rest in [more + Self.newline, second + Self.newline + Array("a third line".utf8)] {
      #expect(try refusal(of: first + Self.newline + rest) == nil)
    }
  }

  // MARK: - Hostile stores and hosts

  /// One bit of each signed byte, and each bit of the signature, is changed.
  @Test func eachChangedBitIsFound() throws {
    let stored = try repository.back(up: [("file", [1, 2, 3])])
    let whole = try content(stored)
    let end = try #require(whole.firstIndex(of: UInt8(ascii: "\n")))
    for index in whole.indices {
      for bit in index <= end ? index % 8..<index % 8 + 1 : 0..<8 {
        var changed = whole
        changed[index] ^= 1 << UInt8(bit)
        // With some changes, the content is no longer JSON, or belongs to another repository.
        guard
          let read = try? StoredSnapshot(id: stored.id, content: changed, object: "a snapshot")
        else { continue }
        #expect(repository.refusal(of: read) != nil, "byte \(index), bit \(bit)")
      }
    }
  }

  @Test func removedAndDamagedSignaturesAreRefused() throws {
    let (first, second) = try lines(content(repository.back(up: [("file", [1])])))
    let line = first + Self.newline
    #expect(try refusal(of: line) == .unsigned)
    let long = Array(#"{"later":""#.utf8) + [UInt8](repeating: 0x61, count: 5000)
    for rest in [
      Array("a signature".utf8), second, Self.newline, Self.newline + second + Self.newline,
      Array(second.dropLast()) + Self.newline, long + Array(#"","#.utf8) + second.dropFirst(),
      Array(#"{"signer":"\#(key.signer)"}"#.utf8) + Self.newline, [0xff] + Self.newline,
    ] {
      #expect(try refusal(of: line + rest) == .malformed)
    }
  }

  @Test func signatureOfAnotherSnapshotIsRefused() throws {
    let one = try lines(content(repository.back(up: [("file", [1])])))
    let two = try lines(content(repository.back(up: [("file", [2])], sequence: 2)))
    #expect(
      try refusal(of: one.first + Self.newline + two.second + Self.newline) == .wrong)
  }

  /// Two repositories have the same key: neither a whole snapshot nor a signature can be moved to
  /// the other.
  @Test func signatureOfAnotherRepositoryIsRefused() throws {
    let storage = MemoryStorage()
    let other = try Self.create(in: storage, signedBy: key)
    let foreign = try other.back(up: [("file", [1])])
    let content = try other.storage.load(
      foreign.id, kind: .snapshot, limit: FormatLimit.snapshot)
    let id = try put(content)
    #expect(storeError { try repository.snapshot(id) }?.code == .damaged)
    let (first, _) = try lines(self.content(repository.back(up: [("file", [1])])))
    let signature = SnapshotSignature.encode(first, of: other.id, signedBy: key)
    #expect(try refusal(of: first + Self.newline + signature + Self.newline) == .wrong)
  }

  /// Anyone who knows a recipient can make snapshots, and sign them with their own key.
  @Test func snapshotOfAnUntrustedSignerIsRefused() throws {
    let intruder = SigningKey()
    let (first, _) = try lines(content(repository.back(up: [("file", [1])])))
    let signature = SnapshotSignature.encode(first, of: repository.id, signedBy: intruder)
    let forged = first + Self.newline + signature + Self.newline
    #expect(try refusal(of: forged) == .untrusted(intruder.signer))
    let stored = try repository.snapshot(put(forged))
    let error = storeError { try repository.requireTrusted(stored, "restore") }
    #expect(error?.code == .untrusted && error?.kind == .damaged)
    #expect(error?.hint?.contains("key trust \(intruder.signer)") == true)
    // The signer named in the signature is covered by it.
    let members: JSON = [
      "signer": .string(key.signer.description),
      "signature": try #require(JSON(parsing: signature)["signature"]),
    ]
    #expect(
      try refusal(of: first + Self.newline + members.compactBytes + Self.newline) == .wrong)
  }

  /// A snapshot that is stored again, under another id if encrypted, keeps its old time and
  /// sequence, so it does not become the latest.
  @Test func replayedSnapshotIsNotTheLatest() throws {
    let old = try content(repository.back(up: [("file", [1])]))
    let new = try repository.back(up: [("file", [2])], sequence: 2)
    let id = try put(old)
    #expect(try repository.heads().heads.count == (repository.isEncrypted ? 3 : 2))
    #expect(try repository.refusal(of: repository.snapshot(id)) == nil)
    #expect(try repository.heads().latest(named: "latest").id == new.id)
  }

  /// The order of snapshots depends on their signed times and sequences, and their names are hashes
  /// of the stored bytes.
  @Test func exchangedSnapshotsAreDamaged() throws {
    let (one, two) = (
      try repository.back(up: [("file", [1])]),
      try repository.back(up: [("file", [2])], sequence: 2)
    )
    let layout = repository.storage.layout
    let stored = try memory.load(layout.snapshot(one.id), limit: FormatLimit.snapshot)
    try memory.put(stored, layout.snapshot(two.id))
    #expect(storeError { try repository.snapshot(two.id) }?.code == .damaged)
    #expect(try repository.snapshot(one.id) == one)
  }

  /// A run that continues a forged snapshot would sign its content.
  @Test func runDoesNotBeginFromARefusedSnapshot() throws {
    let genuine = try repository.back(up: [("file", [1])])
    var forged = genuine.snapshot
    forged.sequence = 9
    _ = try put(forged.encode())
    let history = try repository.history(of: forged.source, scope: forged.scope)
    #expect(history.last?.id == genuine.id && history.sequence == 9)
  }

  // MARK: - Trust

  @Test func withoutTrustedSignersNothingIsRefused() throws {
    let stored = try repository.back(up: [("file", [1])])
    var open = repository
    open.trust = TrustedSigners()
    let (first, _) = try lines(content(stored))
    let ids = try [[], Array("garbage\n".utf8)].map { try put(first + Self.newline + $0) }
    for id in ids { #expect(try open.refusal(of: open.snapshot(id)) == nil) }
    let checked = try Checked(open, .trees)
    #expect(checked.report.snapshots == 3 && checked.report.signed == 1)
    #expect(checked.report.untrusted == 0 && checked.remarks.count == 1)
  }

  @Test func checkNamesRefusedSnapshots() throws {
    let (first, _) = try lines(content(repository.back(up: [("file", [1])])))
    let id = try put(first + Self.newline)
    let checked = try Checked(repository, .trees)
    #expect(checked.report.signed == 1 && checked.report.untrusted == 1)
    #expect(
      checked.findings.contains(.untrusted(snapshot: id, reason: "it is not signed")))
    var accepting = repository
    accepting.trust.snapshots.insert(id)
    #expect(try Checked(accepting, .trees).report.untrusted == 0)
  }

  @Test func revokedSignersStayRevoked() {
    let (own, other) = (SigningKey().signer, SigningKey().signer)
    var trust = TrustedSigners()
    trust.own = own
    #expect(trust.isEmpty && trust.refusal(of: .missing, .absent) == nil)
    #expect(trust.merge([other: "nas"]) && !trust.merge([other: "again"]))
    #expect(trust.names == [other: "nas"] && trust.trusts(own) && trust.trusts(other))
    trust.revoke(other)
    #expect(!trust.merge([other: "nas"]) && trust.isEmpty)
    trust.trust(other, name: "")
    trust.revoke(own)
    #expect(trust.refusal(of: .missing, .valid(other)) == nil)
    #expect(trust.refusal(of: .missing, .valid(own)) == .untrusted(own))
  }

  @Test func cachedHeadsKeepSignatures() throws {
    let directory = TemporaryDirectory()
    let cache = SnapshotHeadCache(directory: ByteString(directory("cache")))
    let (first, second) = try lines(content(repository.back(up: [("file", [1])])))
    let wrong = SnapshotSignature.encode(second, of: repository.id, signedBy: key)
    let other = SnapshotSignature.encode(first, of: repository.id, signedBy: SigningKey())
    for rest in [[], Self.newline, wrong + Self.newline, other + Self.newline] {
      _ = try put(first + Self.newline + rest)
    }
    let heads = try repository.heads().heads
    #expect(Set(heads.map(\.signature)).count == 5)
    for _ in 0..<2 { #expect(try repository.heads(cache: cache).heads == heads) }
  }

  // MARK: - Copies

  @Test func copyIsSignedByTheHostThatMakesIt() throws {
    let copier = SigningKey()
    let target = try Self.create(in: MemoryStorage(), signedBy: copier)
    let stored = try repository.back(up: [("file", [1])])
    _ = try CopyFixture.copy(repository, target)
    let copy = try #require(target.snapshots().snapshots.first)
    #expect(copy.signature == .valid(copier.signer) && copy.snapshot.original?.id == stored.id)
    // Signatures are deterministic, so the copy back equals the original.
    guard !repository.isEncrypted else { return }
    try memory.remove(repository.storage.layout.snapshot(stored.id))
    _ = try CopyFixture.copy(target, repository)
    #expect(try repository.snapshots().snapshots == [stored])
  }

  /// As long as no signer is trusted, every snapshot is accepted, but a copy is signed only if this
  /// host signed the original. Otherwise, trust that is later put in this host would extend to
  /// snapshots that a store added.
  @Test func copiesWithoutTrustedSignersAreSignedIfTheOriginalWas() throws {
    var source = repository
    source.trust = TrustedSigners()
    source.trust.own = key.signer
    let own = try source.back(up: [("file", [1])])
    let (first, _) = try lines(content(own))
    let foreign = SnapshotSignature.encode(first, of: repository.id, signedBy: SigningKey())
    for rest in [[], foreign + Self.newline] { _ = try put(first + Self.newline + rest) }
    let copier = SigningKey()
    let target = try Self.create(in: MemoryStorage(), signedBy: copier)
    _ = try CopyFixture.copy(source, target)
    let copies = try target.snapshots().snapshots
    let signed = copies.filter { $0.signature == .valid(copier.signer) }
    #expect(copies.count == 3 && signed.map { $0.snapshot.original?.id } == [own.id])
    #expect(copies.count { $0.signature == .absent } == 2)
  }

  /// A copy must not turn a forged snapshot into a trusted one.
  @Test func copyOfARefusedSnapshotIsNotSigned() throws {
    let stored = try repository.back(up: [("file", [1])])
    let (first, _) = try lines(content(stored))
    try memory.remove(repository.storage.layout.snapshot(stored.id))
    _ = try put(first + Self.newline)
    let target = try Self.create(in: MemoryStorage(), signedBy: SigningKey())
    _ = try CopyFixture.copy(repository, target)
    #expect(try target.snapshots().snapshots.map(\.signature) == [.absent])
  }
}
