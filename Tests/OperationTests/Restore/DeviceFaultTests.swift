import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceTransaction
import PolicyEngine
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A restore into a device in which every call fails in turn, once or from then on, as in a crash:
/// each file is either unchanged or restored, replaced files are in the trash, `Recovery` recovers
/// the interrupted operation, and the next restore completes it. `make test` tests a sample of the
/// calls.
@Suite(.spreadScans) struct DeviceFaultTests {
  private struct Outcome {
    var report: DeviceRestoreOperation.Report?
    var error: (any Error)?
  }

  @Test(arguments: [
    FaultKind(number: 5, failsRepeatedly: true), FaultKind(number: 28, failsRepeatedly: true),
    FaultKind(number: 5, failsRepeatedly: false),
  ]) func aFailedCallOfARestoreLosesNothing(_ kind: FaultKind) throws {
    let faulty = try FaultFixture()
    let fixture = faulty.base
    try fixture.directory.write("mine", at: "tree/mine/more")
    try fixture.directory.write("inside", at: "tree/kind/inside")
    for name in ["db", "db-wal", "odd", "odd-journal", "odd-wal"] {
      try fixture.directory.write("older \(name)", at: ByteString("tree/\(name)"))
    }
    try fixture.copy("tree", to: "older")
    let older = try fixture.records("older")
    try faulty.change()
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    for name in ["db", "db-wal", "odd"] {
      try fixture.directory.write("stored \(name)", at: ByteString("tree/\(name)"))
    }
    for name in ["mine", "odd-journal", "odd-wal"] as [ByteString] { try tree.removeTree(name) }
    try tree.removeTree("kind")
    try fixture.directory.write("file", at: "tree/kind")
    let snapshot = try #require(try fixture.backup().snapshot)
    let wanted = try fixture.records("tree")
    var (finished, rolledBack) = (0, 0)
    var random = Seeded.fresh("DeviceFaultTests")
    let stride = Sampling.stride(kind.failsRepeatedly && kind.number == 5 ? 11 : 41)
    var call = 0
    while call < 3000 {
      call += call == 0 ? Int.random(in: 1...stride, using: &random) : stride
      try fixture.directory.directory.removeTree("tree")
      try fixture.copy("older", to: "tree")
      var outcome = Outcome()
      let plan = Faults.Plan(
        at: call, number: try #require(kind.number), failsRepeatedly: kind.failsRepeatedly)
      Faults.inject(plan) {
        do { outcome.report = try restore(fixture, snapshot) } catch { outcome.error = error }
      }
      let what = "\(kind), call \(call): \(outcome.error.map { "\($0)" } ?? "reported")"
      if let error = outcome.error { #expect(tellsWhatAndWhere(error), "\(what)") }
      try expectNothingLost(fixture, older, wanted, what)
      if !kind.failsRepeatedly { try expectWholeDatabases(fixture, older, wanted, what) }
      let recovered = try Recovery(device(fixture), policy: Fixture.policy(.folder)).run().done
      for operation in recovered {
        #expect(operation.failed.isEmpty, "\(what): \(operation.failed)")
        finished += operation.isFinished ? 1 : 0
        rolledBack += operation.isFinished ? 0 : 1
        try expectOnly(operation.isFinished ? wanted : older, fixture, what)
      }
      #expect(try InterruptedOperation.all(on: fixture.directory.path("tree")).isEmpty, "\(what)")
      try expectWholeDatabases(fixture, older, wanted, what)
      try expectNothingLost(fixture, older, wanted, what)
      #expect(try restore(fixture, snapshot).parts.allSatisfy { $0.report.isComplete }, "\(what)")
      let found = try records(fixture)
      let differences = Set(wanted.keys).union(found.keys).filter { wanted[$0] != found[$0] }
      #expect(differences.isEmpty, "\(what): \(differences.sorted())")
      if !plan.hasFired { break }
    }
    #expect(call < 3000, "it does not end")
    // Of the runs in which all later calls fail, some can be finished and some are rolled back:
    // each kind covers more than 11 consecutive calls.
    if kind.failsRepeatedly, stride <= 11 {
      #expect(finished > 0 && rolledBack > 0, "\(finished), \(rolledBack)")
    }
  }

  private func device(_ fixture: Fixture) throws -> Device {
    try Device.find(root: fixture.directory.path("tree"), layout: .folder)
  }

  private func restore(_ fixture: Fixture, _ snapshot: StoredSnapshot) throws
    -> DeviceRestoreOperation.Report
  {
    let reader = try fixture.repository.beginReading()
    var request = DeviceRestoreRequest(
      try device(fixture), isInPlace: true, policy: try Fixture.policy(.folder))
    request.deletes = true
    request.savesFirst = false
    request.isForced = true
    let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
    return try DeviceRestoreOperation(
      plan, from: reader,
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository)
    ).run()
  }

  // MARK: - Comparing

  private func records(_ fixture: Fixture) throws -> [ByteString: TreeRecord] {
    try fixture.records("tree").filter { !OwnNames.has($0.key.components.first ?? "") }
      .mapValues { record in
        var record = record
        // The hard links of a file in the trash do not count.
        if record.firstName?.components.first == OwnNames.directory { record.firstName = nil }
        return record
      }
  }

  /// Checks that each file is old or new, and that the old version of each replaced file is in the
  /// trash.
  private func expectNothingLost(
    _ fixture: Fixture, _ older: [ByteString: TreeRecord], _ wanted: [ByteString: TreeRecord],
    _ what: String
  ) throws {
    let all = try fixture.records("tree")
    var kept: [ByteString: [TreeRecord]] = [:]
    for (path, record) in all where path.isWithin(".sandboxctl/trash") {
      let inner = path.components.dropFirst(5).map(\.bytes)
      kept[ByteString(inner.joined(separator: [UInt8(ascii: "/")])), default: []].append(record)
    }
    for (path, old) in older where old.kind != .directory {
      let locations = [all[path]].compactMap { $0 } + (kept[path] ?? [])
      #expect(locations.contains { $0.hasContent(of: old) }, "\(what): \(path) is lost")
      guard let found = all[path], found.kind != .directory else { continue }
      let isNew = wanted[path].map { found.hasContent(of: $0) } ?? false
      #expect(isNew || found.hasContent(of: old), "\(what): \(path) is neither old nor new")
    }
  }

  /// Checks that each database matches its log.
  private func expectWholeDatabases(
    _ fixture: Fixture, _ older: [ByteString: TreeRecord], _ wanted: [ByteString: TreeRecord],
    _ what: String
  ) throws {
    let found = try records(fixture)
    for unit in [["db", "db-wal"], ["odd", "odd-journal", "odd-wal"]] as [[ByteString]] {
      let isWhole = [older, wanted].contains { state in
        unit.allSatisfy { name in
          guard let record = found[name] else { return state[name] == nil }
          return state[name]?.hasContent(of: record) ?? false
        }
      }
      #expect(isWhole, "\(what): \(unit.filter { found[$0] != nil })")
    }
  }

  /// Checks that each entry other than a directory has one of the states.
  private func expectOnly(
    _ state: [ByteString: TreeRecord], _ fixture: Fixture, _ what: String
  ) throws {
    let found = try records(fixture)
    for path in Set(found.keys).union(state.keys) {
      let isSame = found[path].map { state[path]?.hasContent(of: $0) ?? false } ?? false
      #expect(isSame, "\(what): \(path) after the recovery")
    }
  }
}
