import Codecs
import Foundation
import SystemIO
import TestSupport

/// The built program in its own directory and home directory, as a new user runs it.
struct CommandLine {
  let directory: TemporaryDirectory

  /// Creates the directory; with `inMemory`, on a file system in memory, for trees of many files.
  init(inMemory: Bool = false) throws {
    try self.init(in: try TemporaryDirectory("command", inMemory: inMemory))
  }

  /// Uses a new directory.
  init(in directory: TemporaryDirectory) throws {
    self.directory = directory
    _ = try Directory.make(path: directory.path("home"))
  }

  /// The built program, next to the test bundle.
  static let program: String = {
    let tests = URL(fileURLWithPath: ProcessInfo.processInfo.arguments[0])
    var location = tests.deletingLastPathComponent()
    for bundle in Bundle.allBundles where bundle.bundlePath.hasSuffix(".xctest") {
      location = bundle.bundleURL.deletingLastPathComponent()
    }
    return location.appendingPathComponent("sandboxctl").path
  }()

  /// The complete environment of the program.
  var environment: [String: String] {
    let usual = [
      "HOME": directory.string + "/home", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "TZ": "UTC",
    ]
    return usual.merging(TestEncryption.environment) { $1 }
  }

  /// Runs the program in the directory, without the environment of this process.
  func run(
    _ arguments: [String], under wrapper: [String] = [], environment added: [String: String] = [:],
    input: [UInt8] = []
  ) throws -> Program.Outcome {
    let words = wrapper + [Self.program] + TestEncryption.arguments(arguments)
    return try Program.run(
      words[0], Array(words.dropFirst()), environment: environment.merging(added) { $1 },
      cleanEnvironment: true, in: directory.url, input: input, timeout: 1800)
  }

  /// Runs a command line written as in a shell, without quotes; `wrapper` is a program that runs
  /// it, for example `strace`.
  func run(_ line: String, under wrapper: [String] = []) throws -> Program.Outcome {
    try run(Self.words(line), under: wrapper)
  }

  /// Runs a command that must succeed and returns its output.
  func succeed(_ line: String) throws -> String {
    let outcome = try run(line)
    guard outcome.code == 0 else {
      throw Program.Failure(description: "'\(line)' ended with \(outcome.code): \(outcome.errors)")
    }
    return outcome.output
  }

  /// Runs a command that must succeed on one processor, and therefore in one thread, so that it
  /// stores entries in the order of their names.
  func succeedInOrder(_ line: String) throws {
    let outcome = try run(line, under: ["taskset", "-c", "0"])
    guard outcome.code == 0 else {
      throw Program.Failure(description: "'\(line)' ended with \(outcome.code): \(outcome.errors)")
    }
  }

  /// Runs the program as a user without privileges and without a configuration; as the current user
  /// unless that is root.
  func runAsNobody(_ line: String) throws -> Program.Outcome {
    guard Host.userID == 0 else { return try run(line) }
    let own = ["XDG_CONFIG_HOME": directory.string + "/config-of-nobody"]
    return try run(
      Self.words(line), under: ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
      environment: own.merging(TestEncryption.environmentOfNobody) { $1 })
  }

  private static func words(_ line: String) -> [String] {
    line.split(separator: " ").map(String.init)
  }
}

extension CommandLine {
  /// Returns the JSON object printed by a command that must succeed.
  func json(_ line: String) throws -> [String: Any] { try Self.object(try succeed(line)) }

  /// Returns the JSON objects, one a line, printed by a command that must succeed.
  func jsonLines(_ line: String) throws -> [[String: Any]] {
    try succeed(line).utf8.split(separator: UInt8(ascii: "\n")).map { try Self.object($0) }
  }

  /// Reads a JSON object.
  static func object(_ text: some StringProtocol) throws -> [String: Any] {
    try object(text.utf8)
  }

  private static func object(_ text: some Sequence<UInt8>) throws -> [String: Any] {
    let data = Data(text)
    guard let object = try JSONSerialization.jsonObject(with: data) as? [String: Any] else {
      throw Program.Failure(description: "no JSON object: \(String(decoding: data, as: UTF8.self))")
    }
    return object
  }
}

extension CommandLine {
  /// Writes a new identity to a file that only this user can read, and returns its recipient.
  func makeKey(_ name: ByteString = "key") throws -> AgeRecipient {
    let identity = AgeIdentity()
    let text = identity.text().withBytes { text in text.indices.map { text[$0] } }
    try directory.write(text, at: name)
    try directory.directory.setPermissions(0o600, of: name)
    return identity.recipient
  }
}

extension CommandLine {
  /// Returns the sorted paths of a repository's packs.
  func packs(
    _ repository: String = "repo", suffix: String = TestEncryption.suffix
  ) throws -> [String] {
    let directory = directory.string + "/" + repository + "/packs"
    return try FileManager.default.subpathsOfDirectory(atPath: directory)
      .filter { $0.hasSuffix(".tar.zst" + suffix) }.sorted().map { directory + "/" + $0 }
  }

  /// Returns the path of the file of a snapshot.
  func path(ofSnapshot id: String, in repository: String = "repo") -> String {
    "\(directory.string)/\(repository)/snapshots/\(id).json\(TestEncryption.suffix)"
  }

  /// Returns the IDs of a repository's snapshots, the oldest first.
  func snapshots(_ repository: String = "repo") throws -> [String] {
    try jsonLines("snapshots --json --repo \(repository)").compactMap { $0["id"] as? String }
  }
}
