import Foundation
import SystemIO
import TestSupport
import Testing

/// The test vector `Tests/Vectors/repository-v1`: both readers restore its contents, and name
/// broken objects in copies of it.
struct VectorTests {
  private static let directory = Shared.packageRoot
    .appendingPathComponent("Tests/Vectors/repository-v1")
  private static let lister = Shared.packageRoot
    .appendingPathComponent("Tests/Vectors/list-tree.py").path

  /// Makes a copy of the vector as `repo`.
  private static func copy() throws -> CommandLine {
    let cli = try CommandLine()
    let source = directory.appendingPathComponent("repository").path
    let copied = try Program.run("cp", ["-r", source, cli.directory.string + "/repo"])
    #expect(copied.code == 0, "\(copied.errors)")
    return cli
  }

  /// Returns the lines of each snapshot by ID, without those that only root can restore for other
  /// users.
  static func expected() throws -> [String: Set<Substring>] {
    let text = try String(
      contentsOf: directory.appendingPathComponent("expected.txt"), encoding: .utf8)
    var found: [String: Set<Substring>] = [:]
    for part in text.components(separatedBy: "\nsnapshot ").dropFirst() {
      let lines = part.split(separator: "\n")
      found[String(lines[0])] = Set(lines.dropFirst().filter(isRestored))
    }
    return found
  }

  private static func isRestored(_ line: Substring) -> Bool {
    Host.userID == 0 || !["block", "character"].contains { line.hasPrefix($0) }
  }

  /// Returns the lines of a restored tree.
  static func lines(_ cli: CommandLine, _ name: String) throws -> Set<Substring> {
    let outcome = try Program.run("python3", ["-B", lister, name], in: cli.directory.url)
    #expect(outcome.code == 0, "\(outcome.errors)")
    return Set(outcome.output.split(separator: "\n").filter(isRestored))
  }

  @Test(.enabled(if: Host.userID == 0)) func bothReadersRestoreTheVector() throws {
    let cli = try Self.copy()
    let expected = try Self.expected()
    #expect(expected.count == 2)
    for (id, lines) in expected {
      _ = try cli.succeed("restore \(id) --to ours-\(id) --repo repo")
      let outcome = try Recover.run(cli, ["repo", "restore", id, "--to", "theirs-\(id)"])
      // A file system may not support a file's flags.
      let complaints = outcome.errors.split(separator: "\n").filter { !$0.contains("(flags)") }
      #expect(complaints.isEmpty && [0, 3].contains(outcome.code), "\(outcome.errors)")
      for name in ["ours-\(id)", "theirs-\(id)"] {
        let found = try Self.lines(cli, name)
        #expect(found.subtracting(lines).isEmpty && lines.subtracting(found).isEmpty, "\(name)")
      }
    }
    try Recover.succeed(cli, "repo verify --read-data")
    try Recover.succeed(cli, "--without-index repo verify --read-data")
    for pack in try cli.packs() { try Archive.check(pack) }
  }

  /// Each object in turn is truncated, and has a byte flipped in its middle: it is named, and
  /// unaffected data is restored. `make test` tests a sample of the objects.
  @Test func everyBrokenObjectIsNamed() throws {
    let cli = try Self.copy()
    let base = cli.directory.string + "/repo/"
    let objects = try FileManager.default.subpathsOfDirectory(atPath: base).sorted().filter {
      let url = URL(fileURLWithPath: base + $0)
      return try url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true
        && $0 != "repository.json"
    }
    for path in Sampling.some(of: objects, 4, "objects") {
      let url = URL(fileURLWithPath: base + path)
      let good = try Data(contentsOf: url)
      var flipped = good
      flipped[good.count / 2] ^= 1
      for bad in [flipped, Data(good.prefix(good.count - 5))] {
        try bad.write(to: url)
        let outcome = try Recover.run(cli, ["repo", "verify", "--read-data"])
        let id = url.lastPathComponent.prefix(64)
        #expect(outcome.code == 13 && outcome.errors.contains(id), "\(path): \(outcome.errors)")
        let ours = try cli.run("restore latest --to back --repo repo")
        #expect([0, 13].contains(ours.code), "\(path): \(ours.errors)")
        #expect(!ours.errors.contains("Fatal"), "\(path): \(ours.errors)")
        if try cli.directory.directory.statusIfPresent("back") != nil {
          try cli.directory.directory.removeTree("back")
        }
      }
      try good.write(to: url)
    }
    try Recover.succeed(cli, "repo verify --read-data")
  }
}
