import ArchiveStore
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// Between its plan and its work a restore may find another directory at the path of its target.
@Suite(.spreadScans) struct ExchangedTargetTests {
  @Test func anotherDirectoryInTheTargetsPlaceIsLeftAlone() throws {
    let rig = try Fixture()
    try rig.directory.write("stored", at: "tree/file")
    let report = try rig.backup()
    try rig.directory.write("looked", at: "into/file")
    let plan = try rig.plan(report, into: "into", .always, deletes: true)
    let top = try Directory.open(path: rig.directory.path)
    try top.rename("into", to: "planned", in: top)
    try rig.directory.write("another's", at: "into/file")
    try rig.directory.write("another's", at: "into/more")
    let error = #expect(throws: LifecycleError.self) {
      try RestoreOperation(plan, from: rig.repository.beginReading()).run()
    }
    #expect(error?.description.contains("another directory has taken its place") == true)
    #expect(try rig.names("into") == ["file", "more"])
    #expect(try rig.text("into/file") == "another's" && rig.text("planned/file") == "looked")
  }
}
