import Foundation
import SystemIO
import TestSupport
import Testing

/// `import android` and `export android` on the command line.
struct ImportAndroidTests {
  private let cli: CommandLine

  private static let package = "com.example.notes"
  private static let manifest =
    "1\ncom.example.notes\n42\n34\ncom.android.vending\n0\n1\n3082ABCD\n"

  /// Makes a snapshot of a device with one app, whose times have whole seconds.
  init() throws {
    cli = try CommandLine()
    var random = Seeded(12)
    let data = ByteString("phone/data/data/" + Self.package)
    for (path, text) in [
      ("files/notes/1.txt", "a note"), ("databases/main.db", "rows"), ("files/empty", ""),
      ("shared_prefs/app.xml", "<map/>"), ("app_webview/Cookies", "cookies"),
      ("files/\(String(repeating: "long", count: 40))/caf\u{e9}", "long"),
    ] {
      try cli.directory.write(text, at: data.appending(ByteString(path)))
    }
    try cli.directory.write(random.bytes(700_000), at: data.appending("files/large"))
    try shell("chmod 660 \(data)/databases/main.db; find phone -exec touch -d @1600000000 {} +")
    for name in ["repo", "other"] { _ = try cli.succeed("init \(name) --plain --no-default") }
    _ = try cli.succeed("backup --layout android --root phone --repo repo --quiet")
  }

  private func shell(_ script: String) throws {
    let outcome = try Program.run(
      "/bin/bash", ["-ec", script], environment: ["LC_ALL": "C.UTF-8"], in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// Writes a file that only this user can read.
  private func write(_ text: String, to name: ByteString) throws {
    try cli.directory.write(text, at: name)
    try cli.directory.directory.setPermissions(0o600, of: name)
  }

  /// Returns the files of a snapshot by path, with their modes, owners, times and sizes.
  private func files(_ repository: String) throws -> [ByteString: String] {
    var found: [ByteString: String] = [:]
    let data = "latest:apps/\(Self.package)/data"
    for entry in try cli.jsonLines("ls \(data) --recursive --json --repo \(repository)")
    where entry["type"] as? String == "file" {
      let values = ["mode", "uid", "gid", "modified", "size"].map { "\(entry[$0] ?? "none")" }
      found[try #require(entry.path())] = values.joined(separator: " ")
    }
    return found
  }

  /// Checks that the last snapshots of both repositories have the same files with the same content.
  private func expectSameFiles() throws {
    let (wanted, found) = (try files("repo"), try files("other"))
    #expect(wanted == found)
    #expect(wanted.count == 7)
    for path in wanted.keys {
      let contents = try ["repo", "other"].map { repository in
        try cli.run(
          ["dump", "latest:\(path.utf8 ?? "")", "--repo", repository]
        ).standardOutput
      }
      #expect(contents[0] == contents[1], "\(path)")
    }
  }

  /// Makes a backup of the tree `in` with GNU tar, whose names begin with `apps`.
  private func makeBackup(_ file: String, _ options: String = "") throws {
    try shell(
      """
      (printf 'ANDROID BACKUP\\n5\\n0\\nnone\\n'; cd in; tar --format=pax -P -c \(options) *) > \(file)
      """)
  }

  @Test func anExportIsImportedAsItWas() throws {
    let line = try cli.run("export android notes.ab --repo repo")
    #expect(line.code == 0 && line.output.contains(" to 'notes.ab' ("), "\(line)")
    #expect(
      line.errors.contains("\(Self.package): Android does not restore this package"), "\(line)")
    let status = try Directory.open(path: cli.directory.path("")).status("notes.ab")
    #expect(status.permissions == 0o600)
    let imported = try cli.succeed("import android notes.ab --repo other")
    #expect(imported.contains(" of 1 Android package, "), "\(imported)")
    try expectSameFiles()
    #expect(try cli.succeed("dump latest:notes/files/notes/1.txt --repo other") == "a note")
    #expect(try cli.succeed("check --read-data --repo other").hasSuffix("no damage found\n"))
  }

  /// The snapshot of a backup is restored like a snapshot of the device.
  @Test func anImportIsRestoredIntoADevice() throws {
    _ = try cli.run("export android notes.ab --repo repo")
    _ = try cli.succeed("import android notes.ab --repo other --quiet")
    _ = try Directory.make(path: cli.directory.path("new/data/data"))
    _ = try cli.succeed(
      "restore latest:apps/\(Self.package)/data --to-device new --repo other --quiet")
    let data = ByteString("new/data/data/" + Self.package)
    #expect(try cli.directory.read(data.appending("databases/main.db")) == Array("rows".utf8))
    #expect(try cli.directory.read(data.appending("files/notes/1.txt")) == Array("a note".utf8))
  }

  @Test func anEncryptedBackupIsImportedWithItsPasswordOnly() throws {
    try write("the right password\n", to: "right")
    try write("another password\n", to: "wrong")
    let line = try cli.run("export android notes.ab --password-file right --repo repo")
    #expect(line.code == 0, "\(line.errors)")
    let start = String(decoding: try cli.directory.read("notes.ab").prefix(40), as: UTF8.self)
    #expect(start.hasPrefix("ANDROID BACKUP\n5\n1\nAES-256\n"), "\(start)")
    let none = try cli.run("import android notes.ab --repo other")
    #expect(none.code == 12)
    #expect(
      none.errors.contains("hint: add '--password-file FILE', '--password-command COMMAND'"),
      "\(none.errors)")
    let wrong = try cli.run("import android notes.ab --password-file wrong --json --repo other")
    #expect(wrong.code == 12 && wrong.errors.contains("wrong_key"), "\(wrong.errors)")
    #expect(try cli.snapshots("other").isEmpty)
    let right = try cli.json("import android notes.ab --password-file right --json --repo other")
    #expect(right["format"] as? String == "Android backup version 5, compressed, encrypted")
    #expect(right["packages"] as? Int == 1)
    try expectSameFiles()
    let piped = try cli.run(
      ["import", "android", "-", "--password-file", "right", "--repo", "other"],
      input: cli.directory.read("notes.ab"))
    #expect(piped.code == 0, "\(piped.errors)")
    try expectSameFiles()
    let script = #""$0" import android <(cat notes.ab) --password-file right --repo other"#
    let substituted = try cli.run([], under: ["bash", "-c", script])
    #expect(substituted.code == 0, "\(substituted.errors)")
    try expectSameFiles()
    try write("\n", to: "empty")
    let empty = try cli.run("export android empty.ab --password-file empty --repo repo")
    #expect(empty.code == 1 && empty.errors.contains("it is empty"), "\(empty.errors)")
    #expect(try !cli.isThere("empty.ab"))
  }

  /// A manifest is kept, and is written even if only a part of its package is exported.
  @Test func manifestsAreKept() throws {
    let root = ByteString("in/apps/" + Self.package)
    try cli.directory.write(Self.manifest, at: root.appending("_manifest"))
    try cli.directory.write("a note", at: root.appending("f/notes/1.txt"))
    try makeBackup("first.ab")
    _ = try cli.succeed("import android first.ab --repo other --quiet")
    let path = "apps/\(Self.package)/bundle/_manifest"
    #expect(try cli.succeed("dump latest:\(path) --repo other") == Self.manifest)
    let apps = try cli.json("snapshots show latest --json --repo other")["apps"]
    #expect((apps as? [[String: Any]])?.map { $0["build"] as? String } == ["42"])
    for (number, part) in ["latest", "latest:apps/\(Self.package)/data/files"].enumerated() {
      let outcome = try cli.run("export android \(part) \(number).ab --repo other")
      #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
      _ = try cli.succeed("import android \(number).ab --repo repo --quiet")
      #expect(try cli.succeed("dump latest:\(path) --repo repo") == Self.manifest)
      #expect(try cli.succeed("dump latest:notes/files/notes/1.txt --repo repo") == "a note")
    }
  }

  /// The snapshot has the time of the file, unless another time is given.
  @Test func theTimeIsThatOfTheFile() throws {
    _ = try cli.run("export android notes.ab --repo repo")
    try shell("touch -d 2020-02-03T04:05:06Z notes.ab")
    let own = try cli.json("import android notes.ab --json --repo other")
    #expect(own["time"] as? String == "2020-02-03T04:05:06Z")
    let given = try cli.json(
      "import android notes.ab --time 2021-01-01T00:00:00Z --json --repo other")
    #expect(given["time"] as? String == "2021-01-01T00:00:00Z")
    #expect(given["new_bytes"] as? Int == 0)
  }

  /// Names that lead out and truncation are reported, and the rest is imported.
  @Test func hostileAndTruncatedBackupsGiveWhatIsSound() throws {
    let root = ByteString("in/apps/" + Self.package)
    try cli.directory.write(Self.manifest, at: root.appending("_manifest"))
    try cli.directory.write("evil", at: root.appending("f/evil"))
    try cli.directory.write("a note", at: root.appending("f/note"))
    try cli.directory.write([UInt8](repeating: 7, count: 100_000), at: root.appending("f/zz"))
    try makeBackup("hostile.ab", "--transform 's,f/evil,f/../../evil,' --sort=name")
    let hostile = try cli.run("import android hostile.ab --repo other")
    #expect(hostile.code == 3)
    #expect(
      hostile.errors.contains("not imported: apps/\(Self.package)/f/../../evil: "),
      "\(hostile.errors)")
    #expect(try cli.succeed("dump latest:notes/files/note --repo other") == "a note")
    try shell("head -c 40000 hostile.ab > cut.ab")
    let cut = try cli.run("import android cut.ab --repo other")
    #expect(cut.code == 3 && cut.errors.contains("what precedes the damage"), "\(cut.errors)")
    #expect(
      cut.errors.contains("not imported: apps/\(Self.package)/data/files/zz: "), "\(cut.errors)")
    #expect(try cli.succeed("dump latest:notes/files/note --repo other") == "a note")
  }

  /// The checksum at the end cannot show where the damage is: all files are suspect.
  @Test func aWrongChecksumMakesAllFilesSuspect() throws {
    _ = try cli.run("export android latest notes.ab --repo repo")
    var bytes = try cli.directory.read("notes.ab")
    bytes[bytes.count - 1] ^= 1
    try cli.directory.write(bytes, at: "notes.ab")
    let outcome = try cli.run("import android notes.ab --repo other")
    #expect(outcome.code == 3, "\(outcome)")
    #expect(outcome.errors.contains("any of the imported files may be wrong"), "\(outcome)")
    #expect(!outcome.errors.contains("what precedes the damage"), "\(outcome)")
    let structured = try cli.run("import android notes.ab --json --repo other")
    #expect(try CommandLine.object(structured.output)["suspect"] as? Bool == true)
  }

  /// Links are reported, because Android's format has none.
  @Test func whatABackupCannotHoldIsNamed() throws {
    try shell("ln -s 1.txt phone/data/data/\(Self.package)/files/notes/link")
    _ = try cli.succeed("backup --layout android --root phone --repo repo --quiet")
    let outcome = try cli.run("export android notes.ab --repo repo")
    #expect(outcome.code == 3)
    #expect(
      outcome.errors.contains(
        "not exported: apps/\(Self.package)/data/files/notes/link: an Android backup has no "
          + "symbolic links"), "\(outcome.errors)")
  }

  @Test func wrongUseIsRefused() throws {
    try cli.directory.write("no backup", at: "text")
    try cli.directory.write("precious", at: "present.ab")
    for (line, code, reason) in [
      ("import android --repo other", Int32(2), "file"),
      ("import android nowhere.ab --repo other", 1, "nowhere.ab"),
      ("import android text --repo other", 1, "ANDROID BACKUP"),
      ("import android - --password --repo other", 2, "--password-file"),
      ("export android --repo repo", 2, "file"),
      ("export android latest present.ab --repo repo", 1, "exists"),
      ("export android - --json --repo repo", 2, "--json"),
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
    #expect(try cli.directory.read("present.ab") == Array("precious".utf8))
  }
}
