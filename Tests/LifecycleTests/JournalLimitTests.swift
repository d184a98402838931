import ArchiveStore
import Backup
import DeviceDiscovery
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Restore

/// A restore whose steps do not fit in one journal is refused when it is planned.
@Suite struct JournalLimitTests {
  @Test(arguments: [(10, false), (1 << 20, true)]) func theStepsOfARestoreMustFitInAJournal(
    limit: Int, isPlanned: Bool
  ) throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("one", at: "tree/one")
    try fixture.directory.write("two", at: "tree/two")
    let snapshot = try #require(try fixture.backup().snapshot)
    try fixture.directory.write("other", at: "tree/one")
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    let request = DeviceRestoreRequest(
      device, isInPlace: true, policy: try Fixture.policy(.folder))
    let reader = try fixture.repository.beginReading()
    let before = try fixture.records("tree")
    func plan() throws -> DeviceRestorePlan {
      try DeviceRestorePlanner.$countedEntries.withValue(1) {
        try DeviceRestorePlanner.$journalLimit.withValue(limit) {
          try DeviceRestorePlan.make(snapshot, request, from: reader)
        }
      }
    }
    if isPlanned {
      #expect(try plan().parts.count == 1)
      return
    }
    let error = #expect(throws: OperationError.self) { try plan() }
    #expect(error?.code == .limitExceeded)
    #expect(error?.description.contains("'folders/tree'") == true)
    #expect(error?.hint?.contains("SNAP:PATH") == true)
    #expect(try fixture.records("tree") == before)
  }
}
