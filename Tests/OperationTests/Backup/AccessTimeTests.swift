import ArchiveStore
import Backup
import SystemIO
import TestSupport
import Testing

@testable import Restore

/// Comparing the target with a snapshot does not update the access times of the user's files.
@Suite(.spreadScans) struct AccessTimeTests {
  @Test func comparingContentsDoesNotUpdateAccessTimes() throws {
    let fixture = try Fixture()
    try fixture.directory.write("a text of some length", at: "tree/file")
    let report = try fixture.backup()
    let snapshot = try #require(report.snapshot)
    // Older than the modification time, so that a read updates it (relatime).
    let path = "\(fixture.directory.path("tree/file"))"
    #expect(try Program.run("touch", ["-a", "-d", "2001-02-03", path]).code == 0)
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    let before = try tree.statusAndAccess("file")
    let reader = try fixture.repository.beginReading()
    let stored = try reader.entry(at: "folders/tree/file", in: snapshot.snapshot.tree)
    let entry = try #require(stored)
    var proof = ContentProof(reader, since: snapshot.snapshot.time, now: Host.now(), in: tree)
    #expect(try proof.hasBytes(of: entry, before.status, at: 0, in: tree, "file"))
    #expect(try tree.statusAndAccess("file").accessed == before.accessed)
    #expect(before.accessed < 1_000_000_000)
  }
}
