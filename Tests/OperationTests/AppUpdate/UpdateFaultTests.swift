import AppUpdate
import ArchiveStore
import Codecs
import DeviceTransaction
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// An update in which each call fails in turn, once or from then on, as in a crash or on a full
/// volume: after `Recovery` the device has its old or its new state, never a mixture.
@Suite(.spreadScans) struct UpdateFaultTests {
  @Test(arguments: [
    FaultKind(number: 5, failsRepeatedly: true), FaultKind(number: 28, failsRepeatedly: true),
    FaultKind(number: 5, failsRepeatedly: false),
  ]) func aFailedCallOfAnUpdateLosesNothing(_ kind: FaultKind) throws {
    let fixture = try UpdateFixture()
    let package = MemoryPackage(files: ["Example": "new program"])
    try fixture.base.copy("phone", to: "older")
    let before = try State(fixture)
    var recoveries = RecoveryCounts()
    var random = Seeded.fresh("UpdateFaultTests")
    let stride = Sampling.stride(kind.failsRepeatedly ? 5 : 11)
    var call = 0
    while call < 3000 {
      call += call == 0 ? Int.random(in: 1...stride, using: &random) : stride
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("older", to: "phone")
      var error: (any Error)?
      let plan = Faults.Plan(
        at: call, number: try #require(kind.number), failsRepeatedly: kind.failsRepeatedly)
      let update = try fixture.plan(.update, package) {
        $0.isStrict = true
        $0.savesFirst = false
      }
      Faults.inject(plan) {
        do { try fixture.carryOut(update, package) } catch let failure { error = failure }
      }
      let what = "\(kind), call \(call): \(error.map { "\($0)" } ?? "reported")"
      if let error { #expect(tellsWhatAndWhere(error), "\(what)") }
      recoveries += try fixture.recover(what)
      try State(fixture).expect(before, updatedBy: error == nil, what)
      if !plan.hasFired { break }
    }
    #expect(call < 3000, "the loop does not end")
    if kind.failsRepeatedly { recoveries.expectBoth() }
  }
}

/// An installation in which each call fails in turn: the data of the safe harbor is then in the
/// app's container, or still in the safe harbor.
@Suite(.spreadScans) struct InstallFaultTests {
  @Test(arguments: [
    FaultKind(number: 5, failsRepeatedly: true), FaultKind(number: 28, failsRepeatedly: true),
    FaultKind(number: 5, failsRepeatedly: false),
  ]) func aFailedCallOfAnUpdateLosesNothing(_ kind: FaultKind) throws {
    let fixture = try UpdateFixture(isInstalled: false)
    try fixture.fillHarbor()
    let package = MemoryPackage(files: ["Example": "new program"])
    try fixture.base.copy("phone", to: "older")
    var recoveries = RecoveryCounts()
    var random = Seeded.fresh("InstallFaultTests")
    let stride = Sampling.stride(kind.failsRepeatedly ? 3 : 7)
    var call = 0
    while call < 2000 {
      call += call == 0 ? Int.random(in: 1...stride, using: &random) : stride
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("older", to: "phone")
      let install = try fixture.plan(.install, package)
      let plan = Faults.Plan(
        at: call, number: try #require(kind.number), failsRepeatedly: kind.failsRepeatedly)
      var error: (any Error)?
      Faults.inject(plan) {
        do { try fixture.carryOut(install, package) } catch let failure { error = failure }
      }
      let what = "\(kind), call \(call): \(error.map { "\($0)" } ?? "reported")"
      if let error { #expect(tellsWhatAndWhere(error), "\(what)") }
      recoveries += try fixture.recover(what)
      try fixture.expectInstalledOrNot(mustBe: error == nil, what)
      if !plan.hasFired { break }
    }
    #expect(call < 2000, "the loop does not end")
    if kind.failsRepeatedly { recoveries.expectBoth() }
  }
}

/// The numbers of interrupted operations that were finished and rolled back.
struct RecoveryCounts {
  var finished = 0
  var rolledBack = 0

  static func += (counts: inout Self, more: Self) {
    counts.finished += more.finished
    counts.rolledBack += more.rolledBack
  }

  /// Checks that there were some of each kind; otherwise the test covers only one of them.
  func expectBoth() {
    #expect(finished > 0 && rolledBack > 0, "\(finished) finished, \(rolledBack) rolled back")
  }
}

extension UpdateFixture {
  /// Recovers the interrupted operation, and checks that no operation remains.
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

/// The parts of a device that an update must not change, and those that show whether it was carried
/// out.
struct State {
  let version: ByteString?
  let files: [ByteString: Digest?]
  let trash: Set<String>
  /// The operations with files in the trash.
  let operations: Set<ByteString>
  let hasStaging: Bool
  let containers: [ByteString]

  init(_ fixture: UpdateFixture) throws {
    let device = try fixture.device()
    version = device.apps.first { $0.identifier == UpdateFixture.identifier }?.version
    containers = device.containers.map(\.logicalPrefix)
    var files: [ByteString: Digest?] = [:]
    for container in device.containers where container.kind != .bundle {
      let inner = ByteString(
        container.absolutePath.bytes.dropFirst(fixture.base.directory.path.count + 1))
      for (path, record) in try fixture.base.records(inner) where record.kind == .file {
        if path != UpdateFixture.metadata {
          files[container.logicalPrefix.appending(path)] = record.content
        }
      }
    }
    self.files = files
    trash = Set(try fixture.trash().values)
    let location: ByteString = "phone/.sandboxctl/trash"
    operations = Set(
      ((try? fixture.base.names(location)) ?? []).filter { id in
        let kept = (try? fixture.base.records(location.appending(id))) ?? [:]
        // An operation that was rolled back halfway keeps only files created by then.
        return kept["taken-back"] == nil
          || kept.contains { path, record in
            record.kind != .directory && path != "operation.json"
              && path.components.first != "taken-back"
          }
      })
    hasStaging = fixture.hasStaging
  }

  /// Compares this state with the one before a strict update without the extension: it is either
  /// unchanged or updated.
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
