import Foundation
import SystemIO
import TestSupport
import Testing

/// Restores decide about the paths of a snapshot in the same way as the backup's policy.
struct RestoreRuleTests {
  private static let restore =
    "restore latest --to-device new --policy ./own.yaml --repo repo --no-snapshot"

  /// Makes a backup of a home directory by an overlay of rules and markers.
  private static func backedUp(_ policy: String, _ files: [String]) throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("overlay: [xdg]\nschema: 1\n\(policy)\n", at: "own.yaml")
    for path in files { try cli.directory.write(path, at: ByteString("old/" + path)) }
    for path: ByteString in ["new/.config", "new/.local/share", "new/.local/state"] {
      _ = try Directory.make(path: cli.directory.path(path))
    }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout xdg --root old --policy ./own.yaml --repo repo --quiet")
    return cli
  }

  private static func entries(_ cli: CommandLine, _ path: ByteString) throws -> Set<ByteString> {
    Set(try TreeRecord.all(in: cli.directory, path).keys).subtracting([""])
  }

  private static let removal = """
    rules:
      - {id: logs, in: [data], match: "logs/**", restore: remove}
      - {id: kept, in: [data], match: "logs/sub/kept/**", restore: restore}
      - {id: fetched, in: [data], match: "logs/fetched/**", class: cache}
    """
  private static let data: ByteString = "new/.local/share/editor"
  private static let dataFiles = [
    ".config/editor/settings", ".local/share/editor/text", ".local/share/editor/logs/a",
    ".local/share/editor/logs/sub/b", ".local/share/editor/logs/fetched/1",
    ".local/share/editor/logs/sub/kept/1",
  ]

  @Test func dataKeptInARemovedDirectoryIsRestored() throws {
    let cli = try Self.backedUp(Self.removal, Self.dataFiles)
    let report = try cli.json("\(Self.restore) --json")
    #expect((report["restored"] as? [String: Any])?["files"] as? Int == 3)
    #expect((report["omitted"] as? [String: Any])?["files"] as? Int == 2)
    let kept: Set<ByteString> = ["text", "logs", "logs/sub", "logs/sub/kept", "logs/sub/kept/1"]
    #expect(try Self.entries(cli, Self.data) == kept)
    let again = try cli.json("\(Self.restore) --json")
    #expect((again["restored"] as? [String: Any])?["files"] as? Int == 0)
    #expect(try Self.entries(cli, Self.data) == kept)
  }

  /// The rest of the directory is removed, whether or not the snapshot has data to keep.
  @Test func onlyTheRestOfARemovedDirectoryIsRemoved() throws {
    let cli = try Self.backedUp(Self.removal, Self.dataFiles)
    for path: ByteString in ["logs/a", "logs/other/c", "logs/sub/kept/2"] {
      try cli.directory.write("here", at: Self.data.appending(path))
    }
    _ = try cli.succeed(Self.restore)
    let kept: Set<ByteString> = ["logs", "logs/sub", "logs/sub/kept", "logs/sub/kept/2"]
    #expect(
      try Self.entries(cli, Self.data) == kept.union(["text", "logs/sub/kept/1"]))
    try cli.directory.write("here", at: Self.data.appending("logs/a"))
    _ = try cli.succeed("\(Self.restore) --delete")
    #expect(
      try Self.entries(cli, Self.data)
        == kept.subtracting(["logs/sub/kept/2"]).union(["text", "logs/sub/kept/1"]))
    let empty = try Self.backedUp(Self.removal, Array(Self.dataFiles.prefix(5)))
    try empty.directory.write("here", at: Self.data.appending("logs/sub/kept/2"))
    try empty.directory.write("here", at: Self.data.appending("logs/a"))
    _ = try empty.succeed(Self.restore)
    #expect(try Self.entries(empty, Self.data) == kept.union(["text"]))
    let bare = try Self.backedUp(Self.removal, Array(Self.dataFiles.prefix(4)))
    try bare.directory.write("here", at: Self.data.appending("logs/sub/b"))
    _ = try bare.succeed(Self.restore)
    #expect(try Self.entries(bare, Self.data) == ["text"])
  }

  /// Data of other classes is in the snapshot, and so is not deleted.
  @Test func dataOfOtherClassesInARemovedDirectoryStays() throws {
    let cli = try Self.backedUp(Self.removal, Self.dataFiles)
    _ = try cli.succeed(Self.restore)
    _ = try cli.succeed("\(Self.restore) --class preferences")
    #expect(try Self.entries(cli, Self.data).contains("logs/sub/kept/1"))
  }

  /// Rules with `sibling:` and tags are evaluated on the content of the snapshot.
  @Test func rulesAboutTheContentOfADirectoryApply() throws {
    let policy = """
      rules:
        - {id: built, in: [data], match: "**/out/**", when: {sibling: Recipe}, restore: skip}
        - {id: mixed, in: [data], match: "**/x/**", when: {sibling: src/}, restore: skip}
      markers:
        - {id: stale, in: [state], file: STALE, begins-with: "yes", inherit: directory,
           then: {restore: skip}}
      """
    let cli = try Self.backedUp(
      policy,
      [
        ".local/share/editor/made/Recipe", ".local/share/editor/made/out/1",
        ".local/share/editor/other/out/1", ".local/share/editor/mixed/src/1",
        ".local/share/editor/mixed/x/1", ".local/share/editor/odd/src",
        ".local/share/editor/odd/x/1", ".local/state/editor/old/a", ".local/state/editor/new/a",
      ])
    for (name, text) in ["old": "yes, it is", "new": "no"] {
      try cli.directory.write(text, at: ByteString("old/.local/state/editor/\(name)/STALE"))
    }
    _ = try cli.succeed("backup --layout xdg --root old --policy ./own.yaml --repo repo --quiet")
    let report = try cli.json("\(Self.restore) --json")
    #expect((report["omitted"] as? [String: Any])?["files"] as? Int == 4)
    #expect(
      try Self.entries(cli, Self.data) == [
        "made", "made/Recipe", "other", "other/out", "other/out/1", "mixed", "mixed/src",
        "mixed/src/1", "odd", "odd/src", "odd/x", "odd/x/1",
      ])
    #expect(
      try Self.entries(cli, "new/.local/state/editor") == ["new", "new/a", "new/STALE"])
  }

  /// A browser's cache is recognized by a file beside it, and restored as an empty directory.
  @Test func aCacheRecognizedByAFileBesideItIsRestoredEmpty() throws {
    let cli = try Self.backedUp(
      "rules: []",
      [".config/browser/Local State", ".config/browser/Cache/1", ".config/editor/Cache/1"])
    _ = try cli.succeed(Self.restore)
    #expect(try Self.entries(cli, "new/.config/browser") == ["Local State", "Cache"])
    #expect(try Self.entries(cli, "new/.config/editor") == ["Cache", "Cache/1"])
  }
}
