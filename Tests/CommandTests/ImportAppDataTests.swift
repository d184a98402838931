import Foundation
import SystemIO
import TestSupport
import Testing

/// The commands for app data of Xcode and for packages with data.
struct ImportAppDataTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("sample device")
    for name in ["repo", "other"] { _ = try cli.succeed("init \(name) --plain --no-default") }
    _ = try cli.succeed("backup --root device --repo repo --quiet")
  }

  @Test func theDataOfXcodeIsImportedAsItWas() throws {
    let line = try cli.succeed("export xcappdata notes.xcappdata --app notebook --repo repo")
    #expect(line.contains(" to 'notes.xcappdata' ("), "\(line)")
    let list = try Program.run(
      "python3",
      [
        "-c",
        "import plistlib; print(plistlib.load(open('notes.xcappdata/AppDataInfo.plist', 'rb')))",
      ],
      in: cli.directory.url)
    #expect(list.output.contains("'CFBundleIdentifier': 'org.example.notebook'"), "\(list)")
    let report = try cli.json("import xcappdata notes.xcappdata --json --repo other")
    #expect(report["app"] as? String == "org.example.notebook" && report["skipped"] as? Int == 0)
    let path = "latest:apps/org.example.notebook/data"
    _ = try cli.succeed("restore \(path) --to first --repo repo")
    _ = try cli.succeed("restore \(path) --to second --repo other")
    try ChangeDetector.expectSame(cli.directory, "first", "second")
    let shown = try cli.json("snapshots show latest --json --repo other")
    let apps = shown["apps"] as? [[String: Any]] ?? []
    #expect(apps.map { $0["id"] as? String } == ["org.example.notebook"], "\(apps)")
  }

  /// Neither is a newer state of the other, so retention keeps both.
  @Test func aPackageAndTheDataOfItsAppDoNotExpireEachOther() throws {
    _ = try cli.succeed("export xcappdata dark.xcappdata --app darkroom --repo repo")
    _ = try cli.succeed("export ipa darkroom.ipa --app darkroom --repo repo")
    _ = try cli.succeed("export xcappdata notes.xcappdata --app notebook --repo repo")
    for _ in 0..<2 {
      _ = try cli.succeed("import ipa darkroom.ipa --repo other")
      _ = try cli.succeed("import xcappdata dark.xcappdata --repo other")
      _ = try cli.succeed("import xcappdata notes.xcappdata --repo other")
    }
    let text = try cli.succeed("forget --keep-last 1 --dry-run --repo other")
    #expect(text.contains("containers apps/org.example.darkroom/bundle and "), "\(text)")
    #expect(text.contains("containers apps/org.example.darkroom/data:"), "\(text)")
    let lines = try cli.jsonLines("forget --keep-last 1 --dry-run --json --repo other")
    #expect(lines.count { $0["action"] as? String == "keep" } == 3, "\(lines)")
    #expect(lines.count { $0["action"] as? String == "remove" } == 3, "\(lines)")
    let single = try cli.jsonLines(
      "forget --keep-last 1 --group-by device --dry-run --json --repo other")
    #expect(single.count { $0["action"] as? String == "keep" } == 2, "\(single)")
  }

  /// Python reads the package, and an import yields the same files.
  @Test func aPackageIsImportedAsItWas() throws {
    _ = try cli.succeed("export ipa darkroom.ipa --app darkroom --repo repo")
    let tested = try Program.run(
      "python3", ["-m", "zipfile", "-e", "darkroom.ipa", "unpacked"], in: cli.directory.url)
    #expect(tested.code == 0, "\(tested.errors)")
    let report = try cli.json("import ipa darkroom.ipa --json --repo other")
    #expect(report["app"] as? String == "org.example.darkroom" && report["skipped"] as? Int == 0)
    for path in ["bundle", "data"] {
      let logical = "latest:apps/org.example.darkroom/\(path)"
      _ = try cli.succeed("restore \(logical) --to first-\(path) --repo repo")
      _ = try cli.succeed("restore \(logical) --to second-\(path) --repo other")
    }
    let same = try Program.run(
      "/bin/bash",
      [
        "-ec",
        """
        for part in bundle data; do diff -r --no-dereference first-$part second-$part; done
        diff -r --no-dereference unpacked/Container first-data
        diff -r --no-dereference unpacked/Payload/Darkroom.app first-bundle/Darkroom.app
        """,
      ], in: cli.directory.url)
    #expect(same.code == 0, "\(same)")
  }

  /// Containers of extensions are reported, because a package has none.
  @Test func extensionsAreNotInAPackage() throws {
    let outcome = try cli.run("export ipa notes.ipa --app notebook --repo repo")
    #expect(outcome.code == 3, "\(outcome)")
    #expect(outcome.errors.contains("extensions/org.example.notebook.share"))
  }

  /// A run that was killed leaves a directory with a temporary name, which the next one removes.
  @Test func theNextExportRemovesWhatAKilledOneLeft() throws {
    let abandoned = ".sandboxctl-directory-0123456789abcdef.tmp"
    for above in ["", "there/"] {
      try cli.directory.write("x", at: ByteString("\(above)\(abandoned)/AppData/x"))
    }
    _ = try cli.succeed("export xcappdata there --app notebook --repo repo")
    #expect(try cli.run("export itunes phone --repo repo").code == 3)
    let names = try cli.directory.directory.names()
    #expect(!names.contains(ByteString(abandoned)) && names.contains("phone"), "\(names)")
    let made = try Directory.open(path: cli.directory.path("there")).names()
    #expect(made == ["AppData", "AppDataInfo.plist"])
  }

  @Test func wrongUseIsRefused() throws {
    try cli.directory.write("x", at: "full/x")
    for (line, code, reason) in [
      ("export xcappdata x --repo repo", Int32(2), "--app"),
      ("export xcappdata full --app notebook --repo repo", 1, "not empty"),
      ("export xcappdata x --app none --repo repo", 1, "no such app"),
      ("export xcappdata latest:groups x --app notebook --repo repo", 2, "without a path"),
      ("export xcappdata repo/in --app notebook --repo repo", 2, "is inside the other"),
      ("import xcappdata full --repo other", 1, "no directory AppData"),
      ("import xcappdata nowhere --repo other", 1, "nowhere"),
      ("export ipa full/x --app notebook --repo repo", 1, "exists"),
      ("import ipa full/x --repo other", 1, "full/x"),
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
  }
}
