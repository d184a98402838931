import Foundation
import SystemIO
import TestSupport
import Testing

/// `migrate` between two homes: one scenario for each family of forms.
struct MigrateFamilyTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    for name in ["old", "new"] {
      _ = try Directory.make(path: cli.directory.path(ByteString(name)))
    }
  }

  private func write(_ files: [(String, String)]) throws {
    for (path, text) in files { try cli.directory.write(text, at: ByteString(path)) }
  }

  private func text(_ path: ByteString) throws -> String {
    String(decoding: try cli.directory.read(path), as: UTF8.self)
  }

  /// The contents and links below a directory, without the program's own. The holes depend on the
  /// file system's blocks.
  private func contents(_ path: ByteString) throws -> [ByteString: TreeRecord] {
    try TreeRecord.all(in: cli.directory, path).filter { path, record in
      record.kind != .directory && !path.components.contains(".sandboxctl")
    }.mapValues { record in
      var record = record
      record.extents = []
      return record
    }
  }

  /// Makes a Flatpak that is installed for the user of a home.
  private func install(_ app: String, version: String, in home: String) throws {
    let place = ByteString("\(home)/.local/share/flatpak/app/\(app)")
    let deployed = place.appending("x86_64/stable/abc123")
    try cli.directory.write("[Application]\nname=\(app)\n", at: deployed.appending("metadata"))
    try cli.directory.write(
      "<component><releases><release version=\"\(version)\"/></releases></component>",
      at: deployed.appending(ByteString("files/share/metainfo/\(app).metainfo.xml")))
    try Directory.open(path: cli.directory.path(place)).createLink("current", to: "x86_64/stable")
    try Directory.open(path: cli.directory.path(place.appending("x86_64/stable")))
      .createLink("active", to: "abc123")
    _ = try Directory.make(path: cli.directory.path(ByteString("\(home)/.var/app")))
  }

  private static let profile = ".mozilla/firefox/x.default"

  /// Makes a profile of Firefox outside sandboxes, which `profiles.ini` names by its absolute path.
  private func makeProfile(in home: String) throws {
    let path = "\(home)/\(Self.profile)"
    try write([
      ("\(path)/places.sqlite", "places"), ("\(path)/logins.json", "{}"), ("\(path)/lock", "lock"),
      (
        "\(home)/.mozilla/firefox/profiles.ini",
        "[Profile0]\nName=x\nIsRelative=0\nPath=\(cli.directory.string)/\(path)\n"
      ),
    ])
  }

  @Test func flatpaksMoveToAnotherUser() throws {
    try write([
      ("old/.var/app/org.example.Notes/data/notes/a", "a"),
      ("old/.var/app/org.example.Notes/config/x", "x"),
      ("old/.var/app/org.example.Notes/.own/y", "y"),
      ("old/.var/app/org.example.Notes/cache/z", "z"),
    ])
    _ = try cli.succeed("migrate --from flatpak:old --to flatpak:new --app notes")
    var wanted = try contents("old/.var/app/org.example.Notes")
    wanted["cache/z"] = nil
    #expect(try contents("new/.var/app/org.example.Notes") == wanted)
  }

  @Test func snapsMoveToAnotherUser() throws {
    try write([
      ("old/snap/editor/42/notes.txt", "notes"), ("old/snap/editor/common/profile/x", "x"),
      ("old/snap/editor/41/notes.txt", "older"), ("new/snap/editor/43/own", "own"),
    ])
    for (home, revision) in [("old", "42"), ("new", "43")] {
      try Directory.open(path: cli.directory.path(ByteString("\(home)/snap/editor")))
        .createLink("current", to: ByteString(revision))
    }
    _ = try cli.succeed("migrate --from snap:old --to snap:new --app editor --no-snapshot")
    #expect(try text("new/snap/editor/43/notes.txt") == "notes")
    #expect(try text("new/snap/editor/43/own") == "own")
    #expect(try text("new/snap/editor/common/profile/x") == "x")
    let names = try Directory.open(path: cli.directory.path("new/snap/editor")).names()
    #expect(!names.contains("42") && !names.contains("41"))
  }

  /// The data that is moved back has its original bytes, times and modes.
  @Test func hostDataMovesToTheFlatpakAndBack() throws {
    try makeProfile(in: "home")
    var before = try contents("home/.mozilla")
    before["firefox/x.default/lock"] = nil
    _ = try cli.succeed("migrate --from host:home --to flatpak:home --app firefox")
    try Directory.open(path: cli.directory.path("home")).removeTree(".mozilla")
    _ = try cli.succeed("migrate --from flatpak:home --to host:home --app firefox")
    #expect(try contents("home/.mozilla") == before)
  }

  @Test func aDebsProfileIsRewrittenForTheFlatpak() throws {
    try makeProfile(in: "old")
    let output = try cli.succeed("migrate --from deb:old --to flatpak:new --app firefox")
    let path = "\(cli.directory.string)/new/\(Self.profile)"
    #expect(output.contains("  rewrite  ") && output.contains("-> \(path)"), "\(output)")
    let list: ByteString = "new/.var/app/org.mozilla.firefox/.mozilla/firefox/profiles.ini"
    #expect(try text(list).contains("Path=\(path)\n"))
  }

  /// dpkg's records have the version of a Debian package, on both sides.
  @Test func aDebsVersionIsCompared() throws {
    try makeProfile(in: "old")
    try install("org.mozilla.firefox", version: "127.0", in: "new")
    try write([
      (
        "var/lib/dpkg/status",
        "Package: firefox-esr\nStatus: install ok installed\nVersion: 128.5.0esr-1~deb12u1\n"
      )
    ])
    let line = "migrate --from deb:old --to flatpak:new --app firefox"
    let newer = try cli.run(line)
    #expect(newer.code == 1, "\(newer.errors)")
    #expect(newer.errors.contains("version 128.5.0,") && newer.errors.contains("127.0"))
    _ = try cli.succeed(line + " --allow-downgrade")
    try write([
      (
        "new/.var/app/org.mozilla.firefox/\(Self.profile)/compatibility.ini",
        "[Compatibility]\nLastVersion=141.0_1/1\n"
      )
    ])
    let back = try cli.run("migrate --from flatpak:new --to deb:home --app firefox")
    #expect(back.code == 1 && back.errors.contains("version 128.5.0"), "\(back.errors)")
  }

  /// The paths that a Flatpak may not use are named with the command that permits them, by its
  /// metadata and overrides; a value that still names the old location is also reported.
  @Test func aFlatpaksMissingPermissionsAreNamed() throws {
    let app = "org.chromium.Chromium"
    try install(app, version: "130.0", in: "new")
    let left = "\(cli.directory.string)/old/.config/chromium/Default/a"
    try write([
      (
        "new/.local/share/flatpak/app/\(app)/x86_64/stable/abc123/metadata",
        "[Application]\nname=\(app)\n\n[Context]\nfilesystems=/srv/media:ro;\n"
      ),
      (
        "new/.local/share/flatpak/overrides/\(app)", "[Context]\nfilesystems=/media/games;\n"
      ),
      (
        "old/.config/chromium/Default/Preferences",
        #"{"download":{"default_directory":"/run/media/me/disk"},"selectfile":{"last_directory":"#
          + #""/media/games/a"},"savefile":{"default_directory":"/run/user/1000/x"},"own":"\#(left)"}"#
      ),
    ])
    let line = "migrate --from host:old --to flatpak:new --app chromium --dry-run"
    let command = "flatpak override --user --filesystem=/run/media/me/disk \(app)"
    let outcome = try cli.run(line)
    #expect(outcome.code == 0 && outcome.errors.contains("'\(command)'"), "\(outcome.errors)")
    #expect(
      outcome.errors.contains("still names the old place: ")
        && outcome.errors.contains("Preferences, own: \(left)"), "\(outcome.errors)")
    let report = try #require(
      try cli.jsonLines(line + " --json").first { $0["override_command"] != nil })
    #expect(report["override_command"] as? String == command)
    let files = report["rewrites"] as? [[String: Any]] ?? []
    let values = files.first?["left"] as? [[String: Any]] ?? []
    #expect(values.map { $0["value"] as? String } == [left])
  }

  /// The new laptop: each form of apps, and a report of data without a place.
  @Test func aWholeHomeMovesToANewMachine() throws {
    try write([
      ("old/.var/app/org.example.Notes/data/a", "note"), ("old/snap/editor/common/x", "edit"),
      ("old/.config/tool/rc", "tool"), ("old/.local/share/tool/d", "data"),
      ("old/.thunderbird/profiles.ini", "[Profile0]\nIsRelative=1\nPath=a\n"),
      ("old/.oldapp/data", "12345"), ("old/.bashrc", "x"), ("old/.cache/tool/c", "cache"),
      ("old/.toolrc", "rc"), ("old/Documents/letter", "Dear A"),
    ])
    let line = "migrate --from old --to new --all"
    let before = try TreeRecord.all(in: cli.directory, "old")
    let preview = try cli.succeed(line + " --dry-run")
    #expect(preview.contains("  no place  Documents  6 B in 1 file: no app's data"), "\(preview)")
    #expect(!preview.contains(".bashrc") && !preview.contains("no place  ."), "\(preview)")
    #expect(preview.contains("would migrate 6 apps"), "\(preview)")
    #expect(try contents("new").isEmpty)
    let lines = try cli.jsonLines(line + " --json")
    let summary = try #require(lines.last?["summary"] as? [String: Any])
    #expect(summary["apps"] as? Int == 6 && summary["failed"] as? Int == 0)
    #expect(summary["bytes_without_place"] as? Int == 6)
    #expect(
      summary["install_commands"] as? [String]
        == ["flatpak install org.example.Notes", "snap install editor"])
    var wanted = try contents("old")
    for path: ByteString in ["Documents/letter", ".bashrc", ".cache/tool/c"] { wanted[path] = nil }
    #expect(try contents("new") == wanted)
    #expect(try TreeRecord.all(in: cli.directory, "old") == before)
    let again = try cli.succeed(line)
    #expect(again.contains("nothing to copy"), "\(again)")
  }

  @Test func aProgramsDirectoriesMoveToAnotherHome() throws {
    try write([("old/.config/tool/rc", "rc"), ("old/.config/Tool/other", "other")])
    _ = try cli.succeed("migrate --from host:old --to host:new --app tool")
    #expect(try contents("new").keys.sorted() == [".config/tool/rc"])
  }

  /// Apps move from a snapshot to another form of them, and no temporary files are left.
  @Test func aSnapshotOfAnotherLayoutIsMigrated() throws {
    try write([
      ("home/.var/app/org.example.Notes/data/Notes/a", "note"),
      ("home/.var/app/org.example.Other/data/b", "other"),
    ])
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --root home --layout flatpak --repo repo --quiet")
    // A killed migration has left its own temporary files.
    let abandoned: ByteString = "sandboxctl-migrate-0123456789abcdef"
    try cli.directory.write("secret", at: ByteString("tmp").appending(abandoned).appending("a/b"))
    try Directory.open(path: cli.directory.path("tmp")).setModified(
      Timestamp(seconds: 1_700_000_000), of: abandoned)
    let line = "migrate --from latest --to host:new --app notes --repo repo"
    func migrate(_ line: String) throws -> String {
      let outcome = try cli.run(
        line.split(separator: " ").map(String.init),
        environment: ["TMPDIR": "\(cli.directory.path("tmp"))"])
      #expect(outcome.code == 0, "\(outcome.errors)")
      let isEmpty = try Directory.open(path: cli.directory.path("tmp")).isEmpty()
      #expect(isEmpty)
      return outcome.output
    }
    #expect(try migrate(line + " --dry-run").contains("would copy"))
    #expect(try contents("new").isEmpty)
    _ = try migrate(line)
    #expect(try text("new/.local/share/Notes/a") == "note")
    #expect(try contents("new").keys.allSatisfy { !$0.description.contains("Other") })
  }
}
