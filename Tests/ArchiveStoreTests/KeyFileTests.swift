import Codecs
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Key files: which of them open a repository, and how keys are added, changed and removed.
struct KeyFileTests {
  private let storage = MemoryStorage()
  private let identity = AgeIdentity()
  private let repository: Repository

  /// Makes a repository with the key `first`, whose passphrase is `correct`.
  init() throws {
    repository = try Repository.create(
      in: storage, program: "test",
      keys: RepositoryKeys(identities: [identity], recipients: [identity.recipient]))
    try save("first", "correct")
  }

  /// The scrypt work factor in these tests.
  private static let workFactor = 2

  private static func passphrase(_ text: String) throws -> AgePassphrase {
    try AgePassphrase(Array(text.utf8).span)
  }

  private func save(_ name: String, _ text: String, isReplacing: Bool = false) throws {
    try repository.saveKey(
      name, passphrase: Self.passphrase(text), isReplacing: isReplacing,
      workFactor: Self.workFactor)
  }

  private func unlock(
    _ text: String, in storage: (any Storage)? = nil, recipients: [AgeRecipient]? = nil
  ) throws -> RepositoryKeys {
    let passphrase = try Self.passphrase(text)
    return try RepositoryKeys.unlock(
      storage ?? self.storage, repository: repository.id,
      recipients: recipients ?? [identity.recipient], source: .passphrase({ passphrase }))
  }

  /// Writes the bytes of a key file.
  private func store(_ bytes: [UInt8], as name: String) throws {
    try storage.save(bytes, as: KeyFile.path(name), by: RepositoryLayout.leases)
  }

  private func load(_ name: String) throws -> [UInt8] {
    try storage.load(KeyFile.path(name), limit: KeyFile.maximumSize)
  }

  private func names() throws -> [String] { try repository.keyEntries().map(\.name) }

  // MARK: - Opening

  @Test func rightPassphraseOpens() throws {
    let keys = try unlock("correct")
    #expect(keys.identities.map(\.recipient) == [identity.recipient])
    #expect(keys.recipients == [identity.recipient])
  }

  @Test(arguments: ["Correct", "correct ", "c", "correct\n"])
  func wrongPassphraseDoesNotOpen(_ text: String) throws {
    let error = try #require(storeError { try unlock(text) })
    #expect(error.code == .wrongKey)
    #expect(error.reason == "the passphrase does not open its key file")
    #expect(error.hint?.contains("--identity FILE") == true)
  }

  @Test func eachPassphraseOpens() throws {
    try save("second", "horse")
    try save("a.third_key-3", "staple")
    for text in ["correct", "horse", "staple"] {
      #expect(try unlock(text).identities.first?.recipient == identity.recipient)
    }
    #expect(storeError { try unlock("wrong") }?.reason.contains("any of its 3 key files") == true)
  }

  /// Writes key files with the passphrase `other`.
  private func store(_ names: some Sequence<String>) throws {
    let file = KeyFile(of: repository.id, identity: identity, recipients: [identity.recipient])
    let bytes = try file.encrypted(with: Self.passphrase("other"), workFactor: Self.workFactor)
    for name in names { try store(bytes, as: name) }
  }

  /// The key file of this host is tried first, then the others by name.
  @Test func keyOfThisHostIsTriedFirst() throws {
    try store(["b", "a", "z"])
    #expect(try unlock("other").keyName == "a")
    try store([Repository.hostKeyName])
    #expect(try unlock("other").keyName == Repository.hostKeyName)
  }

  /// At most 16 intact files are tried, and the error says so.
  @Test func seventeenthKeyIsNotTried() throws {
    // Damaged files are skipped, and do not count.
    for number in 0..<20 { try store([0], as: "a\(number)") }
    try store((10..<25).map { "b\($0)" })
    #expect(try unlock("correct").keyName == "first")
    try store(["b25", "b26"])
    let error = try #require(storeError { try unlock("correct") })
    #expect(error.code == .wrongKey)
    #expect(
      error.reason.hasPrefix(
        "the passphrase does not open the 16 key files that were tried; 2 more were not tried"))
    try store([Repository.hostKeyName])
    #expect(try unlock("other").keyName == Repository.hostKeyName)
  }

  @Test func seventeenthKeyIsNotAdded() throws {
    for number in 2...16 { try save("key-\(number)", "passphrase \(number)") }
    let error = try #require(storeError { try save("last", "horse") })
    #expect(error.code == .invalid && error.reason.contains("16 keys"))
    #expect(try unlock("passphrase 16").keyName == "key-16")
    try save("key-16", "changed", isReplacing: true)
    try repository.removeKey("key-2")
    try save("last", "horse")
    #expect(try unlock("horse").keyName == "last")
  }

  @Test func keyOfAnotherRepositoryDoesNotOpen() throws {
    let other = KeyFile(
      of: Blake2b.hash([1]), identity: identity, recipients: [identity.recipient])
    let passphrase = try Self.passphrase("other")
    try store(other.encrypted(with: passphrase, workFactor: Self.workFactor), as: "copied")
    #expect(try unlock("correct").identities.count == 1)
    let error = try #require(storeError { try unlock("other") })
    #expect(error.code == .wrongKey)
    #expect(error.reason.contains("'keys/copied.age' cannot be used: it belongs to another"))
  }

  /// Invalid key files, each with a part of the expected reason.
  private func damagedFiles() throws -> [(bytes: [UInt8], reason: String)] {
    let good = try load("first")
    let known = AgeFile.headCount(in: good.span)
    let header = try #require(known)
    let forRecipient = try AgeFile(for: [identity.recipient]).encrypt(Array("x".utf8).span)
    return [
      ([], "it does not begin like an age file"),
      (Array("garbage".utf8), "it does not begin like an age file"),
      (Array(good[..<40]), "truncated"),
      (Array(good[..<header]), "truncated"),
      (Array(good.dropLast()), "damaged"),
      ([UInt8](repeating: 0, count: KeyFile.maximumSize + 1), "exceeds the limit"),
      (forRecipient, "it is not encrypted with a passphrase"),
      (try sealed(#"{"format":"other"}"#), "no identity"),
      (try sealed(Self.text(identity, format: "other")), "it is not a key of sandboxctl"),
      (try sealed(Self.text(identity, version: 2)), "its version is not 1"),
      (try sealed(Self.text(identity, recipient: "age1")), "lacks a valid id"),
      (
        try sealed(Self.text(AgeIdentity(), recipient: "\(identity.recipient)")),
        "lacks a valid id"
      ),
      (try sealed(Self.text(identity) + "x"), "it is not JSON"),
    ]
  }

  private func sealed(_ text: String) throws -> [UInt8] {
    try AgeFile(for: Self.passphrase("correct"), workFactor: Self.workFactor)
      .encrypt(Array(text.utf8).span)
  }

  /// Returns the text of a key file.
  private static func text(
    _ identity: AgeIdentity, format: String = "sandboxctl-key", version: Int = 1,
    recipient: String? = nil
  ) -> String {
    let secret = identity.text().withBytes { bytes in
      String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
    }
    let id = String(repeating: "0", count: 64)
    let recipients = "[\"\(recipient ?? identity.recipient.description)\"]"
    return #"{"format":"\#(format)","version":\#(version),"repository":"\#(id)","#
      + #""identity":"\#(secret)","recipients":\#(recipients)}"#
  }

  /// A damaged file beside an intact one is skipped. If it is the only one, the error names it and
  /// its damage.
  @Test func damagedKeyIsSkippedAndNamed() throws {
    for (bytes, reason) in try damagedFiles() {
      try store(bytes, as: "0")
      #expect(try unlock("correct").identities.count == 1, "\(reason)")
      let alone = storage.copy()
      try alone.remove(KeyFile.path("first"))
      let error = try #require(storeError { try unlock("correct", in: alone) })
      #expect(error.code == .wrongKey && error.kind == .wrongKey, "\(reason)")
      #expect(
        error.reason.contains("'keys/0.age' cannot be used") && error.reason.contains(reason),
        "\(reason): \(error.reason)")
    }
  }

  @Test func filesWithOtherNamesAreNotKeys() throws {
    let good = try load("first")
    for name in [".hidden.age", "key", "key.age.tmp", "-a.age", "a b.age"] {
      try storage.save(
        good, as: KeyFile.directory.appending(ByteString(name)), by: RepositoryLayout.leases)
    }
    #expect(try names() == ["first"])
  }

  /// Without an intact key file, the passphrase is not requested.
  @Test func passphraseIsNotRequestedUnnecessarily() throws {
    for bytes in [nil, Array("garbage".utf8)] as [[UInt8]?] {
      if let bytes {
        try store(bytes, as: "first")
      } else {
        try storage.remove(KeyFile.path("first"))
        try storage.remove(KeyFile.directory)
      }
      let error = storeError {
        try RepositoryKeys.unlock(
          storage, repository: repository.id, recipients: [identity.recipient],
          source: .passphrase({ () throws(StoreError) -> AgePassphrase in
            Issue.record("the passphrase is requested")
            throw StoreError(.invalid, "use", subject: "x", reason: "y")
          }))
      }
      #expect(error?.code == .wrongKey)
      if bytes == nil { #expect(error?.reason == "all key files are gone") }
      #expect(error?.hint?.contains("recovery key") == true)
      if bytes == nil { try storage.makeDirectories([KeyFile.directory.name], in: .root) }
    }
  }

  /// The recipients in `repository.json` are not authenticated, so they must not be used.
  @Test func recipientsAreThoseOfTheKeyFile() throws {
    let intruder = AgeIdentity()
    let keys = try unlock("correct", recipients: [identity.recipient, intruder.recipient])
    #expect(keys.recipients == [identity.recipient])
  }

  /// Trusted signers are stored in the key file of the given passphrase.
  @Test func keyFileHasTheTrustedSigners() throws {
    let signer = SigningKey().signer
    let passphrase = try Self.passphrase("correct")
    var opened = try Repository.open(storage, key: .passphrase({ passphrase }))
    #expect(opened.keys?.signers == [:])
    opened.trust.trust(signer, name: "nas, \"first\"")
    #expect(try opened.saveSigners())
    #expect(try unlock("correct").signers == [signer: "nas, \"first\""])
    #expect(try !repository.saveSigners())
    // A new key file contains them as well.
    try opened.saveKey(
      "second", passphrase: Self.passphrase("horse"), isReplacing: false,
      workFactor: Self.workFactor)
    #expect(try unlock("horse").signers.keys.contains(signer))
  }

  /// A work factor above 20 is refused before any work is done.
  @Test func largeWorkFactorIsRefused() throws {
    let good = try load("first")
    let mark = Array(" \(Self.workFactor)\n".utf8)
    let start = try #require(
      good.indices.first { good[$0...].starts(with: mark) }, "the end of the stanza's line")
    for factor in [21, 63] {
      let (before, after) = (Array(good[..<start]), Array(good[(start + mark.count)...]))
      try store(before + Array(" \(factor)\n".utf8) + after, as: "first")
      let error = try #require(storeError { try unlock("correct") })
      #expect(error.code == .wrongKey)
      #expect(error.reason.contains("the work factor of scrypt is \(factor), more than 20"))
    }
  }

  // MARK: - Older identities

  /// A key file after a rotation: all identities are read, and the current one is the first.
  @Test func olderIdentitiesAreRead() throws {
    let older = [AgeIdentity(), AgeIdentity()]
    for count in 0...2 {
      let file = KeyFile(
        of: repository.id, identity: identity, older: Array(older.prefix(count)),
        recipients: [identity.recipient])
      try store(
        file.encrypted(with: Self.passphrase("correct"), workFactor: Self.workFactor), as: "first")
      let keys = try unlock("correct")
      #expect(keys.own?.recipient == identity.recipient)
      #expect(keys.older.map(\.recipient) == older.prefix(count).map(\.recipient))
      #expect(
        keys.identities.map(\.recipient)
          == [identity.recipient] + older.prefix(count).map(\.recipient))
    }
  }

  /// The members may be in any order, and an older identity must be a valid one.
  @Test func olderIdentitiesAreChecked() throws {
    let other = AgeIdentity()
    let (own, older) = (Self.secret(identity), Self.secret(other))
    let head =
      "{\"format\":\"sandboxctl-key\",\"version\":1,\"repository\":\"\(repository.id.hex)\","
    let tail = "\"recipients\":[\"\(identity.recipient)\"]}"
    try store(
      encrypted(head + "\"older\":[\"\(older)\"],\"identity\":\"\(own)\"," + tail), as: "first")
    #expect(try unlock("correct").older.map(\.recipient) == [other.recipient])
    for list in ["[1]", "[\"0\"]", "[\"\(older.dropLast())\"]", "[null]"] {
      try store(
        encrypted(head + "\"identity\":\"\(own)\",\"older\":\(list)," + tail), as: "first")
      let error = storeError { try unlock("correct") }
      #expect(error?.code == .wrongKey, "\(list)")
      #expect(error?.description.contains("AGE-SECRET") == false, "\(list)")
    }
  }

  private static func secret(_ identity: AgeIdentity) -> String {
    identity.text().withBytes { text in
      String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
    }
  }

  private func encrypted(_ text: String) throws -> [UInt8] {
    try AgeFile(for: Self.passphrase("correct"), workFactor: Self.workFactor)
      .encrypt(Array(text.utf8).span)
  }

  // MARK: - Identities

  @Test func identityOfARecipientOpens() throws {
    let other = AgeIdentity()
    let keys = try RepositoryKeys.unlock(
      storage, repository: repository.id, recipients: [identity.recipient],
      source: .identities([other, identity]))
    #expect(keys.identities.map(\.recipient) == [identity.recipient, other.recipient])
    for identities in [[other], []] {
      let error = storeError {
        try RepositoryKeys.unlock(
          storage, repository: repository.id, recipients: [identity.recipient],
          source: .identities(identities))
      }
      #expect(error?.code == .wrongKey)
      #expect(error?.hint?.contains(identity.recipient.description) == true)
    }
  }

  @Test func noKeyIsAnError() {
    let error = storeError {
      try RepositoryKeys.unlock(
        storage, repository: repository.id, recipients: [identity.recipient], source: .none)
    }
    #expect(error?.code == .keyRequired)
  }

  // MARK: - Changes

  @Test func keyFileHasTheDocumentedMembers() throws {
    let stored = try load("first")
    let plain = try AgeFile(opening: stored.span, with: Self.passphrase("correct"))
      .decrypt(stored.span)
    #expect(plain.last == UInt8(ascii: "\n"))
    let json = try JSON(parsing: plain)
    #expect(
      json.members?.map(\.name) == [
        "format", "version", "repository", "identity", "recipients", "signers", "created", "host",
        "user",
      ])
    #expect(json["format"] == "sandboxctl-key" && json["version"] == 1)
    #expect(json["repository"]?.string == repository.id.hex)
    #expect(json["identity"]?.string?.hasPrefix("AGE-SECRET-KEY-1") == true)
    #expect(json["recipients"] == [.string(identity.recipient.description)])
    #expect(json["created"]?.string.flatMap { Timestamp(rfc3339: $0) } != nil)
  }

  @Test func keysAreAddedChangedAndRemoved() throws {
    try save("second", "horse")
    #expect(try names() == ["first", "second"])
    try save("second", "staple", isReplacing: true)
    #expect(storeError { try unlock("horse") }?.code == .wrongKey)
    #expect(try unlock("staple").identities.count == 1)
    try repository.removeKey("first")
    #expect(try names() == ["second"])
    #expect(storeError { try unlock("correct") }?.code == .wrongKey)
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  /// A key file with an intact header may be damaged further on, so the key that opened the
  /// repository must not be removed.
  @Test func keyThatOpenedTheRepositoryIsNotRemoved() throws {
    try store(Array(load("first").dropLast(5)), as: "second")
    let passphrase = try Self.passphrase("correct")
    let opened = try Repository.open(storage, key: .passphrase({ passphrase }))
    let error = storeError { try opened.removeKey("first") }
    #expect(error?.reason == "it is the key whose passphrase was given")
    try opened.removeKey("second")
    let locked = try Repository.open(storage, key: .none)
    #expect(storeError { try locked.removeKey("first") }?.code == .keyRequired)
  }

  /// The identity of another recipient must not be copied into the store.
  @Test func identityOfAnotherRecipientIsNotStored() throws {
    let other = AgeIdentity()
    let storage = MemoryStorage()
    let repository = try Repository.create(
      in: storage, program: "test",
      keys: RepositoryKeys(
        identities: [identity], recipients: [identity.recipient, other.recipient]))
    let opened = try repository.unlocked(with: .identities([other]))
    let error = storeError {
      try opened.addKey("a", passphrase: Self.passphrase("a"))
    }
    #expect(error?.code == .keyRequired)
    #expect(try repository.keyEntries().isEmpty)
  }

  @Test func lastKeyIsNotRemoved() throws {
    // A damaged file opens nothing, so it does not count as a key.
    try store(Array("garbage".utf8), as: "second")
    let error = storeError { try repository.removeKey("first") }
    #expect(error?.code == .invalid)
    #expect(error?.reason == "it is the last key that a passphrase opens")
    try repository.removeKey("second")
    #expect(try names() == ["first"])
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  /// A key is not removed while another program removes objects, so that two programs cannot remove
  /// the last two keys.
  @Test func removalsExcludeEachOther() throws {
    try save("second", "horse")
    let lease = try Lease(storage)
    let right = try #require(try PruneLease(lease))
    #expect(storeError { try repository.removeKey("second") }?.code == .busy)
    right.release()
    lease.release()
    try repository.removeKey("second")
  }

  /// While one program writes a key, no other one can add the same key, or change or remove any
  /// key.
  @Test(arguments: [false, true]) func changesExcludeEachOther(_ isReplacing: Bool) throws {
    if isReplacing { try save("second", "horse") }
    let watched = WatchedStorage(storage)
    let passphrase = try Self.passphrase("correct")
    let opened = try Repository.open(watched, key: .passphrase({ passphrase }))
    let codes = Mutex<[StoreError.Code?]>([])
    watched.state.withLock { state in
      state.action = { event in
        guard event == "commit keys/second.age" else { return }
        let found = [
          storeError { try save("second", "other", isReplacing: isReplacing) },
          storeError { try save("first", "other", isReplacing: true) },
          storeError { try repository.removeKey(isReplacing ? "second" : "first") },
        ]
        codes.withLock { $0 += found.map { $0?.code } }
      }
    }
    try opened.saveKey(
      "second", passphrase: Self.passphrase("staple"), isReplacing: isReplacing,
      workFactor: Self.workFactor)
    #expect(codes.withLock { $0 } == [.busy, .busy, .busy])
    for text in ["correct", "staple"] { #expect(try unlock(text).identities.count == 1) }
    #expect(try names() == ["first", "second"])
    #expect(storeError { try unlock("other") }?.code == .wrongKey)
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  /// Saving signers must not make a replaced passphrase valid again.
  @Test func signersAreNotWrittenWithAnOldPassphrase() throws {
    let passphrase = try Self.passphrase("correct")
    let opened = try Repository.open(storage, key: .passphrase({ passphrase }))
    try save("first", "changed", isReplacing: true)
    let error = storeError { try opened.saveSigners() }
    #expect(error?.code == .invalid && error?.reason.contains("changed its passphrase") == true)
    #expect(storeError { try unlock("correct") }?.code == .wrongKey)
    #expect(try unlock("changed").identities.count == 1)
  }

  @Test func impossibleChangesAreRefused() throws {
    #expect(
      storeError { try save("first", "horse") }?.reason == "a key with this name already exists")
    #expect(
      storeError { try save("none", "horse", isReplacing: true) }?.reason
        == "there is no key with this name")
    #expect(
      storeError { try repository.removeKey("none") }?.reason == "there is no key with this name")
    let long = String(repeating: "a", count: 65)
    for name in ["", ".", "..", "-a", "a/b", "a b", "ä", "a\0", long] {
      #expect(storeError { try save(name, "horse") }?.code == .invalid, "\(name)")
    }
    try save(String(long.dropLast()), "horse")
    #expect(try unlock("correct").identities.count == 1)
  }

  @Test func plainRepositoryHasNoKeys() throws {
    let plain = try Repository.create(in: MemoryStorage(), program: "test")
    #expect(try plain.keyEntries().isEmpty)
    let error = storeError { try plain.addKey("a", passphrase: Self.passphrase("a")) }
    #expect(error?.code == .invalid)
    #expect(storeError { try plain.removeKey("a") }?.code == .invalid)
  }

  @Test func hostWithoutAnIdentityAddsNoKey() throws {
    let locked = try Repository.open(storage)
    let error = storeError { try locked.addKey("a", passphrase: Self.passphrase("a")) }
    #expect(error?.code == .keyRequired)
    #expect(try locked.keyEntries().count == 1)
  }

  /// Returns a copy of the repository, opened with the passphrase `correct`, whose calls fail from
  /// a number on.
  private func failingCopy(
    at number: Int
  ) throws -> (copy: MemoryStorage, watched: WatchedStorage, opened: Repository) {
    let copy = storage.copy()
    let watched = WatchedStorage(copy)
    let passphrase = try Self.passphrase("correct")
    let opened = try Repository.open(watched, key: .passphrase({ passphrase }))
    watched.fail(at: number, failsRepeatedly: true)
    return (copy, watched, opened)
  }

  /// Each call fails in turn: afterwards exactly one of the two passphrases opens the repository.
  @Test func interruptedChangeLeavesAKey() throws {
    let identities = [try #require(unlock("correct").identities.first)]
    for number in 1... {
      let (copy, watched, opened) = try failingCopy(at: number)
      let error = storeError {
        try opened.saveKey(
          "first", passphrase: Self.passphrase("horse"), isReplacing: true,
          workFactor: Self.workFactor)
      }
      let found = ["correct", "horse"].compactMap { try? unlock($0, in: copy) }
      #expect(found.count == 1, "call \(number)")
      #expect(found.first?.identities.map(\.recipient) == identities.map(\.recipient))
      if !watched.hasFailed {
        #expect(error == nil)
        break
      }
    }
  }

  /// Each call fails in turn while a key is added or removed: the other key still opens the
  /// repository.
  @Test(arguments: [false, true]) func interruptedAdditionAndRemovalLeaveAKey(
    isRemoval: Bool
  ) throws {
    if isRemoval { try save("second", "horse") }
    for number in 1... {
      let (copy, watched, opened) = try failingCopy(at: number)
      let error = storeError {
        if isRemoval { return try opened.removeKey("second") }
        try opened.saveKey(
          "second", passphrase: Self.passphrase("horse"), isReplacing: false,
          workFactor: Self.workFactor)
      }
      #expect(try unlock("correct", in: copy).identities.count == 1, "call \(number)")
      // The added or removed key either opens the repository or does not, but is never damaged.
      if let other = storeError({ try unlock("horse", in: copy) }) {
        #expect(other.code == .wrongKey && !other.reason.contains("cannot be used"), "\(other)")
      }
      if !watched.hasFailed {
        #expect(error == nil)
        #expect(((try? unlock("horse", in: copy)) != nil) == !isRemoval)
        #expect(try Repository.open(copy, key: .none).keyEntries().count == (isRemoval ? 1 : 2))
        break
      }
    }
  }

  // MARK: - Names

  @Test(arguments: [
    ("nas-2", "nas-2"), ("my.host_1", "my.host_1"), ("büro pc", "b--ro-pc"), ("", "host"),
    (".-_", "host"), ("-a", "a"),
    (String(repeating: "x", count: 70), String(repeating: "x", count: 64)),
  ])
  func hostHasASafeName(_ host: String, _ name: String) {
    #expect(KeyFile.name(ofHost: host) == name)
    #expect(KeyFile.isName(name))
    #expect(KeyFile.name(of: KeyFile.path(name).name) == name)
  }
}
