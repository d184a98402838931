import ArchiveStore
import Backup
import Glibc
import Restore
import SystemIO
import TestSupport
import Testing

/// Extended attributes whose values are blobs.
struct AttributeValueTests {
  /// Reading values neither decodes a frame of the contents again, nor one frame for each value.
  @Test func valuesComeWithTheContentsOfFiles() throws {
    let fixture = try Fixture()
    var random = Seeded(5)
    for number in 0..<30 {
      let (folder, name) = (ByteString("tree/\(number % 3)"), ByteString("\(number)"))
      try fixture.directory.write(random.bytes(3000), at: folder.appending(name))
      let parent = try Directory.open(path: fixture.directory.path(folder))
      try parent.attributes(of: name).set("user.large", to: random.bytes(600 + number))
      if number < 3 { try parent.attributes.set("user.large", to: random.bytes(700)) }
    }
    let stored = try #require(try fixture.backup().snapshot)
    let reader = try fixture.repository.beginReading()
    let plan = try RestorePlan.make(
      stored, path: "folders/tree", to: fixture.directory.path("restored"), from: reader)
    let decoded = reader.decodedFrames
    let report = try RestoreOperation(plan, from: reader, threads: 2).run()
    #expect(report.isComplete, "\(report.failed) \(report.damaged)")
    #expect(reader.decodedFrames == decoded)
    #expect(try fixture.records("restored") == fixture.records("tree"))
  }

  /// The kernel refuses authentication codes that belong to another inode, or they later make the
  /// file unusable; it computes hashes itself. Signatures are data.
  @Test func hashesOfTheKernelAreNotRestored() throws {
    let fixture = try Fixture()
    let values: [(name: ByteString, evm: [UInt8], ima: [UInt8])] = [
      ("computed", [2, 7, 7], [4, 4, 9]), ("signed", [5, 2, 4], [3, 2, 4]),
    ]
    for (name, evm, ima) in values {
      try fixture.directory.write("text", at: ByteString("tree").appending(name))
      let tree = try Directory.open(path: fixture.directory.path("tree"))
      do throws(SystemError) {
        try tree.attributes(of: name).set("security.evm", to: evm)
        try tree.attributes(of: name).set("security.ima", to: ima)
      } catch {
        return print("skipped: attributes of the kernel: \(error)")
      }
    }
    let report = try fixture.backup()
    try fixture.directory.write("mine", at: "into/other")
    let restored = try fixture.merge(report, into: "into", .ifChanged)
    #expect(restored.isComplete, "\(restored.failed)")
    let into = try Directory.open(path: fixture.directory.path("into"))
    #expect(try into.attributes(of: "computed").value(of: "security.evm") == nil)
    #expect(try into.attributes(of: "signed").value(of: "security.evm") == [5, 2, 4])
    #expect(try into.attributes(of: "signed").value(of: "security.ima") == [3, 2, 4])
    // Values set by the kernel do not count as differences, and stay.
    try into.attributes(of: "computed").set("security.evm", to: [2, 8, 8])
    try into.attributes(of: "computed").set("security.ima", to: [4, 4, 8])
    let identity = try into.status("computed").identity
    #expect(try fixture.merge(report, into: "into", .ifChanged).isComplete)
    #expect(try into.status("computed").identity == identity)
    #expect(try into.attributes(of: "computed").value(of: "security.evm") == [2, 8, 8])
    // A different signature is a difference.
    try into.attributes(of: "signed").set("security.ima", to: [3, 2, 5])
    #expect(try fixture.merge(report, into: "into", .ifChanged).isComplete)
    #expect(try into.attributes(of: "signed").value(of: "security.ima") == [3, 2, 4])
  }

  /// With an ACL, the group bits of the mode are its mask: here the permissions of another user.
  @Test func aGroupGetsNoPermissionsOfAnACLThatCannotBeSet() throws {
    let fixture = try Fixture()
    try fixture.directory.write("private", at: "tree/folder/file")
    let list: [UInt8] = [
      2, 0, 0, 0, 1, 0, 7, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 7, 0, 0xd2, 4, 0, 0,
      4, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x10, 0, 7, 0, 0xff, 0xff, 0xff, 0xff,
      0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
    ]
    let folder = try fixture.tree().directory("folder")
    do throws(SystemError) {
      try folder.attributes(of: "file").set("system.posix_acl_access", to: list)
      try folder.attributes.set("system.posix_acl_access", to: list)
    } catch {
      return print("skipped: ACLs: \(error)")
    }
    #expect(try folder.status("file").permissions == 0o770)
    let report = try fixture.backup()
    let plan = Faults.Plan(
      failing: [.setAttributes], at: 1, number: EOPNOTSUPP, failsRepeatedly: true)
    let restored = try Faults.inject(plan) { try fixture.restore(report) }
    #expect(Set(restored.failed.map(\.path)) == ["folder", "folder/file"], "\(restored.failed)")
    let back = try Directory.open(path: fixture.directory.path("back/folder"))
    #expect(try back.status("file").permissions == 0o710)
    #expect(try back.status().permissions == 0o710)
    // If the ACL is set, the mask is also set.
    #expect(try fixture.restore(report, to: "whole").isComplete)
    #expect(try fixture.records("whole") == fixture.records("tree"))
  }
}
