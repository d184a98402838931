package import ArchiveStore
import Codecs
import Foundation

/// The encryption of the repositories that tests create. The suites of the repository run over both
/// kinds: with `SANDBOXCTL_TEST_ENCRYPTED=1` everything is encrypted.
package enum TestEncryption {
  private static let identity =
    ProcessInfo.processInfo.environment["SANDBOXCTL_TEST_ENCRYPTED"].map { _ in AgeIdentity() }

  /// Whether the repositories of this run are encrypted.
  package static var isOn: Bool { identity != nil }

  /// The keys of all repositories; nil if they are not encrypted.
  package static let keys = identity.map {
    RepositoryKeys(identities: [$0], recipients: [$0.recipient])
  }

  /// The recipients of all repositories; none if they are not encrypted.
  package static var recipients: [String] { identity.map { ["\($0.recipient)"] } ?? [] }

  /// The suffix of packs, index objects and snapshots.
  package static var suffix: String { identity == nil ? "" : ".age" }

  /// The variables with which the program opens the repositories that it created.
  package static let environment: [String: String] = {
    guard let place = identityDirectory() else { return [:] }
    return ["SANDBOXCTL_IDENTITY_FILE": place + "/recovery.key"]
  }()

  /// The same for a program that the user nobody runs, which has its own copy of the file (others
  /// may not read it) and a place for the recipients that it knows.
  package static let environmentOfNobody: [String: String] = {
    guard let place = identityDirectory() else { return [:] }
    for name in ["", "/recovery.key"] {
      _ = chown(place + name, Unprivileged.user, Unprivileged.user)
    }
    return ["SANDBOXCTL_IDENTITY_FILE": place + "/recovery.key", "XDG_DATA_HOME": place]
  }()

  /// Returns a new directory with the identity as `recovery.key`, or nil if there is none.
  private static func identityDirectory() -> String? {
    guard let identity, let place = try? TemporaryDirectory.shared("identity") else { return nil }
    let text = identity.text().withBytes { text in Data(text.indices.map { text[$0] }) }
    _ = FileManager.default.createFile(
      atPath: place.string + "/recovery.key", contents: text,
      attributes: [.posixPermissions: 0o600])
    return place.string
  }

  /// Returns a command line that creates an encrypted repository instead of a plain one.
  package static func arguments(_ words: [String]) -> [String] {
    guard let identity, words.contains("init") else { return words }
    return words.flatMap { $0 == "--plain" ? ["--recipient", "\(identity.recipient)"] : [$0] }
  }

  /// Returns the stored bytes of an object with a content.
  package static func stored(_ content: [UInt8]) throws -> [UInt8] {
    guard let identity else { return content }
    return try AgeFile(for: [identity.recipient]).encrypt(content.span)
  }

  /// Returns the content of a pack, an index object or a snapshot from its stored bytes. In an
  /// encrypted repository the program `age` decrypts them, as a user would by hand.
  package static func content(of stored: [UInt8]) throws -> [UInt8] {
    guard let file = environment["SANDBOXCTL_IDENTITY_FILE"] else { return stored }
    let outcome = try Program.run("age", ["-d", "-i", file], input: stored)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
    return outcome.standardOutput
  }
}

extension Repository {
  /// Creates a repository of the kind that the run tests.
  package static func create(
    in storage: any Storage, program: String
  ) throws(StoreError) -> Repository {
    try create(in: storage, program: program, keys: TestEncryption.keys)
  }

  /// Opens a repository of the kind that the run tests.
  package static func open(_ storage: any Storage) throws(StoreError) -> Repository {
    try open(storage, key: TestEncryption.keys.map { .identities($0.identities) } ?? .none)
  }
}
