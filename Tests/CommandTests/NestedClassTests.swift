import Foundation
import SystemIO
import TestSupport
import Testing

/// Data of one class within another: after the inner one the outer class applies again.
struct NestedClassTests {
  private static let policy = """
    policy: nested
    schema: 1
    extends: [common]
    rules:
      - {id: all, in: [folder], match: "**", class: user-data}
      - {id: caches, in: [folder], match: "Caches/**", class: cache, backup: always}

    """

  /// Makes a backup of caches followed by documents, and of a file with the names `Caches.d/link`
  /// and `Caches/link`.
  private static func backedUp() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write(policy, at: "nested.yaml")
    for (name, text) in [("Caches/a", "12"), ("Documents/b", "345"), ("Caches.d/link", "6789")] {
      try cli.directory.write(text, at: ByteString("tree/\(name)"))
    }
    let directory = try Directory.open(path: cli.directory.path("tree/Caches.d"))
    let caches = try Directory.open(path: cli.directory.path("tree/Caches"))
    try caches.createHardLink("link", to: "link", in: directory)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(
      "backup --layout folder --root tree --repo repo --policy nested.yaml --quiet")
    return cli
  }

  @Test func pathHasTheNearestClassAboveIt() throws {
    let cli = try Self.backedUp()
    let shown = try cli.json("snapshots show latest --json --repo repo")
    let classes = try #require(shown["classes"] as? [[String: String]])
    #expect(
      classes == [
        ["path": "folders/tree", "class": "user-data"],
        ["path": "folders/tree/Caches", "class": "cache"],
      ])
    for (name, wanted) in [
      ("cache", ["Caches/a", "Caches/link"]), ("user-data", ["Caches.d/link", "Documents/b"]),
    ] {
      let line = "restore latest:folders/tree --class \(name) --to \(name) --repo repo"
      _ = try cli.succeed(line)
      let back = try OddTree.listing(cli.directory, ByteString(name)).keys
      let files = back.filter { ["a", "b", "link"].contains($0.lastComponent) }.sorted()
      #expect(files.map { "\($0)" } == wanted)
    }
  }

  /// A hard-linked file has the class of its first name in the tree, in all counts.
  @Test func hardLinkedFileHasOneClass() throws {
    let cli = try Self.backedUp()
    let shown = try cli.json("snapshots show latest --json --repo repo")
    let totals = try #require(shown["totals"] as? [String: Any])
    #expect(totals["files"] as? Int == 4 && totals["bytes"] as? Int == 9)
    let rows = try #require(
      try cli.json("stats latest --json --repo repo")["rows"] as? [[String: Any]])
    let classes = try #require(totals["classes"] as? [[String: Any]])
    for (list, name) in [(classes, "name"), (rows, "class")] {
      let bytes = list.map { "\($0[name] ?? "") \($0["files"] ?? "") \($0["bytes"] ?? "")" }
      #expect(bytes == ["cache 2 6", "user-data 2 3"])
    }
  }
}
