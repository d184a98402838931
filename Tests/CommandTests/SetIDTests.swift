import Foundation
import SystemIO
import TestSupport
import Testing

/// Set-user-ID programs are restored with that bit only for their owner.
struct SetIDTests {
  /// Makes the programs, backs them up, and makes all files accessible to `nobody` except the
  /// stored owners.
  private func fixture() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    for name in ["user", "group"] as [ByteString] {
      try cli.directory.write("text", at: ByteString("tree").appending(name))
    }
    // A file of several pieces is written step by step.
    try cli.directory.write([UInt8](repeating: 7, count: 20 << 20), at: "tree/large")
    let tree = try Directory.open(path: cli.directory.path("tree"))
    _ = try tree.makeDirectory("folder")
    for (name, mode) in [("user", 0o4755), ("group", 0o2755), ("large", 0o6711)] {
      try tree.setPermissions(UInt16(mode), of: ByteString(name))
    }
    try tree.setPermissions(0o2755, of: "folder")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    return cli
  }

  private func modes(_ cli: CommandLine) throws -> [UInt16] {
    let back = try Directory.open(path: cli.directory.path("back"))
    return try ["user", "group", "large", "folder"].map { try back.status($0).permissions }
  }

  @Test func ownerRestoresSetUserIDBits() throws {
    let cli = try fixture()
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    #expect(try modes(cli) == [0o4755, 0o2755, 0o6711, 0o2755])
  }

  @Test(.enabled(if: Host.userID == 0)) func otherUsersDoNotRestoreSetUserIDBits() throws {
    let cli = try fixture()
    defer { cli.open() }
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    let line = "restore latest:folders/tree --to back --repo repo"
    let outcome = try cli.runAsNobody(line)
    #expect(outcome.code == 3, "\(outcome.errors)")
    for name in ["user", "group", "large", "folder"] {
      #expect(outcome.errors.contains("\(name): its set-user-ID and set-group-ID bits"), "\(name)")
    }
    #expect(try modes(cli) == [0o755, 0o755, 0o711, 0o755])
    // They are restored as far as possible: a second run has nothing to do.
    let again = try cli.runAsNobody("\(line) --overwrite if-changed")
    #expect(again.code == 0 && again.output.contains("in 0 files, 0 directories from"), "\(again)")
  }
}
