import Foundation
import SystemIO
import TestSupport
import Testing

/// `import itunes` and `export itunes` on the command line.
struct ImportITunesTests {
  private let cli: CommandLine

  /// Makes a snapshot of a tree whose times have whole seconds, as in a backup.
  init() throws {
    cli = try CommandLine()
    var random = Seeded(11)
    try cli.directory.write(random.bytes(300_000), at: "tree/deep/er/large")
    try cli.directory.write("text", at: "tree/caf\u{e9}.txt")
    try cli.directory.write([], at: "tree/empty")
    try cli.directory.write("secret", at: "tree/private/note")
    try shell(
      """
      ln -s ../elsewhere tree/deep/link; chmod 700 tree/private; chmod 640 tree/private/note
      setfattr -n user.note -v value tree/empty; mkdir tree/none
      find tree -exec touch -h -d 2021-03-04T05:06:07Z {} +
      """)
    for name in ["repo", "other"] { _ = try cli.succeed("init \(name) --plain --no-default") }
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
  }

  private func shell(_ script: String) throws {
    let outcome = try Program.run(
      "/bin/bash", ["-ec", script], environment: ["LC_ALL": "C.UTF-8"], in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  private func tree(_ repository: String, of snapshot: String = "latest") throws -> String {
    try #require(
      try cli.json("snapshots show \(snapshot) --json --repo \(repository)")["tree"] as? String)
  }

  /// Writes a file that only this user can read.
  private func write(_ text: String, to name: ByteString) throws {
    try cli.directory.write(text, at: name)
    try cli.directory.directory.setPermissions(0o600, of: name)
  }

  private func encrypt(_ directory: String, _ password: String) throws {
    try python("encrypt_itunes.py", [directory, password])
  }

  private func python(_ name: String, _ arguments: [String]) throws {
    let script = Shared.packageRoot.appendingPathComponent("Tests/CommandTests/Programs/" + name)
      .path
    let outcome = try Program.run(
      "python3", ["-B", script] + arguments, in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// Returns the path of a content in a backup.
  private func content(_ domain: String, _ path: String) throws -> String {
    let outcome = try Program.run("sha1sum", [], input: Array("\(domain)-\(path)".utf8))
    let name = String(outcome.output.prefix(40))
    return "phone/\(name.prefix(2))/\(name)"
  }

  /// The tree of a snapshot contains the paths, bytes, modes, owners, times and attributes.
  @Test func anExportIsImportedAsItWas() throws {
    let line = try cli.succeed("export itunes phone --repo repo")
    #expect(line.contains(" to 'phone' ("), "\(line)")
    let status = try Directory.open(path: cli.directory.path("")).status("phone")
    #expect(status.permissions == 0o700)
    _ = try cli.succeed("import itunes phone --repo other --quiet")
    #expect(try tree("other") == tree("repo"))
    #expect(try cli.succeed("check --read-data --repo other").hasSuffix("no damage found\n"))
  }

  /// The snapshot has the device, the apps and the time of the backup.
  @Test func theSnapshotIsOfTheDevice() throws {
    _ = try cli.succeed("export itunes phone --repo repo")
    try shell(
      """
      python3 - <<'END'
      import datetime, plistlib
      for name, change in (("Manifest.plist", {"Lockdown": {
          "DeviceName": "Ada", "ProductType": "iPhone9,3", "ProductVersion": "15.8",
          "UniqueDeviceID": "00ab"}, "Applications": {"com.example.app": {
              "CFBundleVersion": "42", "ContainerContentClass": "Data/Application"}}}),
          ("Status.plist", {"Date": datetime.datetime(2020, 2, 3, 4, 5, 6)})):
          with open("phone/" + name, "rb") as file:
              values = plistlib.load(file)
          values.update(change)
          with open("phone/" + name, "wb") as file:
              plistlib.dump(values, file)
      END
      """)
    let line = try cli.succeed("import itunes phone --repo other")
    #expect(line.contains(" of 'Ada' (iPhone9,3, iOS 15.8), "), "\(line)")
    let shown = try cli.json("snapshots show latest --json --repo other")
    #expect(shown["time"] as? String == "2020-02-03T04:05:06Z")
    let device = shown["device"] as? [String: Any]
    #expect(device?["identity"] as? String == "udid:00ab")
    #expect(device?["layout"] as? String == "coresimulator")
    let containers = device?["containers"] as? [[String: Any]] ?? []
    #expect(containers.compactMap { $0["path"] as? String } == ["folders/tree"])
    let apps = shown["apps"] as? [[String: Any]] ?? []
    #expect(apps.map { $0["build"] as? String } == ["42"], "\(apps)")
    let given = try cli.json(
      "import itunes phone --time 2021-01-01T00:00:00Z --json --repo other")
    #expect(given["time"] as? String == "2021-01-01T00:00:00Z")
    #expect((given["device"] as? [String: Any])?["name"] as? String == "Ada")
    #expect(given["new_bytes"] as? Int == 0)
  }

  @Test func aPathIsExportedInItsDomain() throws {
    _ = try cli.succeed("export itunes latest:folders/tree/private phone --repo repo")
    _ = try cli.succeed("import itunes phone --repo other --quiet")
    #expect(try cli.succeed("dump latest:folders/tree/private/note --repo other") == "secret")
    #expect(try cli.run("dump latest:folders/tree/empty --repo other").code == 1)
    _ = try cli.succeed("export itunes latest:folders/tree/private/note one --repo repo")
    _ = try cli.succeed("import itunes one --repo other --quiet")
    #expect(try cli.succeed("dump latest:folders/tree/private/note --repo other") == "secret")
  }

  @Test func anEncryptedBackupIsImportedWithItsPasswordOnly() throws {
    _ = try cli.succeed("export itunes phone --repo repo")
    try encrypt("phone", "the right password")
    try write("the right password\n", to: "right")
    try write("another password\n", to: "wrong")
    let none = try cli.run("import itunes phone --repo other")
    #expect(none.code == 12)
    #expect(
      none.errors.contains("hint: add '--password-file FILE', '--password-command COMMAND'"),
      "\(none.errors)")
    let wrong = try cli.run("import itunes phone --password-file wrong --json --repo other")
    #expect(wrong.code == 12 && wrong.errors.contains("wrong_key"), "\(wrong.errors)")
    #expect(try cli.snapshots("other").isEmpty)
    _ = try cli.succeed("import itunes phone --password-file right --repo other --quiet")
    #expect(try tree("other") == tree("repo"))
    let command = try cli.json(
      "import itunes phone --password-command cat<right --json --repo other")
    #expect(command["format"] as? String == "iTunes backup, encrypted")
  }

  /// Another implementation decrypts every file of an encrypted export, and an import yields the
  /// same tree.
  @Test func anEncryptedExportIsReadByOthers() throws {
    try write("the right password\n", to: "right")
    try write("another password\n", to: "wrong")
    let line = try cli.succeed("export itunes phone --password-file right --repo repo")
    #expect(line.contains(" to 'phone' ("), "\(line)")
    let names = try Directory.open(path: cli.directory.path("phone")).names()
    let others: Set<ByteString> = ["Info.plist", "Manifest.db", "Manifest.plist", "Status.plist"]
    #expect(Set(names.filter { $0.count != 2 }) == others)
    try python("decrypt_itunes.py", ["phone", "the right password", "out"])
    try shell(
      """
      cd tree
      find . -type f | sort > ../wanted
      while read -r name; do cmp "$name" "../out/tree/$name"; done < ../wanted
      cd ../out/tree
      find . -type f | sort | cmp - ../../wanted
      """)
    let wrong = try cli.run("import itunes phone --password-file wrong --json --repo other")
    #expect(wrong.code == 12 && wrong.errors.contains("wrong_key"), "\(wrong.errors)")
    let report = try cli.json("import itunes phone --password-file right --json --repo other")
    #expect(report["format"] as? String == "iTunes backup, encrypted")
    #expect(try tree("other") == tree("repo"))
  }

  @Test func theNewPasswordIsChecked() throws {
    try write("\n", to: "empty")
    for (line, code, reason) in [
      ("--password-file empty", Int32(1), "it is empty"), ("--password-file none", 1, "none"),
      ("--password", 2, "cannot ask for a password without a terminal"),
      ("--password-file empty --password", 2, "cannot be used together"),
    ] {
      let outcome = try cli.run("export itunes phone --repo repo \(line)")
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
    #expect(!FileManager.default.fileExists(atPath: cli.directory.string + "/phone"))
  }

  @Test func passwordOptionsAreCheckedAsThoseOfKeys() throws {
    _ = try cli.succeed("export itunes phone --repo repo")
    try write("a password\n", to: "word")
    for (line, code, reason) in [
      ("--password-file word --password", Int32(2), "cannot be used together"),
      ("--password-file word --password-command true", 2, "cannot be used together"),
      ("--password", 2, "cannot ask for a password without a terminal"),
      ("--password-file none", 1, "none"), ("--password-command false", 1, "read the password"),
      ("--password-file word", 0, "is not encrypted: its password was not used"),
    ] {
      let outcome = try cli.run("import itunes phone --repo other \(line)")
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
    try cli.directory.directory.setPermissions(0o644, of: "word")
    let readable = try cli.run("import itunes phone --password-file word --repo other")
    #expect(readable.errors.contains("other users may read the password"), "\(readable.errors)")
  }

  /// Entries that are damaged or lead elsewhere are reported, and everything else is imported.
  @Test func damagedAndHostileFilesAreNamed() throws {
    _ = try cli.succeed("export itunes phone --repo repo")
    try cli.directory.write("changed", at: ByteString(content("tree", "private/note")))
    try FileManager.default.removeItem(
      atPath: cli.directory.string + "/" + content("tree", "deep/er/large"))
    try shell(
      """
      python3 - <<'END'
      import sqlite3
      database = sqlite3.connect("phone/Manifest.db")
      database.execute("UPDATE Files SET relativePath = '../../evil' WHERE relativePath = 'empty'")
      database.commit()
      END
      """)
    let outcome = try cli.run("import itunes phone --repo other")
    #expect(outcome.code == 3, "\(outcome.errors)")
    for (path, reason) in [
      ("folders/tree/private/note", "it is damaged"), ("tree/deep/er/large", "is missing"),
      ("tree/../../evil", "'..'"),
    ] {
      let line = outcome.errors.split(separator: "\n").first { $0.contains(path) }
      #expect(line?.contains("not imported: ") == true && line?.contains(reason) == true, "\(path)")
    }
    #expect(try cli.succeed("dump latest:folders/tree/caf\u{e9}.txt --repo other") == "text")
    #expect(try cli.run("dump latest:folders/tree/private/note --repo other").code == 1)
  }

  /// A later import of the directory reads only the contents that were replaced.
  @Test func aLaterImportReadsOnlyWhatChanged() throws {
    _ = try cli.succeed("export itunes phone --repo repo")
    let first = try cli.json("import itunes phone --json --repo other")
    let files = try #require(first["files"] as? Int)
    #expect(first["unchanged"] as? Int == 0 && files == 4)
    let line = try cli.succeed("import itunes phone --repo other")
    #expect(line.contains(", 4 unchanged, "), "\(line)")
    #expect(try tree("other") == tree("repo"))
    let note = try content("tree", "caf\u{e9}.txt")
    // A different content is read, and found not to match the manifest.
    try shell("rm \(note); printf TEXT > \(note)")
    let damaged = try cli.run("import itunes phone --json --repo other")
    #expect(damaged.code == 3 && damaged.errors.contains("it is damaged"), "\(damaged.errors)")
    #expect(try CommandLine.object(damaged.output)["unchanged"] as? Int == 3)
    try shell("rm \(note); printf text > \(note)")
    let third = try cli.json("import itunes phone --json --repo other")
    #expect(third["unchanged"] as? Int == 3)
    #expect(try cli.succeed("dump latest:folders/tree/caf\u{e9}.txt --repo other") == "text")
    let reread = try cli.json("import itunes phone --reread --json --repo other")
    #expect(reread["unchanged"] as? Int == 0 && reread["new_bytes"] as? Int == 0)
    _ = try cli.succeed("cache clear --repo other")
    #expect(try cli.json("import itunes phone --json --repo other")["unchanged"] as? Int == 0)
    #expect(try cli.json("import itunes phone --json --repo other")["unchanged"] as? Int == 4)
    #expect(try cli.succeed("check --read-data --repo other").hasSuffix("no damage found\n"))
  }

  /// After the snapshot was removed and its data pruned, everything is read again.
  @Test func whatWasPrunedIsReadAgain() throws {
    _ = try cli.succeed("export itunes phone --repo repo")
    let first = try cli.json("import itunes phone --json --repo other")
    let id = try #require(first["id"] as? String)
    try cli.directory.write("kept", at: "another/kept")
    _ = try cli.succeed("backup --layout folder --root another --repo other --quiet")
    _ = try cli.succeed("forget \(id) --allow-last --repo other --prune --max-unused 0 --quiet")
    let second = try cli.json("import itunes phone --json --repo other")
    #expect(second["unchanged"] as? Int ?? 9 <= 1, "at most the empty file")
    // The newest by time is the other one, because an import has the time of the backup.
    let again = try #require(second["id"] as? String)
    #expect(try tree("other", of: again) == tree("repo"))
    #expect(try cli.succeed("check --read-data --repo other").hasSuffix("no damage found\n"))
  }

  /// A device is backed up and exported in one command, with the same result as for its snapshot.
  @Test func aDeviceIsExportedAtOnce() throws {
    _ = try cli.succeed("sample device")
    // A name that is not UTF-8 is not exported.
    let outcome = try cli.run(
      "export itunes --from-device device --app notebook phone --json --repo repo")
    let made = try CommandLine.object(outcome.output)
    #expect(made["skipped"] as? Int == 1 && made["bundle_entries"] as? Int ?? 0 > 5)
    #expect(outcome.code == 3 && made["entries"] as? Int ?? 0 > 20, "\(outcome.errors)")
    let id = try #require(made["id"] as? String)
    #expect(try cli.run("export itunes \(id) later --repo repo").code == 3)
    try shell(
      """
      for name in phone later; do
        (cd $name; find ?? -type f -exec sha256sum {} + | sort) > $name.sums
      done
      test -s phone.sums; cmp phone.sums later.sums
      """)
    // A second export reads only what changed, and is refused before that if there is no space for
    // it.
    let again = try cli.run("export itunes --from-device ios:device --json again --repo repo")
    #expect(again.code == 3, "\(again.errors)")
    let before = try cli.succeed("snapshots --json --repo repo")
    for (line, code, reason) in [
      ("export itunes --from-device device phone --repo repo", Int32(1), "not empty"),
      ("export itunes latest phone2 --from-device device --repo repo", 2, "--from-device"),
      ("export itunes phone2 --app notebook --repo repo", 2, "'--app' requires '--from-device'"),
      ("export itunes --from-device nowhere phone2 --repo repo", 1, "nowhere"),
      ("export itunes --from-device device --app none phone2 --repo repo", 1, "none"),
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
    #expect(try cli.succeed("snapshots --json --repo repo") == before)
  }

  /// A snapshot of a backup with an app, its extension and a group is exported without a remark,
  /// since there is a place for everything, and an import restores it unchanged.
  @Test func appsWithExtensionsAreExportedWhole() throws {
    _ = try cli.succeed("sample device")
    for name in ["second", "third"] { _ = try cli.succeed("init \(name) --plain --no-default") }
    // A name that is not UTF-8 is not exported.
    #expect(
      try cli.run("export itunes --from-device device first --quiet --repo repo").code == 3)
    _ = try cli.succeed("import itunes first --repo second --quiet")
    let list = try cli.succeed("ls latest:apps/org.example.notebook/extensions --repo second")
    #expect(list.contains("org.example.notebook.share"), "\(list)")
    let outcome = try cli.run("export itunes again --repo second")
    #expect(outcome.code == 0 && !outcome.errors.contains("not exported"), "\(outcome.errors)")
    _ = try cli.succeed("import itunes again --repo third --quiet")
    #expect(try tree("third") == tree("second"))
  }

  /// A plain directory has no iOS domain: a user who needs the backup for a device must be
  /// informed.
  @Test func aDirectoryThatNoDeviceRestoresIsNamed() throws {
    let outcome = try cli.run("export itunes latest phone --repo repo")
    #expect(outcome.code == 0, "\(outcome.errors)")
    let warning = "iOS has no domain 'tree': a device does not restore 'folders/tree'"
    #expect(outcome.errors.contains(warning), "\(outcome.errors)")
    #expect(outcome.errors.contains("no data of an app or of iOS"), "\(outcome.errors)")
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("backup --root device --repo other --quiet")
    let sample = try cli.run("export itunes latest sample --repo other")
    #expect(!sample.errors.contains("iOS has no domain"), "\(sample.errors)")
  }

  /// No backup of a device contains bundles, so their absence is a note.
  @Test func bundlesAreNoReasonForAnIncompleteExport() throws {
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    let app = "apps/org.example.darkroom"
    let outcome = try cli.run("export itunes latest:\(app) phone --repo repo")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.errors.contains("note: a backup contains no bundles of apps: "))
    #expect(!outcome.errors.contains("not exported: "), "\(outcome.errors)")
    _ = try cli.succeed("import itunes phone --repo other --quiet")
    #expect(try cli.succeed("ls latest:\(app) --repo other").contains("data"))
    let bundle = try cli.run("export itunes latest:\(app)/bundle none --json --repo repo")
    #expect(bundle.code == 3, "\(bundle)")
    #expect(try CommandLine.object(bundle.output)["skipped"] as? Int == 0)
  }

  @Test func wrongUseIsRefused() throws {
    try cli.directory.write("x", at: "full/x")
    for (line, code, reason) in [
      ("import itunes --repo other", Int32(2), "dir"),
      ("import itunes nowhere --repo other", 1, "nowhere"),
      ("import itunes tree --repo other", 1, "it has no Manifest.plist"),
      ("export itunes --repo repo", 2, "directory"),
      ("export itunes full --repo repo", 1, "not empty"),
      ("export itunes repo/in --repo repo", 2, "is inside the other"),
      ("export itunes latest:folders/none phone --repo repo", 1, "no such path"),
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
  }

  /// A file that a backup cannot contain is reported.
  @Test func whatABackupCannotHoldIsNamed() throws {
    try shell("mkfifo tree/fifo")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let outcome = try cli.run("export itunes phone --json --repo repo")
    #expect(outcome.code == 3 && outcome.errors.contains("folders/tree/fifo"), "\(outcome.errors)")
    #expect(try CommandLine.object(outcome.output)["skipped"] as? Int == 1)
  }
}
