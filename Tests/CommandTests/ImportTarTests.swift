import Foundation
import SystemIO
import TestSupport
import Testing

/// `import tar` and `import zip` on the command line.
struct ImportTarTests {
  private static func fixture() throws -> CommandLine {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
    return cli
  }

  private static func shell(_ script: String, in cli: CommandLine) throws {
    let outcome = try Program.run(
      "/bin/bash", ["-ec", script], environment: ["LC_ALL": "C.UTF-8"], in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// A tree that GNU tar archived is restored unchanged.
  @Test func anImportedTarIsRestoredAsItWas() throws {
    let cli = try Self.fixture()
    try OddTree.make(in: cli.directory, at: "tree")
    try Self.shell(
      """
      tar --format=pax --xattrs --xattrs-include='*' --acls --sparse --warning=no-file-ignored \
        -C tree -cf odd.tar .
      """, in: cli)
    let line = try cli.succeed("import tar odd.tar --repo repo")
    #expect(line.hasPrefix("snapshot ") && line.contains(" in 'folders/odd', "), "\(line)")
    _ = try cli.succeed("restore latest:folders/odd --to back --repo repo --quiet")
    // An archive contains no sockets.
    try FileManager.default.removeItem(atPath: cli.directory.string + "/tree/socket")
    let wanted = try OddTree.listing(cli.directory, "tree")
    let found = try OddTree.listing(cli.directory, "back")
    for path in Set(wanted.keys).union(found.keys) where path != "" {
      var (before, after) = (wanted[path], found[path])
      // GNU tar's holes depend on the file system's blocks.
      if path == "sparse" {
        before?.extents = []
        after?.extents = []
      }
      #expect(before == after, "\(path)")
    }
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
  }

  /// Names in tar archives are bytes, even if they differ only in their Unicode form.
  @Test(
    arguments: [
      "tar --format=pax -C tree -cf", "tar --format=pax -C tree -czf",
      "tar --format=gnu -C tree -cf", "bsdtar --format pax -C tree -cf",
      "bsdtar --format pax --zstd -C tree -cf",
    ], [false, true])
  func namesKeepTheirUnicodeForm(program: String, isPiped: Bool) throws {
    let cli = try Self.fixture()
    let long = String(repeating: "n", count: 150)
    for name in ["caf\u{e9}", "cafe\u{301}", long + "\u{e9}", long + "e\u{301}"] {
      try cli.directory.write(Self.digits(name), at: ByteString("tree/" + name))
    }
    try Self.shell("\(program) archive .", in: cli)
    let outcome =
      isPiped
      ? try cli.run(
        ["import", "tar", "-", "--name", "archive", "--repo", "repo"],
        input: try cli.directory.read("archive"))
      : try cli.run("import tar archive --repo repo")
    #expect(outcome.code == 0, "\(outcome.errors)")
    for name in ["caf\u{e9}", "cafe\u{301}", long + "\u{e9}", long + "e\u{301}"] {
      let text = try cli.succeed("dump latest:folders/archive/\(name) --repo repo")
      #expect(text == Self.digits(name), "\(name)")
    }
  }

  /// The bytes of a name in hexadecimal: strings in different Unicode forms are equal.
  private static func digits(_ name: String) -> String {
    name.utf8.map { String($0, radix: 16) }.joined()
  }

  /// In a format whose names are text, libarchive turns two names in different Unicode forms into
  /// one, which is reported.
  @Test func namesThatBecomeOneAreNamed() throws {
    let cli = try Self.fixture()
    try cli.directory.write("composed", at: "tree/caf\u{e9}")
    try cli.directory.write("decomposed", at: "tree/cafe\u{301}")
    try Self.shell("bsdtar --format 7zip -C tree -cf a.7z .", in: cli)
    let outcome = try cli.run("import tar a.7z --repo repo")
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(outcome.errors.contains("different Unicode forms"), "\(outcome.errors)")
  }

  @Test func aSecondImportStoresAlmostNothing() throws {
    let cli = try Self.fixture()
    var random = Seeded(9)
    try cli.directory.write(random.bytes(3_000_000), at: "tree/large")
    try Self.shell("tar -cf a.tar tree; tar -czf b.tar.gz tree", in: cli)
    let first = try cli.json("import tar a.tar --name x --json --repo repo")
    let second = try cli.json("import tar b.tar.gz --name x --json --repo repo")
    #expect(first["new_bytes"] as? Int ?? 0 > 3_000_000)
    #expect(second["new_bytes"] as? Int == 0 && second["stored_bytes"] as? Int == 0)
    #expect((second["format"] as? String)?.contains("gzip") == true)
    #expect(try cli.snapshots().count == 2)
  }

  /// The snapshot has the archive's time, unless another one is given.
  @Test func theTimeIsThatOfTheArchive() throws {
    let cli = try Self.fixture()
    try cli.directory.write("x", at: "tree/a")
    try Self.shell("tar -cf a.tar tree; touch -d 2020-02-03T04:05:06Z a.tar", in: cli)
    let own = try cli.json("import tar a.tar --json --repo repo")
    #expect(own["time"] as? String == "2020-02-03T04:05:06Z")
    let given = try cli.json(
      "import tar a.tar --time 2021-01-01T00:00:00Z --tag old --json --repo repo")
    #expect(given["time"] as? String == "2021-01-01T00:00:00Z")
    let now = try cli.json("import tar a.tar --time now --json --repo repo")
    #expect((now["time"] as? String ?? "") > "2022")
    #expect(try cli.succeed("snapshots --tag old --repo repo").contains("2021-01-01"))
    #expect(try cli.run("import tar a.tar --time never --repo repo").code == 2)
  }

  @Test func anArchiveIsReadFromStandardInput() throws {
    let cli = try Self.fixture()
    try cli.directory.write("text", at: "tree/a")
    try Self.shell("tar --zstd -cf a.tar.zst tree", in: cli)
    let bytes = try cli.directory.read("a.tar.zst")
    let nameless = try cli.run(["import", "tar", "-", "--repo", "repo"], input: bytes)
    #expect(nameless.code == 2 && nameless.errors.contains("--name"), "\(nameless.errors)")
    let outcome = try cli.run(
      ["import", "tar", "-", "--name", "piped", "--repo", "repo"], input: bytes)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try cli.succeed("dump latest:folders/piped/tree/a --repo repo") == "text")
  }

  /// A FIFO is read like standard input, even if its writer begins later and pauses.
  @Test(arguments: [
    #""$0" import tar <(tar -C tree -cz .) --name piped --repo repo"#,
    #"mkfifo f; (sleep 1; tar -cC tree .) > f & "$0" import tar f --name piped --repo repo"#,
    #"(sleep 1; tar -cC tree a; sleep 1) | "$0" import tar /dev/stdin --name piped --repo repo"#,
    #""$0" import zip <(cd tree; zip -qr - .) --name piped --repo repo"#,
  ])
  func aFIFOIsRead(script: String) throws {
    let cli = try Self.fixture()
    try cli.directory.write("text", at: "tree/a")
    let outcome = try cli.run([], under: ["bash", "-c", script])
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try cli.succeed("dump latest:folders/piped/a --repo repo") == "text")
  }

  /// A signal ends an import that waits for the bytes of a pipe, before the archive and in it.
  @Test(
    arguments: ["import tar - --name x --repo repo < f", "import tar f --repo repo"], [0, 3000])
  func aSignalEndsAWaitingImport(command: String, count: Int) throws {
    let cli = try Self.fixture()
    try cli.directory.write([UInt8](repeating: 7, count: 100_000), at: "tree/a")
    try Self.shell("tar -cf a.tar tree; mkfifo f never", in: cli)
    // The signal is sent when the program handles it (SIGTERM is 15); a second one would kill it.
    let script = """
      (head -c \(count) a.tar; exec sleep 60) > f 2>/dev/null & W=$!
      "$0" \(command) & P=$!
      for i in $(seq 3000); do
        if grep -qE '^SigCgt:.*[4-7c-f][0-9a-f]{3}$' /proc/$P/status; then break; fi
        sleep 0.01
      done
      sleep 0.5
      kill -TERM $P
      (read -t 30 <> never; kill -KILL $P) >/dev/null 2>&1 & K=$!
      wait $P; S=$?
      kill $W $K
      exit $S
      """
    let outcome = try cli.run([], under: ["bash", "-c", script])
    #expect(outcome.code == 130, "\(outcome)")
    #expect(outcome.errors.contains("interrupted"), "\(outcome.errors)")
    #expect(try cli.snapshots().isEmpty && cli.names(in: "repo/leases").isEmpty)
  }

  /// Names that lead out and truncation are reported, the rest is imported, and nothing is written
  /// outside the repository.
  @Test func hostileAndTruncatedArchivesGiveWhatIsSound() throws {
    let cli = try Self.fixture()
    try cli.directory.write("outside", at: "outside")
    try cli.directory.write("inside", at: "work/inside")
    try cli.directory.write([UInt8](repeating: 7, count: 100_000), at: "work/zz")
    try Self.shell(
      "cd work; ln -s /etc link; tar -Pcf ../a.tar ../outside inside link zz; "
        + "head -c 30000 ../a.tar > ../cut.tar", in: cli)
    let hostile = try cli.run("import tar a.tar --repo repo")
    #expect(hostile.code == 3)
    #expect(
      hostile.errors.contains("not imported: ../outside: its name contains '..'"),
      "\(hostile.errors)")
    #expect(try cli.succeed("dump latest:folders/a/inside --repo repo") == "inside")
    let cut = try cli.run("import tar cut.tar --repo repo")
    #expect(cut.code == 3 && cut.errors.contains("what precedes the damage"), "\(cut.errors)")
    #expect(cut.errors.contains("not imported: zz: it is incomplete"), "\(cut.errors)")
    #expect(try cli.succeed("dump latest:folders/cut/inside --repo repo") == "inside")
    let none = try cli.run("dump latest:folders/cut/zz --repo repo")
    #expect(none.code == 1)
  }

  /// A checksum of the whole archive cannot show where the damage is, so all files are suspect.
  @Test(arguments: ["gzip", "zstd --check", "lz4"], [false, true])
  func aWrongChecksumMakesAllFilesSuspect(program: String, isPiped: Bool) throws {
    let cli = try Self.fixture()
    try cli.directory.write("text", at: "tree/a")
    try Self.shell("tar -cC tree a | \(program) -q -c > a.tar.z", in: cli)
    var bytes = try cli.directory.read("a.tar.z")
    // gzip has the size after the checksum; the others have nothing.
    bytes[bytes.count - (program == "gzip" ? 5 : 1)] ^= 1
    try cli.directory.write(bytes, at: "a.tar.z")
    let arguments = ["import", "tar", isPiped ? "-" : "a.tar.z", "--name", "a"]
    let input = isPiped ? bytes : []
    let outcome = try cli.run(arguments + ["--repo", "repo"], input: input)
    #expect(outcome.code == 3, "\(outcome)")
    #expect(outcome.errors.contains("any of the imported files may be wrong"), "\(outcome)")
    #expect(!outcome.errors.contains("what precedes the damage"), "\(outcome)")
    let structured = try cli.run(arguments + ["--json", "--repo", "repo"], input: input)
    let report = try CommandLine.object(structured.output)
    #expect(structured.code == 3 && report["suspect"] as? Bool == true, "\(report)")
    #expect(report["damage"] as? String != nil, "\(report)")
  }

  /// A writer that fails between two entries leaves a tar that only lacks its end.
  @Test func aPipeThatEndsBetweenEntriesIsIncomplete() throws {
    let cli = try Self.fixture()
    try cli.directory.write("text", at: "tree/a")
    try cli.directory.write("more", at: "tree/b")
    try Self.shell("tar --format=ustar -cC tree a b > a.tar", in: cli)
    let bytes = Array(try cli.directory.read("a.tar").prefix(1024))
    let outcome = try cli.run(
      ["import", "tar", "-", "--name", "piped", "--repo", "repo"], input: bytes)
    #expect(outcome.code == 3 && outcome.errors.contains("it has no end mark"), "\(outcome)")
    #expect(try cli.succeed("dump latest:folders/piped/a --repo repo") == "text")
  }

  @Test func wrongUseIsRefused() throws {
    let cli = try Self.fixture()
    try cli.directory.write("no archive", at: "text")
    try cli.directory.write("x", at: "tree/a")
    try Self.shell("tar -cf a.tar tree; tar -cf empty.tar -T /dev/null", in: cli)
    for (line, code, reason) in [
      ("import tar --repo repo", Int32(2), "file"),
      ("import tar nowhere.tar --repo repo", 1, "nowhere.tar"),
      ("import tar text --repo repo", 1, "not an archive of a known format"),
      ("import zip a.tar --repo repo", 1, "not an archive of a known format"),
      ("import tar tree --repo repo", 1, "directory"),
      ("import tar empty.tar --repo repo", 1, "it has no entries"),
      ("import tar a.tar --repo nowhere", 10, "nowhere"),
      ("import rar a.tar --repo repo", 2, "rar"),
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
    #expect(try cli.snapshots().isEmpty)
  }

  @Test func aZipIsImported() throws {
    let cli = try Self.fixture()
    try cli.directory.write("text", at: "tree/caf\u{e9}")
    try Self.shell("chmod 640 tree/*; ln -s there tree/link; zip -qry a.zip tree", in: cli)
    let report = try cli.json("import zip a.zip --json --repo repo")
    #expect((report["format"] as? String)?.hasPrefix("ZIP") == true, "\(report)")
    #expect(try cli.succeed("dump latest:folders/a/tree/caf\u{e9} --repo repo") == "text")
    let listed = try cli.jsonLines("ls latest:folders/a/tree --json --repo repo")
    #expect(listed.contains { $0["mode"] as? Int == 0o640 }, "\(listed)")
    #expect(listed.contains { $0["target"] as? String == "there" }, "\(listed)")
  }

  /// An import into an encrypted repository needs no key. If all repositories are encrypted, the
  /// environment names the key of another one.
  @Test(.enabled(if: !TestEncryption.isOn))
  func anImportIntoAnEncryptedRepositoryNeedsNoKey() throws {
    let cli = try CommandLine()
    try cli.directory.write("a long passphrase\n", at: "word")
    _ = try cli.succeed("init secret --passphrase-file word --recovery-key rescue --no-default")
    try cli.directory.write("text", at: "tree/a")
    try Self.shell("tar -cf a.tar tree", in: cli)
    let outcome = try cli.run("import tar a.tar --repo secret --quiet")
    #expect(outcome.code == 0, "\(outcome.errors)")
    let text = try cli.succeed(
      "dump latest:folders/a/tree/a --passphrase-file word --repo secret")
    #expect(text == "text")
  }
}
