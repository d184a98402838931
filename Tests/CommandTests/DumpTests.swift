import Foundation
import SystemIO
import TestSupport
import Testing

/// Stored files and directories on standard output.
struct DumpTests {
  private static func odd() throws -> CommandLine {
    let cli = try CommandLine()
    try OddTree.make(in: cli.directory, at: "tree")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    return cli
  }

  @Test func dumpedFileHasTheOriginalBytes() throws {
    let cli = try CommandLine()
    var random = Seeded(3)
    let bytes = random.bytes(3_000_000)
    try cli.directory.write(bytes, at: "tree/large")
    try cli.directory.write([], at: "tree/empty")
    let sparse = "truncate -s 1M tree/hole; printf x | dd of=tree/hole bs=1 seek=70000 conv=notrunc"
    _ = try Program.run("/bin/sh", ["-ec", sparse], in: cli.directory.url)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    for name: ByteString in ["large", "empty", "hole"] {
      let outcome = try cli.run("dump latest:folders/tree/\(name) --repo repo")
      #expect(outcome.code == 0 && outcome.errors.isEmpty)
      #expect(try outcome.standardOutput == cli.directory.read(ByteString("tree").appending(name)))
    }
  }

  /// A prune beside a dump with a slow reader does not remove data that the dump still needs.
  @Test func pruneBesideADumpCostsNoData() throws {
    let cli = try CommandLine()
    var random = Seeded(5)
    let bytes = random.bytes(12_000_000)
    try cli.directory.write(bytes, at: "tree/large")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try cli.directory.write("small", at: "tree/large")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let script = """
      mkfifo pipe
      "$0" dump latest~1:folders/tree/large --repo repo > pipe & D=$!
      exec 3< pipe
      head -c 1000 <&3 > dumped
      "$0" leases --json --repo repo > leases.json
      "$0" forget latest~1 --prune --repo repo > pruned
      cat <&3 >> dumped
      wait $D || exit 9
      "$0" leases --repo repo --json > later.json
      "$0" prune --repo repo > pruned-later
      """
    let outcome = try cli.run([], under: ["bash", "-ec", script])
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try cli.directory.read("dumped") == bytes)
    func text(_ path: ByteString) throws -> String {
      String(decoding: try cli.directory.read(path), as: UTF8.self)
    }
    #expect(try text("leases.json").contains(#""use":"read""#))
    #expect(try text("pruned").contains("may be needed by 1 running program"))
    #expect(try text("later.json").isEmpty)
    #expect(try text("pruned-later").contains("removed "))
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
  }

  /// The lease of a killed program stays, and is not reported as that of a running one. A user may
  /// examine less of the program's own process than root.
  @Test(arguments: [false, true]) func aKilledProgramIsReportedAsEnded(byNobody: Bool) throws {
    let cli = try CommandLine()
    var random = Seeded(5)
    try cli.directory.write(random.bytes(12_000_000), at: "tree/large")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try cli.directory.write("small", at: "tree/large")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let script = """
      mkfifo pipe
      "$0" dump latest~1:folders/tree/large --repo repo > pipe & D=$!
      exec 3< pipe
      head -c 1000 <&3 > dumped
      "$0" leases --json --repo repo > running
      kill -KILL $D
      wait $D || true
      "$0" leases --json --repo repo > ended
      "$0" check --repo repo > checked
      "$0" forget latest~1 --prune --repo repo > pruned
      "$0" prune --json --repo repo > pruned.json
      """
    var words = ["bash", "-ec", script]
    if byNobody, Host.userID == 0 {
      _ = try Program.run("chown", ["-R", "65534:65534", "."], in: cli.directory.url)
      words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + words
    }
    let outcome = try cli.run(
      [], under: words, environment: byNobody ? TestEncryption.environmentOfNobody : [:])
    #expect(outcome.code == 0, "\(outcome.errors)")
    func text(_ path: ByteString) throws -> String {
      String(decoding: try cli.directory.read(path), as: UTF8.self)
    }
    #expect(try text("running").contains(#""state":"running""#))
    #expect(try text("ended").contains(#""state":"ended""#))
    #expect(try text("checked").contains("a program that has ended left 0 unfinished objects"))
    let pruned = try text("pruned")
    #expect(
      pruned.contains(" for 1 program that ended without releasing its lease, which expires at 2")
        && !pruned.contains("running program"), "\(pruned)")
    #expect(try text("pruned.json").contains(#""ended_leases":[{"lease":""#))
  }

  /// Extracting the archive gives the tree, whatever it contains.
  @Test func dumpedDirectoryIsACompleteArchive() throws {
    let cli = try Self.odd()
    let archive = try cli.run("dump latest:folders/tree --repo repo")
    #expect(archive.code == 0, "\(archive.errors)")
    #expect(archive.errors.split(separator: "\n").allSatisfy { $0.contains("socket") })
    _ = try Directory.make(path: cli.directory.path("back"))
    let extracted = try Program.run(
      "tar",
      ["-x", "-p", "--xattrs", "--xattrs-include=*", "--warning=no-timestamp", "-C", "back"],
      in: cli.directory.url, input: archive.standardOutput)
    #expect(extracted.code == 0 && extracted.errors.isEmpty, "\(extracted.errors)")
    let wanted = try OddTree.listing(cli.directory, "tree")
    let found = try OddTree.listing(cli.directory, "back")
    let differences = Set(wanted.keys).union(found.keys).filter { wanted[$0] != found[$0] }.sorted()
    // An archive contains no sockets, and its holes are zeros.
    #expect(
      differences.allSatisfy { name in
        name.description.contains("socket") || name.description.contains("sparse")
          || name.description.contains("hole")
      }, "\(differences)")
    let listed = try Program.run(
      "bsdtar", ["-tf", "-"], environment: ["LC_ALL": "C.UTF-8"], input: archive.standardOutput)
    #expect(listed.code == 0 && listed.errors.isEmpty, "\(listed.errors)")
  }

  @Test func logOfADatabaseIsNamedAndIncludedInTar() throws {
    let cli = try CommandLine()
    try cli.directory.write("database", at: "tree/db")
    try cli.directory.write("log", at: "tree/db-wal")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let alone = try cli.run("dump latest:folders/tree/db --repo repo")
    #expect(alone.code == 0 && alone.output == "database")
    #expect(alone.errors.hasPrefix("note: ") && alone.errors.contains("folders/tree/db-wal"))
    #expect(try cli.run("dump latest:folders/tree/db --quiet --repo repo").errors.isEmpty)
    let both = try cli.run("dump latest:folders/tree/db --tar --repo repo")
    let listed = try Program.run("tar", ["-t"], input: both.standardOutput)
    #expect(listed.output == "db\ndb-wal\n", "\(listed.errors)")
  }

  /// A damaged file is omitted from an archive, never truncated; the output of a single file ends
  /// before the damage.
  @Test func damagedFileIsOmitted() throws {
    let cli = try CommandLine.withDamagedFile()
    let archive = try cli.run("dump latest:folders/tree --repo repo")
    #expect(archive.code == 13)
    #expect(archive.errors.contains("damaged: a-first"), "\(archive.errors)")
    let listed = try Program.run("tar", ["-t"], input: archive.standardOutput)
    #expect(listed.code == 0 && listed.output == "b-second\n", "\(listed.errors)")
    let file = try cli.run("dump latest:folders/tree/a-first --repo repo")
    #expect(file.code == 13)
    let whole = try cli.directory.read("tree/a-first")
    #expect(file.standardOutput.count < whole.count)
    #expect(whole.starts(with: file.standardOutput))
  }

  /// A reader that closes the pipe ends the command without a message.
  @Test func closedPipeEndsTheDump() throws {
    let cli = try Self.odd()
    var random = Seeded(8)
    try cli.directory.write(random.bytes(2_000_000), at: "tree/large")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let line = "\(CommandLine.program) dump latest:folders --repo repo | head -c 100 | wc -c"
    let outcome = try Program.run(
      "/bin/sh", ["-c", line], environment: cli.environment, cleanEnvironment: true,
      in: cli.directory.url)
    #expect(outcome.output.contains("100") && outcome.errors.isEmpty, "\(outcome.errors)")
  }

  @Test func archiveIsNotWrittenToATerminal() throws {
    let cli = try Self.odd()
    let line = "\(CommandLine.program) dump latest --repo repo"
    let outcome = try Program.run(
      "script", ["-qec", line, "/dev/null"], environment: cli.environment, in: cli.directory.url)
    #expect(outcome.code == 2)
    #expect(outcome.output.contains("cannot write an archive to a terminal"), "\(outcome.output)")
  }
}
