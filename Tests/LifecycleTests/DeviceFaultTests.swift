import ArchiveStore
import Foundation
import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A restore into a device of which every call fails in turn, once or from then on, as when the machine
/// goes: each file is as it was or as stored, what gave way is in the trash, `Recovery` makes good what
/// was interrupted, and the next restore completes it.
@Suite(.spreadScans) struct DeviceFaultTests {
  private struct Outcome {
    var report: DeviceRestoreReport?
    var error: (any Error)?
  }

  @Test(arguments: [
    FaultKind(number: 5, staysBroken: true), FaultKind(number: 28, staysBroken: true),
    FaultKind(number: 5, staysBroken: false),
  ]) func eachCallFails(_ kind: FaultKind) throws {
    let faulty = try FaultFixture()
    let rig = faulty.rig
    try rig.directory.write("mine", at: "tree/mine/more")
    try rig.directory.write("inside", at: "tree/kind/inside")
    for name in ["db", "db-wal", "odd", "odd-journal", "odd-wal"] {
      try rig.directory.write("older \(name)", at: ByteString("tree/\(name)"))
    }
    try rig.copy("tree", to: "older")
    let older = try rig.records("older")
    try faulty.change()
    let tree = try Directory.open(path: rig.directory.path("tree"))
    for name in ["db", "db-wal", "odd"] {
      try rig.directory.write("stored \(name)", at: ByteString("tree/\(name)"))
    }
    for name in ["mine", "odd-journal", "odd-wal"] as [ByteString] { try tree.removeTree(name) }
    try tree.removeTree("kind")
    try rig.directory.write("file", at: "tree/kind")
    let snapshot = try #require(try rig.backup().snapshot)
    let wanted = try rig.records("tree")
    var (finished, rolledBack) = (0, 0)
    // In CI some of the calls, each time others; with SANDBOXCTL_STRESS all.
    var random = Seeded.fresh("DeviceFaultTests")
    let stride =
      ProcessInfo.processInfo.environment["SANDBOXCTL_STRESS"] != nil
      ? 1 : kind.staysBroken && kind.number == 5 ? 11 : 41
    var call = 0
    while call < 3000 {
      call += call == 0 ? Int.random(in: 1...stride, using: &random) : stride
      try rig.directory.directory.removeTree("tree")
      try rig.copy("older", to: "tree")
      var outcome = Outcome()
      let plan = Faults.Plan(
        at: call, number: try #require(kind.number), staysBroken: kind.staysBroken)
      Faults.inject(plan) {
        do { outcome.report = try restore(rig, snapshot) } catch { outcome.error = error }
      }
      let what = "\(kind), call \(call): \(outcome.error.map { "\($0)" } ?? "reported")"
      if let error = outcome.error { #expect(tellsWhatAndWhere(error), "\(what)") }
      try expectNothingLost(rig, older, wanted, what)
      if !kind.staysBroken { try expectWholeDatabases(rig, older, wanted, what) }
      let recovered = try Recovery(device(rig), policy: Fixture.policy(.folder)).run().done
      for operation in recovered {
        #expect(operation.failed.isEmpty, "\(what): \(operation.failed)")
        finished += operation.isFinished ? 1 : 0
        rolledBack += operation.isFinished ? 0 : 1
        try expectOnly(operation.isFinished ? wanted : older, rig, what)
      }
      #expect(try InterruptedOperation.all(on: rig.directory.path("tree")).isEmpty, "\(what)")
      try expectWholeDatabases(rig, older, wanted, what)
      try expectNothingLost(rig, older, wanted, what)
      #expect(try restore(rig, snapshot).parts.allSatisfy { $0.report.isComplete }, "\(what)")
      let found = try records(rig)
      let differences = Set(wanted.keys).union(found.keys).filter { wanted[$0] != found[$0] }
      #expect(differences.isEmpty, "\(what): \(differences.sorted())")
      if !plan.hasFired { break }
    }
    #expect(call < 3000, "it does not end")
    // Of those that break down for good, some can be finished and some are taken back: there are more
    // than 11 calls of either kind in a row.
    if kind.staysBroken, stride <= 11 {
      #expect(finished > 0 && rolledBack > 0, "\(finished), \(rolledBack)")
    }
  }

  private func device(_ rig: Fixture) throws -> Device {
    try Device.find(root: rig.directory.path("tree"), layout: .folder)
  }

  private func restore(_ rig: Fixture, _ snapshot: StoredSnapshot) throws -> DeviceRestoreReport {
    let reader = try rig.repository.beginReading()
    var request = DeviceRestoreRequest(
      try device(rig), isInPlace: true, policy: try Fixture.policy(.folder))
    request.deletes = true
    request.savesFirst = false
    request.isForced = true
    let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
    return try DeviceRestoreOperation(
      plan, rig.repository, from: reader, saving: BackupRequest(program: "test")
    ).run()
  }

  // MARK: - Comparing

  private func records(_ rig: Fixture) throws -> [ByteString: TreeRecord] {
    try rig.records("tree").filter { !OwnNames.has($0.key.components.first ?? "") }
      .mapValues { record in
        var record = record
        // Of a file's names those in the trash are none.
        if record.firstName?.components.first == OwnNames.directory { record.firstName = nil }
        return record
      }
  }

  /// Each file is old or new; and what is no longer there in its old state lies in the trash.
  private func expectNothingLost(
    _ rig: Fixture, _ older: [ByteString: TreeRecord], _ wanted: [ByteString: TreeRecord],
    _ what: String
  ) throws {
    let all = try rig.records("tree")
    var kept: [ByteString: [TreeRecord]] = [:]
    for (path, record) in all where path.isWithin(".sandboxctl/trash") {
      let inner = path.components.dropFirst(5).map(\.bytes)
      kept[ByteString(inner.joined(separator: [UInt8(ascii: "/")])), default: []].append(record)
    }
    for (path, old) in older where old.kind != .directory {
      let places = [all[path]].compactMap { $0 } + (kept[path] ?? [])
      #expect(places.contains { $0.hasContent(of: old) }, "\(what): \(path) is lost")
      guard let found = all[path], found.kind != .directory else { continue }
      let isNew = wanted[path].map { found.hasContent(of: $0) } ?? false
      #expect(isNew || found.hasContent(of: old), "\(what): \(path) is neither old nor new")
    }
  }

  /// Each database is of one state with its log.
  private func expectWholeDatabases(
    _ rig: Fixture, _ older: [ByteString: TreeRecord], _ wanted: [ByteString: TreeRecord],
    _ what: String
  ) throws {
    let found = try records(rig)
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

  /// Each entry that is no directory is of one state.
  private func expectOnly(
    _ state: [ByteString: TreeRecord], _ rig: Fixture, _ what: String
  ) throws {
    let found = try records(rig)
    for path in Set(found.keys).union(state.keys) {
      let isSame = found[path].map { state[path]?.hasContent(of: $0) ?? false } ?? false
      #expect(isSame, "\(what): \(path) after the recovery")
    }
  }
}
