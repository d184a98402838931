import ArchiveStore
import Foundation
import Lifecycle
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// An update of which every call fails in turn, once or from then on, as when the machine goes or the
/// volume is full: after `Recovery` the device is as it was or as it was to be, never between.
@Suite(.spreadScans) struct UpdateFaultTests {
  @Test(arguments: [
    FaultKind(number: 5, staysBroken: true), FaultKind(number: 28, staysBroken: true),
    FaultKind(number: 5, staysBroken: false),
  ]) func eachCallFails(_ kind: FaultKind) throws {
    let rig = try UpdateFixture()
    let package = MemoryPackage(files: ["Example": "new program"])
    try rig.rig.copy("phone", to: "older")
    let before = try State(rig)
    var recoveries = RecoveryCounts()
    var random = Seeded.fresh("UpdateFaultTests")
    let stride = Sampling.stride(kind.staysBroken ? 5 : 11)
    var call = 0
    while call < 3000 {
      call += call == 0 ? Int.random(in: 1...stride, using: &random) : stride
      try rig.rig.directory.directory.removeTree("phone")
      try rig.rig.copy("older", to: "phone")
      var error: (any Error)?
      let plan = Faults.Plan(
        at: call, number: try #require(kind.number), staysBroken: kind.staysBroken)
      let update = try rig.plan(.update, package) {
        $0.isStrict = true
        $0.savesFirst = false
      }
      Faults.inject(plan) {
        do { try rig.carryOut(update, package) } catch let failure { error = failure }
      }
      let what = "\(kind), call \(call): \(error.map { "\($0)" } ?? "reported")"
      if let error { #expect(tellsWhatAndWhere(error), "\(what)") }
      recoveries += try rig.recover(what)
      try State(rig).expect(before, updatedBy: error == nil, what)
      if !plan.hasFired { break }
    }
    #expect(call < 3000, "it does not end")
    if kind.staysBroken { recoveries.expectBoth() }
  }
}

/// An installation of which every call fails in turn: the data that waited in the safe harbor is the app's
/// then, or waits still.
@Suite(.spreadScans) struct InstallFaultTests {
  @Test(arguments: [
    FaultKind(number: 5, staysBroken: true), FaultKind(number: 28, staysBroken: true),
    FaultKind(number: 5, staysBroken: false),
  ]) func eachCallFails(_ kind: FaultKind) throws {
    let rig = try UpdateFixture(isInstalled: false)
    try rig.fillHarbor()
    let package = MemoryPackage(files: ["Example": "new program"])
    try rig.rig.copy("phone", to: "older")
    var recoveries = RecoveryCounts()
    var random = Seeded.fresh("InstallFaultTests")
    let stride = Sampling.stride(kind.staysBroken ? 3 : 7)
    var call = 0
    while call < 2000 {
      call += call == 0 ? Int.random(in: 1...stride, using: &random) : stride
      try rig.rig.directory.directory.removeTree("phone")
      try rig.rig.copy("older", to: "phone")
      let install = try rig.plan(.install, package)
      let plan = Faults.Plan(
        at: call, number: try #require(kind.number), staysBroken: kind.staysBroken)
      var error: (any Error)?
      Faults.inject(plan) {
        do { try rig.carryOut(install, package) } catch let failure { error = failure }
      }
      let what = "\(kind), call \(call): \(error.map { "\($0)" } ?? "reported")"
      if let error { #expect(tellsWhatAndWhere(error), "\(what)") }
      recoveries += try rig.recover(what)
      try rig.expectInstalledOrNot(mustBe: error == nil, what)
      if !plan.hasFired { break }
    }
    #expect(call < 2000, "it does not end")
    if kind.staysBroken { recoveries.expectBoth() }
  }
}

/// How many interrupted operations were finished and taken back.
struct RecoveryCounts {
  var finished = 0
  var rolledBack = 0

  static func += (counts: inout Self, more: Self) {
    counts.finished += more.finished
    counts.rolledBack += more.rolledBack
  }

  /// Holds that there were some of each kind: else a test has not interrupted what it is to.
  func expectBoth() {
    #expect(finished > 0 && rolledBack > 0, "\(finished) finished, \(rolledBack) taken back")
  }
}

extension UpdateFixture {
  /// Makes good what was interrupted, and holds that nothing of it stays that could not be.
  func recover(_ what: String) throws -> RecoveryCounts {
    var counts = RecoveryCounts()
    let report = try Recovery(device(), policy: PurgeFixture.policy(), isForced: true).run()
    for operation in report.done {
      if operation.isFinished { counts.finished += 1 } else { counts.rolledBack += 1 }
      #expect(operation.failed.isEmpty, "\(what)")
    }
    #expect(try InterruptedOperation.all(on: root).isEmpty, "\(what)")
    return counts
  }
}

/// What of a device an update is to leave alone, and what tells whether it was done.
struct State {
  let version: ByteString?
  let files: [ByteString: Int?]
  let trash: Set<String>
  /// The operations that have something in the trash.
  let operations: Set<ByteString>
  let hasStaging: Bool
  let containers: [ByteString]

  init(_ rig: UpdateFixture) throws {
    let device = try rig.device()
    version = device.apps.first { $0.identifier == UpdateFixture.identifier }?.version
    containers = device.containers.map(\.logicalPrefix)
    var files: [ByteString: Int?] = [:]
    for container in device.containers where container.kind != .bundle {
      let inner = ByteString(
        container.absolutePath.bytes.dropFirst(rig.rig.directory.path.count + 1))
      for (path, record) in try rig.rig.records(inner) where record.kind == .file {
        if path != UpdateFixture.metadata {
          files[container.logicalPrefix.appending(path)] = record.content
        }
      }
    }
    self.files = files
    trash = Set(try rig.trash().values)
    let place: ByteString = "phone/.sandboxctl/trash"
    operations = Set(
      ((try? rig.rig.names(place)) ?? []).filter { id in
        let kept = (try? rig.rig.records(place.appending(id))) ?? [:]
        // One that was taken back in its middle keeps what had come, and nothing else.
        return kept["taken-back"] == nil
          || kept.contains { path, record in
            record.kind != .directory && path != "operation.json"
              && path.components.first != "taken-back"
          }
      })
    hasStaging = rig.hasStaging
  }

  /// Holds this against the state before a strict update without the extension: it is that, or what
  /// the update makes of it.
  func expect(_ before: State, updatedBy mustBeDone: Bool, _ what: String) {
    let isDone = version == "2.0"
    #expect(isDone || version == before.version, "\(what): \(String(describing: version))")
    #expect(isDone || !mustBeDone, "\(what)")
    let gone = isDone ? ["tmp", "StoreKit", "extensions"] : []
    let wanted = before.files.filter { path, _ in
      !path.components.dropFirst(2).contains { gone.contains($0.description) }
    }
    #expect(files == wanted, "\(what)")
    #expect(
      containers
        == (isDone
          ? before.containers.filter { !$0.components.contains("extensions") }
          : before.containers),
      "\(what)")
    if isDone { #expect(trash.isSuperset(of: ["temporary", "unknown", "draft", "old program"])) }
    #expect(isDone || operations == before.operations, "\(what)")
    #expect(!hasStaging, "\(what)")
  }
}
