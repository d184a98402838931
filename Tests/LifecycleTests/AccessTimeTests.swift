import ArchiveStore
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// A comparison of what is there with a snapshot is no reading of the user's: times of access stay.
@Suite(.spreadScans) struct AccessTimeTests {
  @Test func comparingContentsLeavesTimesOfAccess() throws {
    let rig = try Fixture()
    try rig.directory.write("a text of some length", at: "tree/file")
    let report = try rig.backup()
    let snapshot = try #require(report.snapshot)
    // Older than the time of modification, so that the kernel would note a reading (relatime).
    let path = "\(rig.directory.path("tree/file"))"
    #expect(try Program.run("touch", ["-a", "-d", "2001-02-03", path]).code == 0)
    let tree = try Directory.open(path: rig.directory.path("tree"))
    let before = try tree.look("file")
    let reader = try rig.repository.beginReading()
    let stored = try reader.entry(at: "folders/tree/file", in: snapshot.snapshot.tree)
    let entry = try #require(stored)
    var proof = ContentProof(reader, since: snapshot.snapshot.time, now: Host.now(), in: tree)
    #expect(try proof.hasBytes(of: entry, before.status, at: 0, in: tree, "file"))
    #expect(try tree.look("file").accessed == before.accessed)
    #expect(before.accessed < 1_000_000_000)
  }
}
