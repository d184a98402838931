import ArchiveStore
import Backup
import Restore
import SystemIO
import TestSupport
import Testing

/// Extended attributes whose values are blobs.
struct AttributeValueTests {
  /// Neither reads a frame again that was decoded for the contents, nor one frame for each value.
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
}
