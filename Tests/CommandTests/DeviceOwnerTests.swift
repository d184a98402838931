import SystemIO
import TestSupport
import Testing

/// What root makes on a user's device is the user's.
@Suite(.enabled(if: Host.userID == 0)) struct DeviceOwnerTests {
  private static let nobody: UInt32 = 65534

  /// All that lies in the device's own directory, with its owner.
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
    _ rig: DeviceRestoreFixture, _ names: [String] = ["device", "repo", "home"]
  ) throws {
    for name in names {
      let path = rig.cli.directory.string + "/" + name
      #expect(try Program.run("chown", ["-R", "nobody", path]).code == 0)
    }
  }

  @Test func aRestoreByRootLocksNobodyOut() throws {
    let rig = try DeviceRestoreFixture()
    try giveToNobody(rig)
    _ = try rig.cli.succeed("backup --root device --repo repo --quiet")
    let data = try rig.place("apps/org.example.notebook/data", of: "device")
    try Directory.open(path: data).removeTree("Documents")
    let caches = try Directory.open(path: data.appending("Library"))
    let late = try caches.create("late", permissions: 0o644)
    try late.setOwner(user: Self.nobody, group: Self.nobody)
    _ = try rig.restore("latest --in-place --delete --overwrite always")
    let own = try Directory.open(path: rig.cli.directory.path("device/.sandboxctl"))
    let found = try owners(own)
    #expect(found.count > 4, "locks and a trash: \(found)")
    #expect(found.filter { $0.value != Self.nobody }.isEmpty)
    // The device's user works on.
    try giveToNobody(rig, ["repo", "home"])
    for line in [
      "backup --root device --repo repo", "trash empty --root device",
      "restore latest --in-place --repo repo",
    ] {
      let outcome = try rig.cli.runAsNobody(line)
      #expect(outcome.code == 0, "\(line): \(outcome.errors)")
    }
  }

  @Test func whatRootHasTakenIsNamedWithTheCommandThatGivesItBack() throws {
    let rig = try DeviceRestoreFixture()
    try giveToNobody(rig)
    let device = rig.cli.directory.path("device")
    let own = try Directory.open(path: device).makeDirectory(".sandboxctl", permissions: 0o700)
    try own.setOwner(user: 0, group: 0)
    try own.setPermissions(0o700)
    let outcome = try rig.cli.runAsNobody("restore latest --in-place --repo repo")
    #expect(outcome.code != 0)
    #expect(outcome.errors.contains("it belongs to another user"), "\(outcome.errors)")
    let command = "sudo chown -R --reference='\(device)' '\(device)/.sandboxctl'"
    #expect(outcome.errors.contains(command), "\(outcome.errors)")
  }
}
