import Foundation
import SystemIO
import TestSupport
import Testing

/// `export tar`, `export zip` and `export all` on the command line.
struct ExportTests {
  private static func fixture() throws -> CommandLine {
    let cli = try CommandLine()
    try OddTree.make(in: cli.directory, at: "tree")
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    return cli
  }

  private static func tree(_ cli: CommandLine, _ snapshot: String = "latest") throws -> String {
    try #require(
      try cli.json("snapshots show \(snapshot) --json --repo repo")["tree"] as? String)
  }

  private static func names(_ cli: CommandLine, _ path: ByteString) throws -> [String] {
    try cli.names(in: path).map(\.description).sorted()
  }

  /// A tree that is exported and imported under the same name is the same, whatever it contains.
  @Test(arguments: ["out.tar", "out.tar.gz", "out.tar.zst"])
  func anExportIsImportedAsItWas(file: String) throws {
    let cli = try Self.fixture()
    // An archive cannot hold a socket.
    try FileManager.default.removeItem(atPath: cli.directory.string + "/tree/socket")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let before = try Self.tree(cli)
    _ = try cli.succeed("export tar latest:folders/tree \(file) --repo repo")
    let status = try Directory.open(path: cli.directory.path("")).status(ByteString(file))
    #expect(status.permissions == 0o600)
    _ = try cli.succeed("import tar \(file) --name tree --repo repo")
    #expect(try Self.tree(cli) == before)
  }

  @Test func otherProgramsExtractAnExport() throws {
    let cli = try Self.fixture()
    let outcome = try cli.run("export tar latest:folders/tree out.tar.zst --repo repo")
    #expect(outcome.code == 0 && outcome.errors.contains("socket"), "\(outcome.errors)")
    _ = try Directory.make(path: cli.directory.path("back"))
    let extracted = try Program.run(
      "tar", ["-xpf", "out.tar.zst", "--xattrs", "--xattrs-include=*", "-C", "back"],
      in: cli.directory.url)
    #expect(extracted.code == 0, "\(extracted.errors)")
    try FileManager.default.removeItem(atPath: cli.directory.string + "/tree/socket")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  @Test func aSingleFileAndStandardOutputAreExported() throws {
    let cli = try Self.fixture()
    let piped = try cli.run("export tar latest:folders/tree/folder - --repo repo")
    #expect(piped.code == 0, "\(piped.errors)")
    let listed = try Program.run("tar", ["-t"], input: piped.standardOutput)
    #expect(listed.output == "./\ninner/\ninner/file\n", "\(listed.output)\(listed.errors)")
    let json = try cli.json("export tar latest:folders/tree/large one.tar --json --repo repo")
    #expect(json["entries"] as? Int == 1 && json["path"] as? String == "one.tar")
    let one = try Program.run("tar", ["-tf", "one.tar"], in: cli.directory.url)
    #expect(one.output == "large\n")
  }

  @Test func aFileIsNeverReplacedOrLeftIncomplete() throws {
    let cli = try Self.fixture()
    try cli.directory.write("precious", at: "out.tar")
    let present = try cli.run("export tar latest out.tar --repo repo")
    #expect(present.code == 1 && present.errors.contains("exists"), "\(present.errors)")
    #expect(try cli.directory.read("out.tar") == Array("precious".utf8))
    for (line, code, reason) in [
      ("export tar --repo repo", Int32(2), "file"),
      ("export tar a b c --repo repo", 2, "file"),
      ("export tar latest:folders/none x.tar --repo repo", 1, "no such path"),
      ("export tar latest nowhere/x.tar --repo repo", 1, "nowhere"),
      ("export tar latest - --json --repo repo", 2, "--json"),
      ("export tar latest x.tar --compress lzo --repo repo", 2, "lzo"),
      ("export tar latest repo/x.tar --repo repo", 2, "is inside the other"),
      ("export zip latest repo/packs/x.zip --repo repo", 2, "is inside the other"),
      ("export all repo/in --repo repo", 2, "is inside the other"),
      ("export all repo --repo repo", 2, "is the repository"),
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == code && outcome.errors.contains(reason), "\(line): \(outcome)")
    }
    #expect(
      try Self.names(cli, "").filter { $0.contains("x.tar") || $0.contains(".tmp") }.isEmpty)
  }

  /// A reader that trusts the name of a file would call another format damaged.
  @Test func namesOfOtherFormatsAreRefused() throws {
    let cli = try CommandLine()
    try cli.directory.write("text", at: "tree/file")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    for (line, hint) in [
      ("tar x.zip", "'sandboxctl export zip' writes"), ("tar x.ab", "'sandboxctl export android'"),
      ("tar x.rar", "no export writes that format"), ("tar x.tar.bz2", "the ending .tar.zst or"),
      ("tar x.TXZ", "the ending .tar.zst or"),
      ("tar x.tar.gz --compress zstd", "omit '--compress' for gzip"),
      ("zip x.tar.gz", "'sandboxctl export tar' writes"), ("zip x.7z", "no export writes"),
      ("android x.tar", "'sandboxctl export tar'"), ("snap x.tar.gz", "'sandboxctl export tar'"),
      ("ipa x.tar --app none", "'sandboxctl export tar'"),
    ] {
      let outcome = try cli.run("export \(line) --repo repo")
      #expect(outcome.code == 2 && outcome.errors.contains(hint), "\(line): \(outcome.errors)")
    }
    #expect(try Self.names(cli, "").filter { $0.hasPrefix("x.") }.isEmpty)
    for line in ["tar plain", "tar data.v2", "tar x.tar --compress gzip", "zip x.ZIP"] {
      _ = try cli.succeed("export \(line) --repo repo --quiet")
    }
    _ = try cli.succeed("export tar upper.TAR.GZ --repo repo --quiet")
    #expect(try cli.directory.read("upper.TAR.GZ").starts(with: [0x1F, 0x8B]))
  }

  @Test func zipNamesWhatItCannotHold() throws {
    let cli = try Self.fixture()
    let outcome = try cli.run("export zip latest:folders/tree out.zip --repo repo")
    #expect(outcome.code == 3)
    #expect(outcome.errors.contains("not exported: fifo: a zip archive cannot hold a FIFO"))
    #expect(outcome.errors.contains("'user.note'"), "\(outcome.errors)")
    let tested = try Program.run(
      "python3", ["-m", "zipfile", "-t", "out.zip"], in: cli.directory.url)
    #expect(tested.code == 0 && tested.errors.isEmpty, "\(tested.output)\(tested.errors)")
    _ = try cli.succeed("import zip out.zip --name z --repo repo")
    // Two of the names differ in their Unicode form only.
    #expect(try cli.succeed("dump latest:folders/z/caf\u{e9} --repo repo") == "\u{2}")
    #expect(try cli.succeed("dump latest:folders/z/cafe\u{301} --repo repo") == "\u{3}")
    #expect(try cli.succeed("dump latest:folders/z/folder/inner/file --repo repo") == "in")
  }

  /// A damaged file is omitted and reported, as by `dump`.
  @Test func damagedFilesAreOmitted() throws {
    let cli = try CommandLine.withDamagedFile()
    let outcome = try cli.run("export tar latest:folders/tree out.tar --repo repo")
    #expect(outcome.code == 13 && outcome.errors.contains("damaged: a-first"), "\(outcome.errors)")
    let listed = try Program.run("tar", ["-tf", "out.tar"], in: cli.directory.url)
    #expect(listed.output == "./\nb-second\n")
  }

  /// An archive without the damaged files has a different name, and the next export is not
  /// successful.
  @Test func anIncompleteArchiveIsNotTakenForAWholeOne() throws {
    let cli = try CommandLine.withDamagedFile()
    for _ in 0..<2 {
      let outcome = try cli.run("export all out --repo repo")
      #expect(outcome.code == 13 && outcome.errors.contains("a-first"), "\(outcome.errors)")
      let names = try Self.names(cli, "out")
      #expect(names.count == 1 && names[0].hasSuffix(".incomplete.tar.zst"), "\(names)")
    }
  }

  /// Archives that exist are complete and are not written again; what a killed export left behind
  /// is removed.
  @Test func allSnapshotsAreExportedOnce() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
    for round in 0..<3 {
      try cli.directory.write("round \(round)", at: "tree/file")
      _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    }
    let option = try cli.run("export --all out --repo repo")
    #expect(option.code == 2 && option.errors.contains("'sandboxctl export all DIR'"), "\(option)")
    for line in ["tar latest", "zip latest~1", "tar latest:folders", "itunes latest"] {
      let outcome = try cli.run("export \(line) --repo repo")
      #expect(outcome.code == 2 && outcome.errors.contains(" is given for the snapshot 'latest"))
      #expect(try !cli.isThere("latest") && !cli.isThere("latest~1"), "\(outcome.errors)")
    }
    let first = try cli.succeed("export all out --repo repo")
    #expect(first.hasSuffix("to 'out'\n") && first.contains("wrote 3 of 3 snapshots"), "\(first)")
    let names = try Self.names(cli, "out")
    #expect(names.count == 3 && names.allSatisfy { $0.hasSuffix(".tar.zst") }, "\(names)")
    let ids = try cli.snapshots()
    for name in names {
      #expect(ids.contains { name.contains($0.prefix(12)) }, "\(name)")
      let listed = try Program.run("tar", ["-tf", "out/" + name], in: cli.directory.url)
      #expect(listed.output == "folders/\nfolders/tree/\nfolders/tree/file\n", "\(listed)")
    }
    // As after an interruption: one archive is missing, and a part of it was left.
    try FileManager.default.removeItem(atPath: cli.directory.string + "/out/" + names[1])
    try cli.directory.write("part", at: "out/.sandboxctl-0123456789abcdef.tmp")
    let lines = try cli.jsonLines("export all out --json --repo repo")
    let outcomes = lines.compactMap { $0["outcome"] as? String }
    #expect(outcomes.sorted() == ["present", "present", "written"])
    let summary = try #require(lines.last?["summary"] as? [String: Any])
    #expect(summary["written"] as? Int == 1 && summary["present"] as? Int == 2)
    #expect(try Self.names(cli, "out") == names)
  }

  /// A killed export leaves a temporary file behind, which the next one into the directory removes.
  @Test func whatAKilledExportLeavesBehindIsRemovedByTheNext() throws {
    let cli = try CommandLine()
    var random = Seeded(7)
    try cli.directory.write(random.bytes(300_000), at: "tree/file")
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try cli.directory.write("mine", at: "out/.sandboxctl-output-mine.tmp")
    guard Strace.isPermitted else { return }
    for name in ["a.tar", "b.zip"] {
      let kind = name.hasSuffix("tar") ? "tar" : "zip"
      let strace = try Strace("renameat2", killingAt: 1)
      let killed = try cli.run(
        ["export", kind, "latest", "out/" + name, "--repo", "repo"], under: strace.command)
      #expect(killed.code != 0, "\(killed)")
      #expect(try strace.log().contains("killed by SIGKILL"))
      let left = try Self.names(cli, "out").filter { $0 != ".sandboxctl-output-mine.tmp" }
      #expect(left.count == 1 && left[0].hasPrefix(".sandboxctl-output-"), "\(left)")
    }
    _ = try cli.succeed("export tar latest out/a.tar --repo repo --quiet")
    #expect(try Self.names(cli, "out") == [".sandboxctl-output-mine.tmp", "a.tar"])
  }

  @Test func anExportOfAllDescribesADamagedSnapshotAndWritesTheOthers() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
    for round in 0..<2 {
      try cli.directory.write("round \(round)", at: "tree/file")
      _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    }
    let ids = try cli.snapshots()
    try Data("{}".utf8).write(to: URL(fileURLWithPath: cli.path(ofSnapshot: ids[0])))
    let outcome = try cli.run("export all out --repo repo")
    #expect(outcome.code == 13, "\(outcome.errors)")
    let names = try Self.names(cli, "out")
    #expect(names.count == 1 && names[0].contains(ids[1].prefix(12)))
  }

  /// An export that certainly does not fit is refused before anything is written; one that may fit
  /// is attempted.
  @Test(.enabled(if: try Mount.isPermitted()))
  func anExportWithoutRoomIsRefusedOrRemoved() throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(5)
    try cli.directory.write(random.bytes(3 << 20), at: "tree/large")
    try cli.directory.write([UInt8](repeating: 65, count: 3 << 20), at: "plain/even")
    _ = try cli.succeed("init repo --plain --no-default")
    for name in ["tree", "plain"] {
      _ = try cli.succeed("backup --layout folder --root \(name) --repo repo --quiet")
    }
    _ = try Directory.make(path: cli.directory.path("small"))
    let mount = try Mount(inMemory: "size=1m", on: cli.directory.path("small"))
    defer { withExtendedLifetime(mount) {} }
    let ids = try cli.snapshots().map { $0.prefix(12) }
    let tree = try #require(
      try ids.first { try cli.succeed("ls \($0) --recursive --repo repo").contains("large") })
    let plain = try #require(ids.first { $0 != tree })
    for (line, place) in [
      ("export tar \(tree) small/a.tar", "small"),
      ("export itunes \(tree) small/phone", "small/phone"),
      // The directory itself may be the volume.
      ("export itunes \(tree) small", "small"),
    ] {
      let refused = try cli.run("\(line) --repo repo")
      #expect(refused.code == 1, "\(line): \(refused.errors)")
      #expect(refused.errors.contains("cannot export to '\(place)': "), "\(refused.errors)")
      #expect(refused.errors.contains("are needed, but only"), "\(refused.errors)")
      #expect(try Self.names(cli, "small").isEmpty)
    }
    let warning = "warning: there may not be enough space in 'small'"
    let full = try cli.run("export zip \(tree) small/a.zip --repo repo")
    #expect(full.code == 1 && full.errors.contains("no space"), "\(full.errors)")
    #expect(full.errors.contains(warning), "\(full.errors)")
    #expect(try Self.names(cli, "small").isEmpty)
    let fits = try cli.run("export tar \(plain) small/a.tar.zst --repo repo")
    #expect(fits.code == 0, "\(fits.errors)")
    #expect(fits.errors.contains(warning), "\(fits.errors)")
    #expect(try Self.names(cli, "small") == ["a.tar.zst"])
  }

  /// The leftovers of a killed export take no space from the next one.
  @Test(.enabled(if: try Mount.isPermitted())) func leftoversDoNotPreventAnExport() throws {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(6)
    try cli.directory.write(random.bytes(512 << 10), at: "tree/half")
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    _ = try Directory.make(path: cli.directory.path("small"))
    let mount = try Mount(inMemory: "size=1m", on: cli.directory.path("small"))
    defer { withExtendedLifetime(mount) {} }
    try cli.directory.write(
      random.bytes(900 << 10), at: "small/.sandboxctl-output-0123456789abcdef.tmp")
    let outcome = try cli.run("export tar small/a.tar --repo repo")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try Self.names(cli, "small") == ["a.tar"])
  }
}
