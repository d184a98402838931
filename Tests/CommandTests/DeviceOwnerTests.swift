import SystemIO
import TestSupport
import Testing

/// Files that root creates on a user's device belong to the user.
@Suite(.enabled(if: Host.userID == 0)) struct DeviceOwnerTests {
  private static let nobody: UInt32 = 65534

  /// Returns all entries of the program's own directory with their owners.
  private func owners(_ directory: borrowing Directory) throws -> [ByteString: UInt32] {
    var found: [ByteString: UInt32] = [directory.path: try directory.status().user]
    for name in try directory.names() {
      let status = try directory.status(name)
      found[directory.path.appending(name)] = status.user
      if status.kind == .directory { found.merge(try owners(directory.directory(name))) { $1 } }
    }
    return found
  }

  private func giveToNobody(
    _ fixture: DeviceRestoreFixture, _ names: [String] = ["device", "repo", "home"]
  ) throws {
    for name in names {
      let path = fixture.cli.directory.string + "/" + name
      #expect(try Program.run("chown", ["-R", "nobody", path]).code == 0)
    }
  }

  @Test func restoreByRootKeepsTheUsersAccess() throws {
    let fixture = try DeviceRestoreFixture()
    try giveToNobody(fixture)
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    let data = try fixture.path("apps/org.example.notebook/data", of: "device")
    try Directory.open(path: data).removeTree("Documents")
    let caches = try Directory.open(path: data.appending("Library"))
    let late = try caches.create("late", permissions: 0o644)
    try late.setOwner(user: Self.nobody, group: Self.nobody)
    _ = try fixture.restore("latest --in-place --delete --overwrite always")
    let own = try Directory.open(path: fixture.cli.directory.path("device/.sandboxctl"))
    let found = try owners(own)
    #expect(found.count > 4, "locks and a trash: \(found)")
    #expect(found.filter { $0.value != Self.nobody }.isEmpty)
    // So do the objects in the user's repository.
    let repository = try owners(Directory.open(path: fixture.cli.directory.path("repo")))
    #expect(repository.filter { $0.value != Self.nobody }.isEmpty)
    // The user of the device continues to work. The caches in this home directory are root's.
    try giveToNobody(fixture, ["home"])
    for line in [
      "snapshots --repo repo", "check --read-data --repo repo", "prune --repo repo",
      "backup --root device --repo repo", "trash empty --root device",
      "restore latest --in-place --repo repo",
    ] {
      let outcome = try fixture.cli.runAsNobody(line)
      #expect(outcome.code == 0, "\(line): \(outcome.errors)")
    }
  }

  @Test func filesOwnedByRootAreNamedWithTheChownCommand() throws {
    let fixture = try DeviceRestoreFixture()
    try giveToNobody(fixture)
    let device = fixture.cli.directory.path("device")
    let own = try Directory.open(path: device).makeDirectory(".sandboxctl", permissions: 0o700)
    try own.setOwner(user: 0, group: 0)
    try own.setPermissions(0o700)
    let outcome = try fixture.cli.runAsNobody("restore latest --in-place --repo repo")
    #expect(outcome.code != 0)
    #expect(outcome.errors.contains("it belongs to another user"), "\(outcome.errors)")
    let directories = [device, device.appending(".sandboxctl")].map { ShellWord.text($0) }
    let command = "sudo chown -R --reference=" + directories.joined(separator: " ")
    #expect(outcome.errors.contains(command), "\(outcome.errors)")
    // So do the commands that work without it.
    for (line, code) in [("backup --root device --repo repo", Int32(3)), ("apps --root device", 0)]
    {
      let warned = try fixture.cli.runAsNobody(line)
      #expect(warned.code == code, "\(line): \(warned.errors)")
      #expect(warned.errors.contains(command), "\(line): \(warned.errors)")
    }
  }

  /// The journal of an operation that root began stays root's: its owner must not be changed.
  @Test func anInterruptedOperationOfRootIsLeftToRoot() throws {
    let fixture = try DeviceRestoreFixture()
    try giveToNobody(fixture)
    let journal: ByteString = "device/.sandboxctl/journal"
    try fixture.cli.directory.write("{}", at: journal.appending("20260101T000000-01234567.json"))
    for path in [journal, journal.parent] {
      let directory = try Directory.open(path: fixture.cli.directory.path(path))
      try directory.setOwner(user: Self.nobody, group: Self.nobody)
    }
    try Directory.open(path: fixture.cli.directory.path(journal)).setPermissions(
      0o600, of: "20260101T000000-01234567.json")
    for (line, code) in [
      ("restore latest --in-place --repo repo", Int32(1)), ("recover --root device", 1),
      ("backup --root device --repo repo", 3), ("apps --root device", 0),
    ] {
      let outcome = try fixture.cli.runAsNobody(line)
      #expect(outcome.code == code, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("only root can recover it"), "\(line): \(outcome.errors)")
      #expect(
        outcome.errors.contains("run 'sandboxctl recover' on this device as root"),
        "\(line): \(outcome.errors)")
      #expect(!outcome.errors.contains("check the owner"), "\(line): \(outcome.errors)")
    }
  }
}
