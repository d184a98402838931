import Foundation
import SystemIO
import TestSupport
import Testing

/// Each command line in sandboxctl-repository(5) works as described.
struct RepositoryPageTests {
  private static let page = Shared.packageRoot.appendingPathComponent("Man/sandboxctl-repository.5")

  /// Returns all displays of the page by the names in the comments before them.
  private static func displays() throws -> [String: String] {
    let lines = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n")
    var (found, name, text): ([String: String], String?, [String]?) = ([:], nil, nil)
    for line in lines {
      if line.hasPrefix(".Bd") {
        #expect(name != nil, "a display has no name")
        text = []
      } else if line == ".Ed" {
        if let name { found[name] = text?.joined(separator: "\n") }
        (name, text) = (nil, nil)
      } else if let marked = line.dropPrefix(".\\\" tried: ") {
        name = marked
      } else {
        // The roff escapes used in the page.
        text?.append(
          line.replacingOccurrences(of: "\\-", with: "-").replacingOccurrences(
            of: "\\e", with: "\\"))
      }
    }
    return found
  }

  private let cli: CommandLine
  private let displays: [String: String]

  init() throws {
    displays = try Self.displays()
    cli = try CommandLine()
    var random = Seeded(31)
    try cli.directory.write("first", at: "tree/note")
    try cli.directory.write(random.bytes(100), at: "tree/folder/a name")
    try cli.directory.write(random.bytes(9_000_000), at: "tree/large")
    let tree = try Directory.open(path: cli.directory.path("tree"))
    try tree.attributes(of: "note").set("user.long", to: random.bytes(600))
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try cli.directory.write("second", at: "tree/note")
    let large = try tree.fileForWriting("large")
    try large.seek(to: 5_000_000)
    try large.write(random.bytes(10))
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    _ = try Directory.make(path: cli.directory.path("out"))
  }

  /// Runs a display of the page in the repository's directory, as the page says.
  private func shell(_ name: String) throws -> Program.Outcome {
    let program = URL(fileURLWithPath: CommandLine.program).deletingLastPathComponent().path
    let environment = [
      "OUT": cli.directory.string + "/out", "COPY": cli.directory.string + "/copy",
      "FILE": "folders/tree/large", "PATH": program + ":/usr/bin:/bin",
    ]
    return try Program.run(
      "sh", ["-eu", "-c", try #require(displays[name])],
      environment: cli.environment.merging(environment) { $1 }, cleanEnvironment: true,
      in: cli.directory.url.appendingPathComponent("repo"))
  }

  private func succeed(_ name: String) throws -> String {
    let outcome = try shell(name)
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(name): \(outcome.errors)")
    return outcome.output
  }

  @Test func everyDisplayIsTested() {
    let tried = [
      "whole", "packs", "list", "snapshots", "extract", "recover", "copy", "index", "settings",
    ]
    #expect(displays.keys.sorted() == tried.sorted())
  }

  @Test func integrityCommandsFindDamage() throws {
    #expect(try succeed("whole").isEmpty)
    #expect(try succeed("packs").isEmpty)
    let snapshots = try succeed("snapshots")
    #expect(snapshots.components(separatedBy: "\"sandboxctl-snapshot\"").count == 3)
    let members = try succeed("list")
    for member in [
      " folders/tree/note\n", " .sandboxctl/parts/folders/tree/large/0000000000000000\n",
      " .sandboxctl/trees/", " .sandboxctl/values/", " .sandboxctl/contents\n",
    ] {
      #expect(members.contains(member), "\(member)")
    }
    let pack = try cli.largestPack()
    try cli.flip(byte: 100_000, of: pack)
    let name = URL(fileURLWithPath: pack).lastPathComponent
    #expect(try succeed("whole") == "damaged: packs/\(name.prefix(2))/\(name)\n")
    let damage = try shell("packs")
    #expect(damage.code != 0 && damage.errors.contains("rror"), "\(damage.errors)")
  }

  @Test func filesAreRestored() throws {
    _ = try succeed("extract")
    for name: ByteString in ["note", "folder/a name", "large"] {
      let back = try cli.directory.read(ByteString("out/folders/tree").appending(name))
      #expect(back == (try cli.directory.read(ByteString("tree").appending(name))), "\(name)")
    }
    let reported = try succeed("recover")
    #expect(reported.contains("all data read: no damage found"), "\(reported)")
    #expect(try cli.directory.read("out/one") == cli.directory.read("tree/large"))
    try ChangeDetector.expectSame(cli.directory, "tree", "out/all/folders/tree")
  }

  @Test func copyIsARepository() throws {
    _ = try succeed("copy")
    #expect(try cli.names(in: "copy/leases").isEmpty)
    _ = try succeed("index")
    #expect(try cli.names(in: "copy/index").count == 1)
    for gone in ["README.txt", "recover.py"] { try remove("copy/\(gone)") }
    for empty in ["keys", "pins", "condemned", "leases"] {
      try cli.directory.directory.directory("copy").removeTree(ByteString(empty))
    }
    _ = try cli.succeed("restore latest:folders/tree --to back --repo copy")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    // A snapshot's file concerns only that backup.
    let ids = try cli.snapshots("copy")
    try remove("copy/snapshots/\(ids[1]).json")
    _ = try cli.succeed("restore latest:folders/tree/note --to note --repo copy")
    #expect(try cli.directory.read("note") == Array("first".utf8))
  }

  @Test func repositoryJSONCanBeMadeAgain() throws {
    let settings = try cli.directory.read("repo/repository.json")
    try cli.directory.write("{", at: "repo/repository.json")
    let refused = try cli.run("snapshots --repo repo")
    #expect(refused.code == 13 && refused.errors.contains("'repository.json'"))
    #expect(refused.errors.contains("sandboxctl-repository(5)"), "\(refused.errors)")
    let made = try shell("settings")
    #expect(made.code == 0, "\(made.errors)")
    #expect(try cli.directory.read("repo/repository.json") == settings)
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  private func remove(_ path: String) throws {
    try FileManager.default.removeItem(atPath: cli.directory.string + "/" + path)
  }
}

extension String {
  /// Returns the text after a prefix, or nil if the text begins differently.
  fileprivate func dropPrefix(_ beginning: String) -> String? {
    hasPrefix(beginning) ? String(dropFirst(beginning.count)) : nil
  }
}
