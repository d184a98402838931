import Foundation
import SystemIO
import TestSupport
import Testing

/// Data that a policy keeps in a directory that it restores empty or not at all.
struct KeptInCacheTests {
  private static let policy = """
    overlay: [xdg]
    schema: 1
    rules:
      - {id: drafts, in: [cache], match: "deep/drafts/**", class: user-data}
      - {id: notes, in: [cache], match: "deep/notes.db", class: user-data}
      - {id: databases, in: [cache], match: "typed/**", when: {type: database}, class: user-data}
      - {id: games, in: [data], match: "games/**", class: downloaded}
      - {id: saves, in: [data], match: "games/saves/**", class: user-data}
      - {id: log, in: [state], match: "history.db-wal", restore: skip}

    """
  private static let magic = "SQLite format 3\u{0} "
  private static let restore = "restore latest --to-device new --policy ./keep.yaml --repo repo"

  /// Makes a backup of a home directory, and a home directory without the app.
  private static func backedUp() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write(policy, at: "keep.yaml")
    for (path, text) in [
      (".config/editor/settings", "dark"), (".cache/editor/deep/drafts/sub/one", "draft"),
      (".cache/editor/deep/http/a", "fetched"), (".cache/editor/deep/notes.db", magic + "notes"),
      (".cache/editor/deep/notes.db-wal", "log"), (".cache/editor/typed/x.db", magic + "typed"),
      (".local/share/editor/games/pack/1", "game"), (".local/share/editor/games/saves/1", "saved"),
      (".local/state/editor/history.db", magic + "history"),
      (".local/state/editor/history.db-wal", "log of the history"),
    ] {
      try cli.directory.write(text, at: ByteString("old/" + path))
    }
    for path: ByteString in ["new/.config", "new/.local/share"] {
      _ = try Directory.make(path: cli.directory.path(path))
    }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(
      "backup --layout xdg --root old --policy ./keep.yaml --repo repo --quiet")
    return cli
  }

  private static func files(_ cli: CommandLine, _ path: ByteString) throws -> Set<ByteString> {
    let found = try TreeRecord.all(in: cli.directory, path)
    return Set(found.filter { $0.value.kind != .directory }.keys)
  }

  @Test func isRestoredIntoADevice() throws {
    let cli = try Self.backedUp()
    let report = try cli.json("\(Self.restore) --json")
    #expect((report["restored"] as? [String: Any])?["files"] as? Int == 8)
    #expect(
      try Self.files(cli, "new/.cache/editor") == [
        "deep/drafts/sub/one", "deep/notes.db", "deep/notes.db-wal", "typed/x.db",
      ])
    #expect(try Self.files(cli, "new/.local/share/editor") == ["games/saves/1"])
    #expect(try cli.directory.read("new/.cache/editor/deep/drafts/sub/one") == Array("draft".utf8))
    // A database is restored with its log, whatever a rule for the log alone says.
    #expect(try Self.files(cli, "new/.local/state/editor") == ["history.db", "history.db-wal"])
    let again = try cli.json("\(Self.restore) --json")
    #expect((again["restored"] as? [String: Any])?["files"] as? Int == 0)
  }

  /// Without the policy file of the backup it is not restored, which a note reports.
  @Test func isCountedIfThePolicyDoesNotRestoreIt() throws {
    let cli = try Self.backedUp()
    let line = "restore latest --to-device new --repo repo"
    for (name, files) in ["user-data": 4, "preferences": 0] {
      let plan = try cli.json("\(line) --class \(name) --dry-run --json")
      #expect((plan["omitted"] as? [String: Any])?["files"] as? Int == files, "\(name)")
    }
    for options in ["--dry-run", ""] {
      let outcome = try cli.run("\(line) \(options)")
      #expect(outcome.code == 0)
      #expect(
        outcome.errors.contains("the policy 'xdg' does not restore ")
          && outcome.errors.contains(" in 4 files of the snapshot: "), "\(outcome.errors)")
    }
    let omitted = try cli.json("\(line) --json")["omitted"] as? [String: Any]
    #expect(omitted?["files"] as? Int == 4)
    let path = "latest:apps/editor/cache/deep/drafts"
    _ = try cli.succeed("restore \(path) --to-device new --repo repo")
    #expect(try Self.files(cli, "new/.cache/editor") == ["deep/drafts/sub/one"])
    #expect(try Self.files(cli, "new/.local/share/editor") == ["games/saves/1"])
  }

  @Test func isRestoredByItsClass() throws {
    let cli = try Self.backedUp()
    _ = try cli.succeed("\(Self.restore) --class user-data")
    #expect(
      try Self.files(cli, "new/.cache/editor") == [
        "deep/drafts/sub/one", "deep/notes.db", "deep/notes.db-wal", "typed/x.db",
      ])
    #expect(try Self.files(cli, "new/.local/share/editor") == ["games/saves/1"])
  }

  /// A link in the place of its directory matters only if there is something to restore.
  @Test func aLinkInPlaceOfItsDirectoryIsReportedIfItIsRestored() throws {
    let cli = try Self.backedUp()
    let cache = try Directory.make(path: cli.directory.path("new/.cache/editor"))
    try cache.createLink("deep", to: "../../elsewhere")
    func errors(_ line: String, code: Int32) throws -> String {
      let outcome = try cli.run("\(line) --dry-run")
      #expect(outcome.code == code, "\(outcome.errors)")
      return outcome.errors
    }
    let found = try errors(Self.restore, code: 3).split(separator: "\n")
    let reports = found.filter { $0.contains("not restored: ") }
    #expect(reports.count == 1 && reports[0].contains(": apps/editor/cache/deep "), "\(found)")
    _ = try errors("\(Self.restore) --class preferences", code: 0)
    let other = try errors("restore latest --to-device new --repo repo", code: 0)
    #expect(!other.contains("not restored: ") && other.contains(" in 4 files of the snapshot: "))
  }

  /// So does one in the place of an excluded directory, which is restored empty.
  @Test func aLinkInPlaceOfACacheIsKept() throws {
    let cli = try Self.backedUp()
    try cli.directory.write("fetched", at: "old/.cache/editor/other/a")
    _ = try cli.succeed("backup --layout xdg --root old --policy ./keep.yaml --repo repo --quiet")
    let cache = try Directory.make(path: cli.directory.path("new/.cache/editor"))
    try cache.createLink("other", to: "../../elsewhere")
    #expect(try cli.run(Self.restore).code == 0)
    #expect(try cache.target(of: "other") == "../../elsewhere")
    try cache.remove("other")
    try cli.directory.write("text", at: "new/.cache/editor/other")
    let outcome = try cli.run(Self.restore)
    #expect(outcome.code == 3)
    #expect(outcome.errors.contains("apps/editor/cache/other"), "\(outcome.errors)")
  }

  /// A backup does not follow a link to all caches of an app, so a restore replaces nothing there.
  @Test func aLinkInPlaceOfAllCachesIsNotFollowed() throws {
    let cli = try Self.backedUp()
    let mine: ByteString = "new/big/deep/drafts/sub/one"
    try cli.directory.write("mine", at: mine)
    try Directory.make(path: cli.directory.path("new/.cache")).createLink("editor", to: "../big")
    let outcome = try cli.run("\(Self.restore) --delete")
    #expect(outcome.code == 3)
    let lines = outcome.errors.split(separator: "\n").filter { $0.contains("not restored: ") }
    #expect(lines.count == 1, "\(outcome.errors)")
    #expect(lines.first?.contains(": apps/editor/cache (") == true, "\(outcome.errors)")
    #expect(lines.first?.contains("it is a link to '../big' in a directory of caches") == true)
    #expect(try Self.files(cli, "new/big") == ["deep/drafts/sub/one"])
    #expect(try cli.directory.read(mine) == Array("mine".utf8))
    #expect(try Self.files(cli, "new/.local/share/editor") == ["games/saves/1"])
    // Caches alone are no reason for an error.
    #expect(try cli.run("restore latest --to-device new --repo repo").code == 0)
    let path = "latest:apps/editor/cache/deep/drafts"
    #expect(try cli.run("restore \(path) --to-device new --repo repo").code == 3)
  }

  /// Caches beside it are not deleted, even with `--delete-excluded`, and neither are those
  /// elsewhere.
  @Test(arguments: ["--delete", "--delete --delete-excluded"])
  func cachesBesideItAreNotDeleted(_ options: String) throws {
    let cli = try Self.backedUp()
    _ = try cli.succeed(Self.restore)
    for path in [
      ".cache/editor/deep/http/b", ".cache/editor/deep/c", ".local/share/editor/games/pack/2",
      ".cache/editor/deep/drafts/later", ".local/share/editor/games/saves/later",
    ] {
      try cli.directory.write("new", at: ByteString("new/" + path))
    }
    _ = try cli.succeed("\(Self.restore) \(options) --no-snapshot")
    #expect(
      try Self.files(cli, "new/.cache/editor") == [
        "deep/c", "deep/drafts/sub/one", "deep/http/b", "deep/notes.db", "deep/notes.db-wal",
        "typed/x.db",
      ])
    #expect(
      try Self.files(cli, "new/.local/share/editor") == ["games/pack/2", "games/saves/1"])
  }
}
