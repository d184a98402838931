import Foundation
import SystemIO
import TestSupport
import Testing

/// The targets of restores: directories that must not be replaced, such as the repository and the
/// working directory, and file systems and limits that do not permit everything.
struct RestoreTargetTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine(inMemory: true)
    try cli.directory.write("a", at: "tree/a")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
  }

  /// Runs a command line in a subdirectory.
  private func run(_ line: String, in name: String) throws -> Program.Outcome {
    try Program.run(
      CommandLine.program, line.split(separator: " ").map(String.init),
      environment: cli.environment, cleanEnvironment: true,
      in: cli.directory.url.appendingPathComponent(name))
  }

  /// Returns the repository's files and directories, without the directory of leases: a restore
  /// takes one for a moment.
  private func repository() throws -> [ByteString: TreeRecord] {
    try OddTree.listing(cli.directory, "repo").filter { $0.key.lastComponent != "leases" }
  }

  @Test(arguments: [
    "repo", "repo/packs", "repo/packs/new", "repo/new/er", "link", "link/new", "tree/../repo/x",
  ])
  func repositoryIsNoTarget(_ target: String) throws {
    try cli.directory.directory.createLink("link", to: "repo/packs")
    let before = try repository()
    for mode in ["", " --overwrite if-changed --delete", " --overwrite always --dry-run"] {
      for path in ["folders/tree", "folders/tree/a"] {
        let outcome = try cli.run("restore latest:\(path) --to \(target) --repo repo\(mode)")
        #expect(outcome.code == 2 && outcome.errors.contains("the repository"), "\(outcome)")
        #expect(outcome.errors.contains("choose a directory outside"), "\(outcome.errors)")
      }
    }
    #expect(try repository() == before)
  }

  /// The parent of the repository is not part of it.
  @Test func parentOfTheRepositoryIsATarget() throws {
    let line = "restore latest:folders/tree --to . --repo repo --overwrite always --delete"
    _ = try cli.succeed(line)
    #expect(try cli.names(in: ".").filter { $0 != "home" } == ["a", "repo"])
    _ = try cli.succeed("check --repo repo")
  }

  /// Nor is the repository merged with a directory of the snapshot that has its path.
  @Test(arguments: ["", " --delete"]) func repositoryIsNotMergedInto(_ deletes: String) throws {
    try cli.directory.write("other", at: "source/repo/repository.json")
    try cli.directory.write("b", at: "source/b")
    _ = try cli.succeed("backup --layout folder --root source --repo repo --quiet")
    let before = try repository()
    let line = "restore latest:folders/source --to . --repo repo --overwrite always" + deletes
    let outcome = try cli.run(line)
    #expect(outcome.code == 3 && outcome.errors.contains("the repository in use is there"))
    #expect(
      try repository() == before && cli.names(in: ".").contains("b"))
    _ = try cli.succeed("check --repo repo")
  }

  @Test(arguments: [".", "", "../empty"])
  func workingDirectoryIsNotReplaced(_ target: String) throws {
    let empty = try Directory.make(path: cli.directory.path("empty"))
    let identity = try empty.status().identity
    let named = target.isEmpty ? cli.directory.string + "/empty" : target
    let outcome = try run("restore latest:folders/tree --to \(named) --repo ../repo", in: "empty")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try cli.directory.directory.status("empty").identity == identity)
    #expect(try empty.names() == ["a"])
    #expect(
      try OddTree.listing(cli.directory, "empty") == OddTree.listing(cli.directory, "tree"))
  }

  @Test func fileDoesNotReplaceTheWorkingDirectory() throws {
    let empty = try Directory.make(path: cli.directory.path("empty"))
    let line = "restore latest:folders/tree/a --repo ../repo"
    for mode in ["", " --overwrite always --delete"] {
      let outcome = try run("\(line) --to .\(mode)", in: "empty")
      #expect(outcome.code == 2 && outcome.errors.contains("path of the file"), "\(outcome.errors)")
    }
    #expect(try run("\(line) --to a", in: "empty").code == 0)
    #expect(try empty.names() == ["a"])
  }

  /// A device path that does not begin with a slash or a dot looks like a snapshot's name.
  @Test func ambiguousDevicePathGivesAHint() throws {
    try cli.directory.write("mine", at: "tree/a")
    let outcome = try cli.run("restore tree/a --in-place --repo repo")
    #expect(outcome.code == 2 && outcome.errors.contains("'tree/a' does not name a snapshot"))
    #expect(
      outcome.errors.contains("for the existing file of that name write './tree/a'; otherwise give")
    )
    _ = try cli.succeed("restore ./tree/a --in-place --repo repo")
    #expect(try cli.directory.read("tree/a") == Array("a".utf8))
    let lost = try cli.run("restore tree/none --in-place --repo repo")
    #expect(
      lost.code == 2
        && lost.errors.contains(
          "hint: for a path of the device write './tree/none', "
            + "for one in a snapshot 'latest:tree/none'; otherwise"),
      "\(lost.errors)")
    // No hint for one word that does not exist, or if a path is not accepted.
    for line in ["restore none --in-place", "ls tree", "snapshots show tree"] {
      let other = try cli.run(line + " --repo repo")
      #expect(other.code == 2 && !other.errors.contains("write './"), "\(line): \(other.errors)")
    }
  }

  // MARK: - File systems and limits

  private func backUp(_ options: String = "") throws {
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet\(options)")
  }

  /// A volume mounted on a directory with no data in the snapshot does not prevent a restore.
  @Test(.enabled(if: try Mount.isPermitted())) func mountOutsideOfTheSnapshotIsNoFailure() throws {
    let tree = try Directory.open(path: cli.directory.path("tree"))
    let mount = try Mount(on: tree, at: cli.directory.path("tree"), "disk")
    defer { withExtendedLifetime(mount) {} }
    try cli.directory.write("far", at: "tree/disk/far")
    try backUp()
    try cli.directory.write("changed", at: "tree/a")
    let restore = "restore latest --in-place --repo repo --no-snapshot"
    let outcome = try cli.run(restore)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let reason = "another volume is mounted there, and the snapshot has nothing to restore in it"
    #expect(
      outcome.errors.contains("note: skipped: folders/tree/disk: \(reason)"), "\(outcome.errors)")
    #expect(try cli.directory.read("tree/a") == Array("a".utf8))
    let merged = try cli.json(
      "restore latest:folders/tree --to tree --overwrite always --repo repo --json")
    let skipped = merged["skipped"] as? [[String: Any]] ?? []
    #expect(skipped.compactMap { $0.path() } == ["disk"])
    #expect(try cli.directory.read("tree/disk/far") == Array("far".utf8))
    // The data of the directory cannot be restored there.
    try backUp(" --cross-mounts")
    let blocked = try cli.run(restore)
    #expect(blocked.code == 3, "\(blocked.errors)")
    #expect(blocked.errors.contains("warning: not restored: folders/tree/disk"))
  }

  /// A file system may report success and change nothing.
  @Test(
    .enabled(if: Strace.isPermitted),
    arguments: [("fchmod", "modes_not_kept", "mode"), ("utimensat", "times_not_kept", "time")])
  func metadataThatIsNotKeptIsReportedOnce(call: String, member: String, what: String) throws {
    // A directory gets its mode after its content.
    for name: ByteString in ["one", "two"] {
      let directory = try Directory.make(path: cli.directory.path("tree").appending(name))
      try directory.setPermissions(0o755)
    }
    try backUp()
    let wrapper = [
      "strace", "-f", "-qq", "-o", "log", "-e", "trace=\(call)", "-e", "inject=\(call):retval=0",
    ]
    let restore = "restore latest:folders/tree --repo repo --to"
    let outcome = try cli.run("\(restore) back", under: wrapper)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let warnings = outcome.errors.split(separator: "\n").filter { $0.contains("does not keep") }
    #expect(warnings.count == 1, "\(outcome.errors)")
    #expect(warnings.first?.hasSuffix("with another \(what)") == true, "\(outcome.errors)")
    let report = try cli.run("\(restore) other --json", under: wrapper)
    let count = try CommandLine.object(report.output)[member] as? Int ?? 0
    #expect(count >= 2, "\(report.output)")
    let exact = try cli.json("\(restore) exact --json")
    #expect(exact[member] as? Int == 0)
  }

  @Test func tooFewOpenFilesLeaveNoStagingDirectory() throws {
    try cli.directory.write("b", at: "tree/sub/deeper/b")
    try backUp()
    var failures = 0
    // With fewer, the directory cannot be opened again to remove it.
    for limit in 15...24 {
      try? cli.directory.directory.removeTree("into")
      try cli.directory.write("mine", at: "into/a")
      let outcome = try cli.run(
        "restore latest:folders/tree --to into --overwrite always --repo repo",
        under: ["prlimit", "--nofile=\(limit):\(limit)"])
      if outcome.code != 0 { failures += 1 }
      let left = try cli.names(in: "into").filter { $0.description.hasPrefix(".sandboxctl") }
      #expect(left.isEmpty, "\(limit): \(outcome.errors)")
    }
    #expect(failures > 0)
  }
}
