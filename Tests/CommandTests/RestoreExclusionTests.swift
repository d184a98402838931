import Foundation
import SystemIO
import TestSupport
import Testing

/// Files excluded from a backup one by one: a restore with `--delete` does not know their names.
struct RestoreExclusionTests {
  private static let line = "restore latest:folders/tree --to tree --overwrite if-changed --delete"

  /// Makes a directory with a file that a backup excluded, and adds newer files.
  private func fixture(_ options: String) throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("a", at: "tree/a")
    try cli.directory.write("the only key", at: "tree/sub/key.pem")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet \(options)")
    try cli.directory.write("new", at: "tree/new")
    try cli.directory.write("new", at: "tree/folder/new")
    return cli
  }

  @Test(arguments: ["--exclude **/key.pem", "--exclude-larger-than 5"])
  func excludedFilesAreNotDeleted(_ options: String) throws {
    let cli = try fixture(options)
    for line in ["\(Self.line) --dry-run", Self.line] {
      let outcome = try cli.run("\(line) --repo repo")
      let text = outcome.output + outcome.errors
      for name in ["new", "sub/key.pem"] {
        #expect(text.contains("not deleted: \(name): it may be the file that"), "\(text)")
      }
      #expect(text.contains("'--delete-excluded'"))
    }
    #expect(try cli.names(in: "tree") == ["a", "new", "sub"])
    #expect(try cli.names(in: "tree/sub") == ["key.pem"])
    _ = try cli.succeed("\(Self.line) --delete-excluded --repo repo")
    #expect(try cli.names(in: "tree") == ["a", "sub"] && cli.names(in: "tree/sub") == [])
  }

  /// A restore reports how much the snapshot lacks of what was requested, and `snapshots show`
  /// lists it.
  @Test func missingDataIsReported() throws {
    let cli = try fixture("--exclude **/key.pem")
    for line in ["restore latest --to back --dry-run", "restore latest --to back"] {
      let outcome = try cli.run("\(line) --repo repo")
      #expect(
        outcome.errors == """
          note: the snapshot lacks data that its policy excluded: 12 B in 1 file; \
          'sandboxctl snapshots show --repo repo' lists it

          """, "\(outcome.errors)")
    }
  }

  /// The same in place, where the policy does not contain the exclusions of the command line.
  @Test func excludedFilesAreNotDeletedInPlace() throws {
    let cli = try fixture("--exclude **/key.pem")
    _ = try cli.succeed("restore latest --in-place --delete --no-snapshot --repo repo")
    #expect(try cli.names(in: "tree").filter { $0 != ".sandboxctl" } == ["a", "new", "sub"])
    #expect(try cli.names(in: "tree/sub") == ["key.pem"])
  }

  /// A repository that was made after the backup may have the only copies of other data.
  @Test func otherRepositoriesAreNotDeleted() throws {
    let cli = try fixture("")
    for path: ByteString in ["tree/later", "tree/above"] {
      _ = try Directory.make(path: cli.directory.path(path))
      if path == "tree/later" {
        _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
      }
    }
    let places = ["later": "later", "above": "above/vault", "vault": "vault"]
    for place in places.values { _ = try cli.succeed("init tree/\(place) --plain") }
    try cli.directory.write("mine", at: "tree/mine/repository.json")
    for line in ["\(Self.line) --dry-run", Self.line] {
      let outcome = try cli.run("\(line) --repo repo")
      let text = outcome.output + outcome.errors
      #expect(outcome.code == 0, "\(text)")
      for name in places.keys {
        #expect(text.contains("not deleted: \(name): another repository is there\n"), "\(text)")
      }
    }
    for place in places.values {
      #expect(try cli.names(in: ByteString("tree/\(place)")).contains("repository.json"))
      _ = try cli.succeed("check --repo tree/\(place)")
    }
    #expect(
      try cli.names(in: "tree") == ["a", "above", "folder", "later", "new", "sub", "vault"])
    _ = try cli.succeed("\(Self.line) --delete-excluded --repo repo")
    #expect(try cli.names(in: "tree") == ["a", "folder", "later", "new", "sub"])
    #expect(try cli.names(in: "tree/later") == [])
  }

  /// A device below the target has its journal and its trash there: they may have the only copies
  /// of other data, and the snapshot may have an older state of them.
  @Test func directoriesOfDevicesAreNotDeleted() throws {
    let cli = try fixture("")
    try cli.directory.write("old", at: "tree/stored/.sandboxctl/trash/old/file")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let added: [ByteString] = [
      "tree/above/app/.sandboxctl/journal/later", "tree/stored/.sandboxctl/trash/later/file",
      "tree/sub/.sandboxctl/trash/later/file",
    ]
    for path in added { try cli.directory.write("kept", at: path) }
    try cli.directory.write("a file", at: "tree/file/.sandboxctl")
    for line in ["\(Self.line) --dry-run", Self.line] {
      let outcome = try cli.run("\(line) --repo repo")
      let text = outcome.output + outcome.errors
      #expect(outcome.code == 0, "\(text)")
      for path in ["above", "stored/.sandboxctl/trash", "sub/.sandboxctl"] {
        #expect(
          text.contains(
            "not deleted: \(path): files of this program are there, such as a device's journal "
              + "and trash\n"), "\(text)")
      }
    }
    _ = try cli.succeed("restore latest --in-place --delete --no-snapshot --repo repo")
    for path in added {
      #expect(try cli.directory.read(path) == Array("kept".utf8), "\(path)")
    }
    #expect(
      try cli.names(in: "tree").filter { $0 != ".sandboxctl" }
        == ["a", "above", "folder", "new", "stored", "sub"])
    _ = try cli.succeed("\(Self.line) --delete-excluded --repo repo")
    #expect(try cli.names(in: "tree/sub") == ["key.pem"])
    #expect(try cli.names(in: "tree/stored/.sandboxctl/trash") == ["old"])
    #expect(
      try cli.names(in: "tree").filter { $0 != ".sandboxctl" }
        == ["a", "folder", "new", "stored", "sub"])
  }

  /// Without exclusions, files that are not in the snapshot are deleted.
  @Test func withoutExclusionsOtherFilesAreDeleted() throws {
    let cli = try fixture("")
    let text = try cli.succeed("\(Self.line) --repo repo")
    #expect(text.contains("unchanged 13 B in 2 files"), "\(text)")
    #expect(try cli.names(in: "tree") == ["a", "sub"])
  }
}
