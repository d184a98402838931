package import ArchiveStore
import Codecs
import Foundation

/// The encryption of the repositories that tests create. The suites of the repository run over both
/// kinds: with `SANDBOXCTL_TEST_ENCRYPTED=1` everything is encrypted.
package enum TestEncryption {
  private static let identity =
    ProcessInfo.processInfo.environment["SANDBOXCTL_TEST_ENCRYPTED"].map { _ in AgeIdentity() }

  /// The keys of all repositories; nil if they are not encrypted.
  package static let keys = identity.map {
    RepositoryKeys(identities: [$0], recipients: [$0.recipient])
  }

  /// The suffix of packs, index objects and snapshots.
  package static var suffix: String { identity == nil ? "" : ".age" }

  /// The variables with which the program opens the repositories that it created.
  package static let environment: [String: String] = {
    guard let identity else { return [:] }
    let path = NSTemporaryDirectory() + "/identity-" + UUID().uuidString
    let text = identity.text().withBytes { text in Data(text.indices.map { text[$0] }) }
    _ = FileManager.default.createFile(
      atPath: path, contents: text, attributes: [.posixPermissions: 0o600])
    return ["SANDBOXCTL_IDENTITY_FILE": path]
  }()

  /// Returns a command line that creates an encrypted repository instead of a plain one.
  package static func arguments(_ words: [String]) -> [String] {
    guard let identity, words.contains("init") else { return words }
    return words.flatMap { $0 == "--plain" ? ["--recipient", "\(identity.recipient)"] : [$0] }
  }
}

extension Repository {
  /// Creates a repository as the run tests it.
  package static func create(
    in storage: any Storage, program: String
  ) throws(StoreError) -> Repository {
    try create(in: storage, program: program, keys: TestEncryption.keys)
  }

  /// Opens a repository as the run tests it.
  package static func open(_ storage: any Storage) throws(StoreError) -> Repository {
    try open(storage, key: TestEncryption.keys.map { .identities($0.identities) } ?? .none)
  }
}
