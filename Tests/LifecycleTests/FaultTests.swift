import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// Every call to the system fails once, at its n-th time, until an operation gets through.
@Suite struct FaultTests {
  @Test func aBackupThatFailsLeavesEarlierSnapshotsWhole() throws {
    var failures = 0
    var call = 0
    var hasFired = true
    while hasFired {
      call += 1
      // A repository of its own each time: what failed runs leave would make the next one longer.
      let rig = try Rig(inMemory: true)
      try rig.folder.write("one", at: "tree/one")
      try rig.folder.write([UInt8](repeating: 3, count: 700_000), at: "tree/folder/two")
      let first = try rig.backup()
      try rig.folder.write("changed", at: "tree/one")
      let plan = Faults.Plan(at: call, number: Self.inputOutputError)
      do {
        let report = try Faults.inject(plan) { try rig.backup() }
        // It got through: then it says what it misses, or it missed nothing.
        if report.isComplete { try check(rig, report, "changed", "through") }
      } catch {
        failures += 1
        #expect("\(error)".contains("cannot"), "\(error)")
      }
      hasFired = plan.hasFired
      try check(rig, first, "one", "first")
      try check(rig, try rig.backup(), "changed", "last")
    }
    #expect(failures > 20, "\(failures) of \(call) calls")
  }

  @Test func aRestoreThatFailsLeavesNothingBehind() throws {
    let rig = try Rig(inMemory: true)
    try rig.folder.write("one", at: "tree/one")
    try rig.folder.write("two", at: "tree/folder/two")
    try Folder.open(path: rig.folder.path("tree")).createLink("link", to: "one")
    let report = try rig.backup()
    var failures = 0
    var call = 0
    while true {
      call += 1
      let plan = Faults.Plan(at: call, number: Self.inputOutputError)
      do {
        let restored = try Faults.inject(plan) { try rig.restore(report) }
        if restored.isComplete { #expect(try rig.text("back/one") == "one") }
        try Folder.open(path: rig.folder.path).removeTree("back")
        if !plan.hasFired { break }
      } catch {
        failures += 1
        // Only the very last steps fail when the target is there already.
        try? Folder.open(path: rig.folder.path).removeTree("back")
      }
      #expect(try rig.names("").filter { $0.description.contains("restore") } == [], "call \(call)")
    }
    #expect(failures > 20, "\(failures) of \(call) calls")
  }

  private static let inputOutputError: Int32 = 5

  private func check(
    _ rig: Rig, _ report: BackupReport, _ text: String, _ name: ByteString
  ) throws {
    #expect(try rig.restore(report, to: name).isComplete)
    #expect(try rig.text(name.appending("one")) == text)
    #expect(try rig.folder.read(name.appending("folder/two")).count == 700_000)
  }
}
