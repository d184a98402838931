import Foundation
import SystemIO
import TestSupport
import Testing

/// A restore in place of a plain directory that no longer exists.
struct MissingRootTests {
  private let cli: CommandLine
  private let before: [ByteString: TreeRecord]
  private let own: FileStatus

  init() throws {
    cli = try CommandLine(inMemory: true)
    try cli.directory.write("text", at: "above/tree/file")
    try cli.directory.write("more", at: "above/tree/folder/inner")
    let tree = try Directory.open(path: cli.directory.path("above/tree"))
    try tree.attributes.set("user.note", to: [1, 2])
    try tree.setPermissions(0o751)
    if Host.userID == 0 { try tree.setOwner(user: 1234, group: 4321) }
    try tree.setModified(Timestamp(seconds: 1_000_000_000))
    before = try TreeRecord.all(in: cli.directory, "above")
    own = try tree.status()
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root above/tree --repo repo --quiet")
    try cli.directory.directory.directory("above").removeTree("tree")
  }

  /// The entries below the parent directory, except the program's own.
  private func records() throws -> [ByteString: TreeRecord] {
    try TreeRecord.all(in: cli.directory, "above").filter {
      !$0.key.components.contains(".sandboxctl")
    }
  }

  @Test func missingDirectoryIsRestoredCompletely() throws {
    let output = try cli.succeed("restore latest --in-place --repo repo")
    #expect(output.contains("restored"), "\(output)")
    let found = try records()
    let different = Set(before.keys).union(found.keys).filter { before[$0] != found[$0] }
    #expect(different.isEmpty, "\(different)")
    // There was nothing to save, so no snapshot was made.
    #expect(try cli.snapshots().count == 1)
    _ = try cli.succeed("backup --layout folder --root above/tree --repo repo --quiet")
  }

  @Test func partOfAMissingDirectoryIsRestored() throws {
    let path = cli.directory.string + "/above/tree/folder"
    _ = try cli.succeed("restore \(path) --in-place --repo repo")
    let found = try records()
    #expect(Set(found.keys) == ["tree", "tree/folder", "tree/folder/inner"])
    #expect(found["tree/folder/inner"] == before["tree/folder/inner"])
    let status = try Directory.open(path: cli.directory.path("above/tree")).status()
    #expect(status.permissions == 0o751 && status.user == own.user && status.group == own.group)
    #expect(status.modified == own.modified)
  }

  /// A restore that was killed right after it created the directory leaves it empty.
  @Test func emptyDirectoryOfAKilledRestoreCountsAsMissing() throws {
    let above = try Directory.open(path: cli.directory.path("above"))
    try above.createDirectory("tree", permissions: 0o700)
    let refused = try cli.run("restore latest:folders/tree/none --in-place --repo repo")
    #expect(refused.code == 1, "\(refused.errors)")
    #expect(try cli.names(in: "above") == ["tree"], "it may be the user's own")
    let plan = try cli.succeed(
      "restore latest:folders/tree/folder --in-place --dry-run --repo repo")
    #expect(plan.contains("would restore 4 B in 1 file"), "\(plan)")
    _ = try cli.succeed("restore latest:folders/tree/folder --in-place --repo repo")
    let status = try above.status("tree")
    #expect(status.permissions == 0o751 && status.user == own.user && status.group == own.group)
    #expect(status.modified == own.modified)
    #expect(try records().keys.sorted() == ["tree", "tree/folder", "tree/folder/inner"])
  }

  /// Other directories keep their own metadata if only a part is restored into them.
  @Test(arguments: [("tree", 0o755, nil), ("tree", 0o700, "tree/other")])
  func otherDirectoriesKeepTheirMetadata(
    _ name: String, _ mode: Int, _ content: String?
  ) throws {
    let above = try Directory.open(path: cli.directory.path("above"))
    try above.createDirectory(ByteString(name), permissions: UInt16(mode))
    if let content { try cli.directory.write("x", at: ByteString("above/\(content)")) }
    _ = try cli.succeed("restore latest:folders/tree/folder --in-place --repo repo")
    #expect(try above.status("tree").permissions == UInt16(mode))
  }

  @Test func dryRunCreatesNothing() throws {
    let text = try cli.succeed("restore latest --in-place --dry-run --repo repo")
    #expect(text.contains("create  folders/tree -> \(cli.directory.string)/above/tree"), "\(text)")
    #expect(text.contains("would restore 8 B in 2 files"), "\(text)")
    #expect(try cli.names(in: "above").isEmpty)
  }

  @Test func missingParentDirectoryIsAnError() throws {
    try cli.directory.directory.removeDirectory("above")
    for dry in ["", " --dry-run"] {
      let outcome = try cli.run("restore latest --in-place --repo repo\(dry)")
      #expect(outcome.code == 1, "\(outcome.errors)")
      #expect(outcome.errors.contains("its parent directory does not exist"))
      #expect(outcome.errors.contains("'--to DIR'"))
    }
    #expect(try !cli.isThere("above"))
  }

  /// Otherwise root would write to a place to which the user who made the link cannot.
  @Test func linksOnThePathAreNotFollowed() throws {
    try cli.directory.directory.removeDirectory("above")
    _ = try Directory.make(path: cli.directory.path("elsewhere"))
    try cli.directory.directory.createLink("above", to: "elsewhere")
    let outcome = try cli.run("restore latest --in-place --repo repo")
    #expect(outcome.code == 1 && outcome.errors.contains("a symbolic link is on its path"))
    #expect(try cli.names(in: "elsewhere").isEmpty)
  }

  @Test func refusedRestoreLeavesNoDirectory() throws {
    let outcome = try cli.run("restore latest:folders/tree/none --in-place --repo repo")
    #expect(outcome.code == 1, "\(outcome.errors)")
    #expect(try cli.names(in: "above").isEmpty)
  }

  @Test func fileAtTheDirectorysPathIsAnError() throws {
    try cli.directory.write("a file", at: "above/tree")
    let outcome = try cli.run("restore latest --in-place --repo repo")
    #expect(outcome.code == 1 && outcome.errors.contains("not a directory"), "\(outcome.errors)")
    #expect(try cli.directory.read("above/tree") == Array("a file".utf8))
  }
}
