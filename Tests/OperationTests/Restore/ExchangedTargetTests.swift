import ArchiveStore
import Restore
import SystemIO
import TestSupport
import Testing

/// Between plan and execution, another directory may take the place of a restore's target.
@Suite(.spreadScans) struct ExchangedTargetTests {
  @Test func anotherDirectoryAtTheTargetPathIsNotTouched() throws {
    let fixture = try Fixture()
    try fixture.directory.write("stored", at: "tree/file")
    let report = try fixture.backup()
    try fixture.directory.write("looked", at: "into/file")
    let plan = try fixture.plan(report, into: "into", .always, deletes: true)
    let top = try Directory.open(path: fixture.directory.path)
    try top.rename("into", to: "planned", in: top)
    try fixture.directory.write("another's", at: "into/file")
    try fixture.directory.write("another's", at: "into/more")
    let error = #expect(throws: OperationError.self) {
      try RestoreOperation(plan, from: fixture.repository.beginReading()).run()
    }
    #expect(error?.description.contains("another directory has replaced it") == true)
    #expect(try fixture.names("into") == ["file", "more"])
    #expect(
      try fixture.text("into/file") == "another's" && fixture.text("planned/file") == "looked")
  }
}
