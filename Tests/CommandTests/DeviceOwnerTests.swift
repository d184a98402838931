import SystemIO
import TestSupport
import Testing

/// What root makes on a user's device is the user's.
@Suite(.enabled(if: Host.userID == 0)) struct DeviceOwnerTests {
  private static let nobody: UInt32 = 65534

  /// All that lies in the device's own folder, with its owner.
  private func owners(_ folder: borrowing Folder) throws -> [ByteString: UInt32] {
    var found: [ByteString: UInt32] = [folder.path: try folder.status().user]
    for name in try folder.names() {
      let status = try folder.status(name)
      found[folder.path.appending(name)] = status.user
      if status.kind == .directory { found.merge(try owners(folder.folder(name))) { $1 } }
    }
    return found
  }

  private func giveToNobody(
    _ rig: DeviceRestoreRig, _ names: [String] = ["device", "repo", "home"]
  ) throws {
    for name in names {
      let path = rig.cli.folder.string + "/" + name
      #expect(try Program.run("chown", ["-R", "nobody", path]).code == 0)
    }
  }

  @Test func aRestoreByRootLocksNobodyOut() throws {
    let rig = try DeviceRestoreRig()
    try giveToNobody(rig)
    _ = try rig.cli.succeed("backup --root device --repo repo --quiet")
    let data = try rig.place("apps/org.example.notebook/data", of: "device")
    try Folder.open(path: data).removeTree("Documents")
    let caches = try Folder.open(path: data.appending("Library"))
    let late = try caches.create("late", permissions: 0o644)
    try late.setOwner(user: Self.nobody, group: Self.nobody)
    _ = try rig.restore("latest --in-place --delete --overwrite always")
    let own = try Folder.open(path: rig.cli.folder.path("device/.sandboxctl"))
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
    let rig = try DeviceRestoreRig()
    try giveToNobody(rig)
    let device = rig.cli.folder.path("device")
    let own = try Folder.open(path: device).makeFolder(".sandboxctl", permissions: 0o700)
    try own.setOwner(user: 0, group: 0)
    try own.setPermissions(0o700)
    let outcome = try rig.cli.runAsNobody("restore latest --in-place --repo repo")
    #expect(outcome.code != 0)
    #expect(outcome.errors.contains("it belongs to another user"), "\(outcome.errors)")
    let command = "sudo chown -R --reference='\(device)' '\(device)/.sandboxctl'"
    #expect(outcome.errors.contains(command), "\(outcome.errors)")
  }
}
