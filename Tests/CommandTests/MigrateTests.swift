import Foundation
import SystemIO
import TestSupport
import Testing

/// `migrate`: an app's data moves between forms of the app and between devices.
struct MigrateTests {
  private let cli: CommandLine
  private static let profile: ByteString = ".mozilla/firefox/x.default"
  private static let flatpak: ByteString = "home/.var/app/org.mozilla.firefox"
  private static let move = "migrate --from host:home --to flatpak:home --app firefox"

  /// A home directory with a profile of Firefox outside sandboxes.
  init() throws {
    cli = try CommandLine()
    let profile = ByteString("home").appending(Self.profile)
    try cli.directory.write("places", at: profile.appending("places.sqlite"))
    try cli.directory.write("lock", at: profile.appending(".parentlock"))
    try cli.directory.write(
      "[Profile0]\nIsRelative=1\nPath=x.default\n", at: "home/.mozilla/firefox/profiles.ini")
    try cli.directory.write("cache", at: "home/.cache/mozilla/firefox/x.default/a")
  }

  private func copied(_ name: ByteString) throws -> [UInt8] {
    try cli.directory.read(Self.flatpak.appending(Self.profile).appending(name))
  }

  @Test func aDebsProfileMovesIntoTheFlatpak() throws {
    let before = try TreeRecord.all(in: cli.directory, "home/.mozilla")
    let output = try cli.succeed(Self.move)
    #expect(output.contains("copied 45 B in 2 files"), "\(output)")
    #expect(output.contains("  skip  .mozilla/firefox/x.default/.parentlock"), "\(output)")
    #expect(try copied("places.sqlite") == Array("places".utf8))
    #expect(try TreeRecord.all(in: cli.directory, "home/.mozilla") == before)
    let again = try cli.succeed(Self.move)
    #expect(again.contains("nothing to copy") && again.contains("already there: 2 files"))
  }

  @Test func aFileThatCannotBeReadDoesNotCountAsCopied() throws {
    _ = try Program.run(
      "chmod", ["000", cli.directory.string + "/home/\(Self.profile)/places.sqlite"])
    defer { cli.open() }
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    let outcome = try cli.runAsNobody(Self.move + " --no-snapshot")
    #expect(outcome.code == 3)
    #expect(outcome.output.contains("copied 39 B in 1 file\nnot copied: 1 file"), "\(outcome)")
    #expect(outcome.errors.contains("places.sqlite: permission denied"), "\(outcome.errors)")
  }

  @Test func allAppsAreNotClaimedIfADirectoryCannotBeListed() throws {
    try cli.directory.write("x", at: "home/.config/tool/x")
    _ = try Directory.make(path: cli.directory.path("new"))
    _ = try Program.run("chmod", ["000", cli.directory.string + "/home/.config"])
    defer { cli.open() }
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    let outcome = try cli.runAsNobody("migrate --from home --to new --all --no-snapshot")
    #expect(outcome.code == 3, "\(outcome)")
    #expect(outcome.errors.contains("not copied: .config: permission denied"), "\(outcome.errors)")
    #expect(try cli.isThere("new/.mozilla/firefox/profiles.ini"))
  }

  @Test func aDryRunChangesNothing() throws {
    let before = try TreeRecord.all(in: cli.directory, "home")
    let line = try #require(
      try cli.jsonLines(Self.move + " --dry-run --json").first)
    #expect(line["files"] as? Int == 2)
    #expect((line["skipped"] as? [[String: Any]])?.count == 2)
    let place = try #require((line["places"] as? [[String: Any]])?.first)
    #expect(place["path"] as? String == ".mozilla")
    #expect(place["destination"] as? String == ".var/app/org.mozilla.firefox/.mozilla")
    #expect(line["installed"] as? Bool == false)
    #expect(try TreeRecord.all(in: cli.directory, "home") == before)
  }

  @Test func whatConflictsStaysAndIsReported() throws {
    try cli.directory.write(
      "mine", at: Self.flatpak.appending(Self.profile).appending("places.sqlite"))
    let outcome = try cli.run(Self.move + " --no-snapshot")
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(outcome.errors.contains("the target has another version"), "\(outcome.errors)")
    #expect(try copied("places.sqlite") == Array("mine".utf8))
  }

  @Test func theTargetsDataIsSavedFirst() throws {
    try cli.directory.write("mine", at: Self.flatpak.appending("data/mine"))
    let refused = try cli.run(Self.move + " --json")
    #expect(refused.code == 1)
    #expect(refused.errors.contains("no_repository_for_snapshot"), "\(refused.errors)")
    _ = try cli.succeed("init repo --plain --no-default")
    let report = try #require(try cli.jsonLines(Self.move + " --json --repo repo").first)
    let id = try #require(report["saved"] as? String)
    #expect(
      try cli.succeed("dump \(id):org.mozilla.firefox/data/mine --repo repo") == "mine")
    #expect(try copied("places.sqlite") == Array("places".utf8))
  }

  @Test func aRunningAppIsRefusedOnBothSides() throws {
    let holder = try OpenFileHolder(
      of: "\(cli.directory.string)/home/\(Self.profile)/places.sqlite")
    let source = try cli.run(Self.move)
    #expect(source.code == 1 && source.errors.contains("process \(holder.process) "))
    holder.end()
    try cli.directory.write("mine", at: Self.flatpak.appending("data/mine"))
    let other = try OpenFileHolder(
      of: "\(cli.directory.string)/\(Self.flatpak)/data/mine")
    defer { other.end() }
    let target = try cli.run(Self.move + " --no-snapshot")
    #expect(target.code == 1 && target.errors.contains("process \(other.process) "))
    #expect(target.errors.contains("--force"))
    _ = try cli.succeed(Self.move + " --no-snapshot --force")
    #expect(try copied("places.sqlite") == Array("places".utf8))
  }

  @Test func allAppsMoveToAnotherUsersHome() throws {
    for app in ["org.example.Notes", "org.example.Other"] {
      try cli.directory.write("note", at: ByteString("home/.var/app/\(app)/data/note"))
    }
    _ = try Directory.make(path: cli.directory.path("other"))
    let lines = try cli.jsonLines(
      "migrate --from flatpak:home --to flatpak:other --all --json")
    let summary = try #require(lines.last?["summary"] as? [String: Any])
    #expect(summary["apps"] as? Int == 2 && summary["failed"] as? Int == 0)
    #expect(
      try cli.directory.read("other/.var/app/org.example.Other/data/note") == Array("note".utf8))
  }

  /// The data records its version, and that of the installed Flatpak is in its metainfo.
  @Test func dataOfANewerVersionIsRefused() throws {
    let profile = ByteString("home").appending(Self.profile)
    try cli.directory.write(
      "[Compatibility]\nLastVersion=141.0_1/1\n", at: profile.appending("compatibility.ini"))
    let app: ByteString = "home/.local/share/flatpak/app/org.mozilla.firefox"
    let deployed = app.appending("x86_64/stable/abc123")
    try cli.directory.write(
      "[Application]\nname=org.mozilla.firefox\n", at: deployed.appending("metadata"))
    try cli.directory.write(
      "<component><releases><release version=\"140.0.2\"/></releases></component>",
      at: deployed.appending("files/share/metainfo/org.mozilla.firefox.metainfo.xml"))
    try Directory.open(path: cli.directory.path(app)).createLink("current", to: "x86_64/stable")
    try Directory.open(path: cli.directory.path(app.appending("x86_64/stable")))
      .createLink("active", to: "abc123")
    let refused = try cli.run(Self.move)
    #expect(refused.code == 1, "\(refused.errors)")
    #expect(refused.errors.contains("version 141.0") && refused.errors.contains("140.0.2"))
    _ = try cli.succeed(Self.move + " --allow-downgrade")
    #expect(try copied("places.sqlite") == Array("places".utf8))
  }

  @Test func dataWithoutAPlaceIsListedByItsSize() throws {
    for number in 1...24 {
      try cli.directory.write(
        String(repeating: "x", count: number * 100), at: ByteString("home/.other\(number)/a"))
    }
    let line = "migrate --from host:home --to flatpak:home --all --dry-run"
    let word = "  no place  "
    let short = try cli.succeed(line).split(separator: "\n").filter { $0.hasPrefix(word) }
    #expect(short.count == 21, "\(short)")
    #expect(short.last?.hasSuffix("(--list-all lists them)") == true, "\(short)")
    let all = try cli.succeed(line + " --list-all")
    for number in 1...24 { #expect(all.contains("\(word).other\(number)  "), "\(all)") }
    let unnamed = try cli.jsonLines(line + " --json").last?["summary"] as? [String: Any]
    #expect((unnamed?["unnamed"] as? [Any])?.count ?? 0 >= 24)
  }

  @Test func wrongArgumentsAreExplained() throws {
    for (line, text) in [
      ("migrate --from host:home --to flatpak:home", "no app given"),
      (Self.move + " --all", "cannot be used together"),
      ("migrate --from host:home --to host:home --app firefox", "the source and the target"),
      ("migrate --from host: --to host:home --app firefox", "names no directory"),
      (
        "migrate --from rpm:old --to flatpak:home --all",
        "'rpm:old' names neither a directory nor a snapshot"
      ),
      ("migrate --from nowhere --to flatpak:home --app firefox", "written as [LAYOUT:]ROOT"),
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 2 && outcome.errors.contains(text), "\(line): \(outcome.errors)")
    }
    _ = try Directory.make(path: cli.directory.path("plain"))
    let plain = try cli.run("migrate --from plain --to flatpak:home --app firefox")
    #expect(plain.code == 1 && plain.errors.contains("'host:plain' or 'flatpak:plain'"), "\(plain)")
    let unknown = try cli.run("migrate --from host:home --to flatpak:home --app nothing")
    #expect(unknown.code == 1 && unknown.errors.contains("no table names it"))
  }

  @Test func killedMigrationsAreFinishedOrRolledBack() throws {
    var random = Seeded.fresh()
    for number in 0..<40 {
      try cli.directory.write(
        "\(number)", at: ByteString("home/\(Self.profile)/storage/\(number)/file"))
    }
    let line = Self.move + " --quiet"
    var moments = Moments(4)
    try moments.measure { _ = try cli.succeed(line) }
    let after = try names()
    while let moment = moments.next(using: &random) {
      try cli.directory.directory.removeTree("home/.var")
      _ = try Directory.make(path: cli.directory.path("home/.var/app"))
      if try moments.run(cli, line, at: moment) { moments.count += 1 }
      _ = try cli.succeed("recover --root home/.var/app --layout flatpak --quiet")
      let found = try names()
      #expect(found.isEmpty || found == after, "killed after \(moment) s: \(found.count)")
      _ = try cli.succeed(line)
      #expect(try names() == after)
    }
  }

  /// The entries of the Flatpak's data.
  private func names() throws -> Set<ByteString> {
    Set(
      try TreeRecord.all(in: cli.directory, "home/.var/app").keys.filter {
        !$0.components.contains(".sandboxctl")
      })
  }
}

/// `migrate` between devices of one layout.
struct MigrateDeviceTests {
  private let cli: CommandLine
  private static let note: ByteString = "Documents/Notes/Recipes.md"

  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("sample other")
    _ = try cli.succeed("init repo --plain --no-default")
    let note = try path(of: "other")
    try Directory.open(path: note.parent).remove(note.lastComponent ?? "")
  }

  private func path(of device: String) throws -> ByteString {
    let data = try cli.containers(of: device).first {
      $0.path == "apps/org.example.notebook/data"
    }
    return try #require(data).realPath.appending(Self.note)
  }

  private func isPresent(in device: String) throws -> Bool {
    let note = try path(of: device)
    return try Directory.open(path: note.parent).statusIfPresent(note.lastComponent ?? "") != nil
  }

  @Test func anAppMovesToAnotherDevice() throws {
    let pairs = try cli.jsonLines(
      "migrate --from device --to other --app notebook --dry-run --json")
    #expect(pairs.contains { $0["fate"] as? String == "merge" })
    #expect(try !isPresent(in: "other"))
    let outcome = try cli.run("migrate --from device --to other --app notebook --repo repo")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try isPresent(in: "other"))
    // Another app shares its group; the suggested option is one of this command.
    #expect(outcome.errors.contains("'--all' includes it"), "\(outcome.errors)")
  }

  /// Text lists the twenty largest containers, and counts the others and the empty ones.
  @Test func containersAreListedByTheirSize() throws {
    for number in 1...24 {
      try cli.directory.write(
        String(repeating: "x", count: number * 100),
        at: ByteString("old/data/data/com.example.app\(number)/files/a"))
    }
    _ = try Directory.make(path: cli.directory.path("old/data/data/com.example.empty"))
    _ = try Directory.make(path: cli.directory.path("new/data/data/com.example.app1"))
    let line = "migrate --from android:old --to android:new --all --dry-run"
    let short = try cli.succeed(line).split(separator: "\n")
    #expect(short.count == 21 && !short.contains { $0.contains("com.example.app4/") }, "\(short)")
    #expect(short.last == "4 more, 1000 B; 1 empty (--list-all lists them)", "\(short)")
    #expect(try cli.succeed(line + " --list-all").split(separator: "\n").count == 25)
    #expect(try cli.jsonLines(line + " --json").count == 25)
  }

  @Test func aSnapshotMovesToAnotherDevice() throws {
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    _ = try cli.succeed("migrate --from latest --to other --app notebook --repo repo --quiet")
    #expect(try isPresent(in: "other"))
  }

  /// A copy that may be inconsistent is reported, as `restore` reports it.
  @Test func aDatabaseThatWasReadWithoutLocksIsReported() throws {
    let database = try path(of: "device").parent.appending("cards.db")
      .relative(to: cli.directory.path(""))
    try cli.directory.write(
      "SQLite format 3\0" + String(repeating: "page", count: 4000), at: database)
    let holder = try Holder(
      """
      import fcntl
      file = os.open("\(database)", os.O_RDWR)
      fcntl.lockf(file, fcntl.LOCK_EX, 512, 0x40000000)
      """, connects: false, in: cli)
    let stored = try cli.run("backup --root device --repo repo --quiet --sqlite-timeout 1s")
    holder.end()
    #expect(stored.code == 3, "\(stored.errors)")
    let outcome = try cli.run("migrate --from latest --to other --app notebook --repo repo --quiet")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(
      outcome.errors.contains("cards.db: it was in use during the backup"), "\(outcome.errors)")
  }

  /// The snapshot of a backup of iTunes has the containers of the device.
  @Test func anImportedBackupMovesToADevice() throws {
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    // A name that is not UTF-8 is not exported.
    let exported = try cli.run("export itunes phone --repo repo --quiet")
    try #require(exported.code == 3, "\(exported.errors)")
    _ = try cli.succeed("init second --plain --no-default")
    _ = try cli.succeed("import itunes phone --repo second --quiet")
    _ = try cli.succeed(
      "migrate --from latest --to simulator:other --app notebook --repo second --quiet")
    let contents = try ["other", "device"].map { device in
      try cli.directory.read(path(of: device).relative(to: cli.directory.path("")))
    }
    #expect(contents[0] == contents[1] && !contents[0].isEmpty)
  }

  /// One command imports a backup and restores it into a device.
  @Test func aBackupIsImportedIntoADevice() throws {
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    let exported = try cli.run("export itunes phone --repo repo --quiet")
    try #require(exported.code == 3, "\(exported.errors)")
    _ = try cli.succeed("init second --plain --no-default")
    let line = "import itunes phone --repo second"
    let alone = try cli.run(line + " --force")
    #expect(alone.code == 2 && alone.errors.contains("requires '--to-device'"), "\(alone.errors)")
    let other = try cli.run(line + " --to-device flatpak:home")
    #expect(other.code == 2 && other.errors.contains("sandboxctl migrate"), "\(other.errors)")
    let missing = try cli.run(line + " --to-device simulator:none")
    #expect(missing.code != 0 && missing.code != 3, "\(missing.errors)")
    // Nothing was imported before the device was found.
    #expect(try cli.run("snapshots show latest --repo second").code != 0)
    let outcome = try cli.run(line + " --to-device simulator:other --app notebook")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("restored "), "\(outcome.output)")
    let contents = try ["other", "device"].map { device in
      try cli.directory.read(path(of: device).relative(to: cli.directory.path("")))
    }
    #expect(contents[0] == contents[1] && !contents[0].isEmpty)
    _ = try cli.succeed("snapshots show latest --repo second")
  }

  @Test func otherLayoutsAreRefused() throws {
    let outcome = try cli.run("migrate --from device --to flatpak:home --all --repo repo")
    #expect(outcome.code == 1 && outcome.errors.contains("do not have the same containers"))
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    let snapshot = try cli.run("migrate --from latest --to snap:home --all --repo repo")
    #expect(snapshot.code == 1 && snapshot.errors.contains("the target's snap"))
  }
}
