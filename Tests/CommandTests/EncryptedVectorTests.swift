import Foundation
import SystemIO
import TestSupport
import Testing

/// The test vector `Tests/Vectors/repository-v1-encrypted`: both readers restore the contents of
/// `repository-v1` from it, with the passphrase and with the identity.
struct EncryptedVectorTests {
  private static let directory = Shared.packageRoot
    .appendingPathComponent("Tests/Vectors/repository-v1-encrypted")
  private static let keys = ["--passphrase-file passphrase.txt", "--identity identity.txt"]

  /// Makes a copy of the vector as `repo`, with its keys.
  private static func copy() throws -> CommandLine {
    let cli = try CommandLine()
    for (name, target) in [("repository", "repo"), ("passphrase.txt", ""), ("identity.txt", "")] {
      let source = directory.appendingPathComponent(name).path
      let copied = try Program.run("cp", ["-r", source, cli.directory.string + "/" + target])
      #expect(copied.code == 0, "\(copied.errors)")
    }
    for name: ByteString in ["passphrase.txt", "identity.txt"] {
      try cli.directory.directory.setPermissions(0o600, of: name)
    }
    return cli
  }

  private func expect(_ lines: Set<Substring>, in name: String, of cli: CommandLine) throws {
    let found = try VectorTests.lines(cli, name)
    #expect(found.subtracting(lines).isEmpty && lines.subtracting(found).isEmpty, "\(name)")
    try cli.directory.directory.removeTree(ByteString(name))
  }

  @Test(.enabled(if: Host.userID == 0)) func bothReadersRestoreTheVector() throws {
    let cli = try Self.copy()
    let expected = try VectorTests.expected()
    for key in Self.keys {
      let listed = try cli.jsonLines("snapshots --json --repo repo \(key)")
      #expect(listed.count == 2)
      let id = try #require(listed.last?["id"] as? String)
      let shown = try cli.json("snapshots show \(id) --json --repo repo \(key)")
      let original = try #require((shown["original"] as? [String: Any])?["id"] as? String)
      let lines = try #require(expected[original])
      _ = try cli.succeed("restore \(id) --to ours --repo repo --quiet \(key)")
      try expect(lines, in: "ours", of: cli)
      for option in ["", "--no-age "] {
        let line = "\(option)\(key) repo restore \(id) --to theirs"
        let outcome = try Recover.run(cli, line.split(separator: " ").map(String.init))
        // A file system may not support a file's flags.
        let complaints = outcome.errors.split(separator: "\n").filter { !$0.contains("(flags)") }
        #expect(complaints.isEmpty && [0, 3].contains(outcome.code), "\(outcome.errors)")
        try expect(lines, in: "theirs", of: cli)
      }
    }
  }

  @Test func bothReadersFindNoDamage() throws {
    let cli = try Self.copy()
    for key in Self.keys {
      let checked = try cli.run("check --read-data --repo repo \(key)")
      #expect(checked.code == 0 && checked.output.hasSuffix("no damage found\n"), "\(checked)")
      for option in ["", "--no-age "] {
        try Recover.succeed(cli, "\(option)\(key) repo verify --read-data")
        try Recover.succeed(cli, "\(option)\(key) --without-index repo verify --read-data")
      }
    }
  }
}
