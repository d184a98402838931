import Foundation
import SystemIO
import TestSupport
import Testing

/// A program that imitates restic, borg and kopia, with states of a source, and a repository to
/// import into (Programs/fake_peer.py).
struct PeerFixture {
  let cli: CommandLine

  init(states: Int = 3) throws {
    cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
    try Self.install(in: cli, at: "peer")
    for number in 1...states { try makeState(number) }
  }

  /// Installs the program as an executable file.
  static func install(in cli: CommandLine, at path: ByteString) throws {
    let script = Shared.packageRoot.appendingPathComponent(
      "Tests/CommandTests/Programs/fake_peer.py")
    try cli.directory.write(Array(try Data(contentsOf: script)), at: path)
    let root = try Directory.open(path: cli.directory.path(path.dirname))
    try root.setPermissions(0o755, of: try #require(path.lastComponent))
  }

  /// Makes a state: a large file that does not change, a small one that does, and a link.
  private func makeState(_ number: Int) throws {
    let state = ByteString("states/\(number)/docs")
    try cli.directory.write(Seeded(7).randomBytes(200_000), at: state.appending("in/large"))
    try cli.directory.write("state \(number)", at: state.appending("note"))
    let docs = try Directory.open(path: cli.directory.path(state))
    try docs.createLink("link", to: "in/large")
    try docs.setPermissions(0o640, of: "note")
    let time = Timestamp(seconds: 1_600_000_000, nanoseconds: 123_456_000)
    for name: ByteString in ["note", "link", "in"] { try docs.setModified(time, of: name) }
  }

  /// Makes the program fail when it reads a state.
  func setFault(_ json: String, of number: Int) throws {
    try cli.directory.write(json, at: ByteString("states/\(number).json"))
  }

  func removeFault(of number: Int) throws {
    try FileManager.default.removeItem(atPath: cli.directory.string + "/states/\(number).json")
  }

  /// The command lines of the program so far.
  func calls() throws -> [[String]] {
    guard let text = try? cli.directory.read("calls") else { return [] }
    return try text.split(separator: UInt8(ascii: "\n")).map {
      try JSONDecoder().decode([String].self, from: Data($0))
    }
  }

  /// Imports by running the program.
  func run(_ kind: String, _ options: String = "") throws -> Program.Outcome {
    let words = "import \(kind) old --program ./peer --repo repo \(options)"
    return try cli.run(words)
  }

  /// Imports with JSON and returns its lines.
  func lines(
    _ kind: String, _ options: String = "", code: Int32 = 0
  ) throws -> [[String: Any]] {
    let outcome = try run(kind, options + " --json")
    #expect(outcome.code == code, "\(outcome.errors)")
    return try outcome.output.split(separator: "\n").map { try CommandLine.object($0) }
  }
}

extension [[String: Any]] {
  /// The last line of an import.
  var summary: [String: Any] { last?["summary"] as? [String: Any] ?? [:] }

  /// The outcomes of the snapshots.
  var outcomes: [String] { compactMap { $0["outcome"] as? String } }
}
