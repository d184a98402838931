import Foundation
import SystemIO
import TestSupport
import Testing

/// `import snap` and `export snap` on the command line.
struct ImportSnapTests {
  private let cli: CommandLine

  /// Makes a backup of two snaps.
  init() throws {
    cli = try CommandLine()
    try SnapTests.makeSystem(in: cli)
    try shell(
      """
      cd disk/home/you/snap/editor
      echo z > common/plain; ln common/plain common/linked; ln -s ../42 common/link; mkdir -m 700 common/private
      head -c 300000 /dev/zero | tr '\\0' x > common/large; truncate -s 5M common/sparse
      """)
    for name in ["repo", "other"] { _ = try cli.succeed("init \(name) --plain --no-default") }
    _ = try cli.succeed("backup \(SnapTests.device) --repo repo --quiet")
  }

  private func shell(_ script: String) throws {
    let outcome = try Program.run(
      "/bin/bash", ["-ec", script], environment: ["LC_ALL": "C.UTF-8"], in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  private func python(_ name: String, _ arguments: [String]) throws -> String {
    let script = Shared.packageRoot.appendingPathComponent("Tests/CommandTests/Programs/" + name)
      .path
    let outcome = try Program.run(
      "python3", ["-B", script] + arguments, in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
    return outcome.output
  }

  /// Another implementation accepts the export, and GNU tar unpacks the same data.
  @Test func anExportIsReadByOthers() throws {
    let line = try cli.succeed("export snap all.snapshot --user you --repo repo")
    #expect(line.contains(" to 'all.snapshot' ("), "\(line)")
    #expect(try python("check_snap.py", ["all.snapshot", "out"]) == "editor server\n")
    try shell(
      """
      _() { diff -r --no-dereference "$@"; }
      home=disk/home/you/snap
      test "$(cat out/editor/you/42/notes.txt)" = newer
      test out/editor/you/common/plain -ef out/editor/you/common/linked
      test "$(readlink out/editor/you/common/link)" = ../42
      test "$(stat -c %a out/editor/you/common/private)" = 700
      cmp out/editor/you/common/large $home/editor/common/large
      cmp out/editor/you/common/sparse $home/editor/common/sparse
      test "$(cat out/server/system/7/config)" = set
      _ out/server/system/common disk/var/snap/server/common
      test ! -e out/editor/you/41
      test "$(stat -c %y out/editor/you/42/notes.txt)" = "$(stat -c %y $home/editor/42/notes.txt)"
      """)
  }

  @Test func anExportIsImportedAsItWas() throws {
    _ = try cli.succeed("export snap all.snapshot --repo repo")
    let line = try cli.succeed("import snap all.snapshot --repo other")
    #expect(line.contains(" of 2 snaps, "), "\(line)")
    _ = try cli.succeed("restore latest:apps --to first --repo repo")
    _ = try cli.succeed("restore latest:apps --to second --repo other")
    try ChangeDetector.expectSame(cli.directory, "first", "second")
    let shown = try cli.json("snapshots show latest --json --repo other")
    let device = try #require(shown["device"] as? [String: Any])
    #expect(device["layout"] as? String == "snap")
    let containers = device["containers"] as? [[String: Any]] ?? []
    let revisions = containers.compactMap { $0["revision"] as? String }
    #expect(revisions == ["42", "7"], "\(containers)")
    #expect(try cli.succeed("check --read-data --repo other").hasSuffix("no damage found\n"))
  }

  @Test func aZipHasOneSnap() throws {
    _ = try cli.succeed("export snap latest:apps/editor editor.zip --user you --repo repo")
    #expect(try python("check_snap.py", ["editor.zip", "out"]) == "editor\n")
    let report = try cli.json("import snap editor.zip --json --repo other")
    #expect(report["snaps"] as? Int == 1 && report["format"] as? String == "snapd snapshot")
    let both = try cli.run("export snap both.zip --repo repo")
    #expect(both.code == 1 && both.errors.contains("a zip file contains one snap"), "\(both)")
    #expect(!FileManager.default.fileExists(atPath: cli.directory.string + "/both.zip"))
  }

  /// The configuration and the epoch that snapd wrote are exported again.
  @Test func aSnapshotOfSnapdIsImported() throws {
    _ = try python(
      "make_snap.py",
      ["7_editor.zip", "editor", "42", "disk/var/snap/server", "you", "disk/home/you/snap/editor"])
    _ = try cli.succeed("import snap 7_editor.zip --repo other")
    #expect(
      try cli.succeed("dump latest:apps/editor/revision/notes.txt --repo other") == "newer")
    #expect(try cli.succeed("dump latest:apps/editor/system-data/db/table --repo other") == "rows")
    let shown = try cli.json("snapshots show latest --json --repo other")
    #expect(shown["time"] as? String == "2024-05-06T05:08:09.123456789Z")
    _ = try cli.succeed("export snap again.zip --user you --repo other")
    #expect(try python("check_snap.py", ["again.zip", "out"]) == "editor\n")
    let meta = try Program.run(
      "python3",
      ["-c", "import zipfile; print(zipfile.ZipFile('again.zip').read('meta.json').decode())"],
      in: cli.directory.url)
    for part in [#""conf":{"port":8080,"name":"a<b"}"#, #""epoch":{"read":[1,2],"write":[2]}"#] {
      #expect(meta.output.contains(part), "\(part) in \(meta.output)")
    }
    // A stream, too.
    let streamed = try Program.run(
      "/bin/sh",
      ["-c", "cat 7_editor.zip | \(CommandLine.program) import snap - --repo other --quiet"],
      environment: cli.environment, in: cli.directory.url)
    #expect(streamed.code == 0, "\(streamed.errors)")
  }

  /// A part with a wrong checksum is reported and not imported; the rest is imported.
  @Test func aWrongSumIsNamed() throws {
    _ = try cli.succeed("export snap latest:apps/server server.zip --user you --repo repo")
    try shell(
      """
      python3 - <<'END'
      import zipfile
      with zipfile.ZipFile("server.zip") as old, zipfile.ZipFile("forged.zip", "w") as new:
          for name in old.namelist():
              data = old.read(name)
              new.writestr(name, data + b"x" if name == "archive.tgz" else data)
      END
      """)
    let outcome = try cli.run("import snap forged.zip --repo other")
    #expect(outcome.code == 3, "\(outcome)")
    #expect(outcome.errors.contains("server/archive.tgz"), "\(outcome.errors)")
    #expect(outcome.errors.contains("another SHA3-384"))
    #expect(try cli.succeed("dump latest:apps/server/data/x --repo other") == "x")
    #expect(try cli.run("dump latest:apps/server/system-data/db/table --repo other").code == 1)
  }

  /// The volume of temporary files is neither that of the source nor that of the target.
  @Test(.enabled(if: SmallVolume.isPermitted)) func aFullVolumeOfTemporaryFilesIsNamed() throws {
    _ = try cli.succeed("export snap all.snapshot --user you --repo repo")
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=4k")
    defer { volume.unmount() }
    try shell("head -c 4096 /dev/zero > small/full")
    for line in [
      "import snap all.snapshot --repo other", "export snap again.snapshot --user you --repo repo",
    ] {
      let outcome = try cli.run(
        line.split(separator: " ").map(String.init), environment: ["TMPDIR": volume.path])
      #expect(outcome.code == 1, "\(line): \(outcome)")
      #expect(outcome.errors.contains("'\(volume.path)' has no room for"), "\(outcome.errors)")
      #expect(outcome.errors.contains("set TMPDIR to a directory"), "\(outcome.errors)")
    }
  }

  @Test func wrongUseIsRefused() throws {
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init third --plain --no-default")
    _ = try cli.succeed("backup --root device --repo third --quiet")
    for (line, code, reason) in [
      ("import snap --repo other", Int32(2), "file"),
      ("import snap nowhere --repo other", 1, "nowhere"),
      ("import snap disk/var/snap/server/7/config --repo other", 1, "known format"),
      ("export snap x.snapshot --repo third", 1, "layout 'coresimulator'"),
      ("export snap x.snapshot --user a/b --repo repo", 2, "not the name of a user"),
      ("export snap repo/x --repo repo", 2, "is inside the other"),
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
  }
}
