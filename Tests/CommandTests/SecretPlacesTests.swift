import Foundation
import SystemIO
import TestSupport
import Testing

/// The places in which a passphrase or an identity must not be.
struct SecretPlacesTests {
  private let keys: KeyFixture
  private var cli: CommandLine { keys.cli }
  private static let key = "--passphrase-file old"

  init() throws { keys = try KeyFixture() }

  /// Neither the repository nor a file of the host has the passphrase or the recovery key, and the
  /// signing key is only in its own file.
  @Test func filesOfTheHostHaveNoSecret() throws {
    try keys.backUp(Self.key)
    try keys.succeed("key trust --repo repo \(Self.key)")
    try keys.succeed("key add second --new-passphrase-file new --repo repo \(Self.key)")
    try keys.backUp("--passphrase-file new")
    try keys.expectRestored("--identity recovery.key")
    try keys.succeed("key remove second --repo repo \(Self.key)")
    try keys.succeed("key rotate --recovery-key next.key --repo repo \(Self.key)")
    try keys.succeed("key rewrap --repo repo \(Self.key)")
    let signing: ByteString = "home/.local/share/sandboxctl/signing"
    let own = signing.appending(try #require(try cli.names(in: signing).first))
    let text = String(decoding: try cli.directory.read(own), as: UTF8.self)
    // The second recovery key has both identities.
    let identities = String(decoding: try cli.directory.read("next.key"), as: UTF8.self)
      .split(separator: "\n").filter { $0.hasPrefix("AGE-SECRET-KEY-1") }.map(String.init)
    #expect(try identities.count == 2 && identities.contains(keys.recoveryKey()))
    let secrets =
      [KeyFixture.old, KeyFixture.new, text.trimmingCharacters(in: .newlines)] + identities
    var files = 0
    for root in ["home", "repo"] {
      let directory = cli.directory.string + "/" + root
      for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
        let path = "\(root)/\(name)"
        guard path != own.description,
          let bytes = FileManager.default.contents(atPath: "\(directory)/\(name)")
        else { continue }
        files += 1
        for (number, secret) in secrets.enumerated() {
          #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(path) has secret \(number)")
        }
      }
    }
    #expect(files > 10)
    try keys.expectNoSecrets()
  }

  /// A program that has read a passphrase leaves no core dump on a system on which others do.
  @Test func keyIsInNoCoreDump() throws {
    let script = """
      import os, resource, sys
      hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
      resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
      child = os.fork()
      if child == 0:
          # Swift's handler of signals would print a backtrace and let the program continue.
          os.environ["SWIFT_BACKTRACE"] = "enable=no"
          os.execvp(sys.argv[1], sys.argv[1:])
      status = os.waitpid(child, 0)[1]
      print(os.WIFSIGNALED(status) and os.WTERMSIG(status), os.WCOREDUMP(status))
      """
    let other = try Program.run(
      "python3", ["-c", script, "sh", "-c", "kill -ABRT $$"], in: cli.directory.url)
    guard other.output == "6 True\n" else {
      print("skipped: no program leaves a core dump here")
      return
    }
    let outcome = try cli.run(
      [
        "snapshots", "--repo", "repo", "--passphrase-command",
        "cat old; kill -ABRT $PPID; sleep 10",
      ],
      under: ["python3", "-c", script])
    #expect(outcome.output == "6 False\n", "\(outcome)")
  }
}
