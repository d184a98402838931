import ArchiveStore
import Backup
import SystemIO
import TestSupport
import Testing

/// Every system call and every storage operation of a backup fails in turn until the backup
/// succeeds. Because several threads run, the n-th call may differ from run to run. `make test`
/// tests a sample of the calls.
@Suite(.spreadScans) struct BackupFaultTests {
  @Test(arguments: FaultKind.all) func aFailedCallOfAFirstBackupLosesNothing(_ kind: FaultKind)
    throws
  {
    try run(kind, isFirst: true)
  }

  @Test(arguments: FaultKind.all) func aFailedCallOfALaterBackupLosesNothing(_ kind: FaultKind)
    throws
  {
    try run(kind, isFirst: false)
  }

  private func run(_ kind: FaultKind, isFirst: Bool) throws {
    var (failures, parts, last) = (0, 0, 0)
    var isThere = true
    for call in Sampling.steps(kind.sample, "\(kind)") {
      guard isThere, call < 2000 else { break }
      last = call
      let faulty = try FaultFixture()
      // A database with its log, captured as a unit.
      for (name, text) in [("base", "SQLite format 3\0"), ("base-wal", "log")] {
        try faulty.base.directory.write(text, at: ByteString("tree/\(name)"))
      }
      var wanted: [SnapshotID: [ByteString: TreeRecord]] = [:]
      if !isFirst {
        let before = try faulty.backup()
        wanted[try #require(before.snapshot).id] = try faulty.records
        try faulty.change()
      }
      let what = "\(kind), call \(call)"
      let outcome = try attempt(faulty, kind, call)
      isThere = outcome.isThere
      if let error = outcome.error {
        failures += 1
        #expect(tellsWhatAndWhere(error), "\(what): \(error)")
      }
      if outcome.report?.isComplete == false { parts += 1 }
      try check(faulty, outcome, wanted, what)
    }
    // A sample may contain none of the few calls that end a backup.
    let fewest = Sampling.isWhole ? max(1, kind.fewest) : kind.fewest / (2 * kind.sample)
    #expect(!isThere && failures >= fewest, "\(kind): \(failures) failures of \(last) calls")
    // A single failed call on the source affects only the entry that it reads.
    if Sampling.isWhole, kind.number == 5 || kind.number == 13 {
      #expect(parts > 3, "\(kind): \(parts)")
    }
  }

  private struct Outcome {
    var isThere = false
    var report: BackupReport?
    var error: (any Error)?
  }

  private func attempt(_ faulty: FaultFixture, _ kind: FaultKind, _ call: Int) throws -> Outcome {
    var outcome = Outcome()
    outcome.isThere = try kind.inject(at: call, faulty.storage) {
      do {
        outcome.report = try faulty.backup()
      } catch {
        outcome.error = error
      }
    }
    return outcome
  }

  /// Checks that every listed snapshot is complete and matches its report, and that the next backup
  /// succeeds.
  private func check(
    _ faulty: FaultFixture, _ outcome: Outcome, _ known: [SnapshotID: [ByteString: TreeRecord]],
    _ what: String
  ) throws {
    let records = try faulty.records
    let listing = try faulty.base.repository.snapshots()
    #expect(listing.damaged.isEmpty, "\(what)")
    #expect(Set(known.keys).isSubset(of: listing.snapshots.map(\.id)), "\(what)")
    #expect(listing.snapshots.count <= known.count + 1, "\(what)")
    if let report = outcome.report {
      #expect(listing.snapshots.map(\.id).contains { $0 == report.snapshot?.id }, "\(what)")
    }
    for snapshot in listing.snapshots {
      let found = try faulty.restored(snapshot)
      let wanted = known[snapshot.id] ?? records
      for path in Set(wanted.keys).union(found.keys)
      where !TreeRecord.isSame(wanted[path], found[path], asPartOf: outcome.report) {
        let named = (outcome.report?.unreadable ?? []) + (outcome.report?.warnings ?? [])
        let isNamed = named.contains { path.isWithin($0.path.withoutContainer) }
        #expect(isNamed && known[snapshot.id] == nil, "\(what): \(path) of \(named)")
      }
    }
    let next = try faulty.backup()
    #expect(next.isComplete && next.warnings.isEmpty, "\(what)")
    let last = try faulty.restored(try #require(next.snapshot))
    let different = Set(records.keys).union(last.keys).filter { records[$0] != last[$0] }
    #expect(different.isEmpty, "\(what): \(different)")
    try faulty.expectSound(what)
  }
}

extension ByteString {
  /// A logical path of the fixture's tree, below the tree.
  var withoutContainer: ByteString {
    components.dropFirst(2).reduce("") { $0.appending($1) }
  }
}

extension TreeRecord {
  /// Whether the restored entry equals the stored one; it may have fewer hard links if the report
  /// lists missing entries.
  fileprivate static func isSame(
    _ wanted: TreeRecord?, _ found: TreeRecord?, asPartOf report: BackupReport?
  ) -> Bool {
    guard var wanted, var found else { return wanted == nil && found == nil }
    if report?.isComplete == false { (wanted.firstName, found.firstName) = (nil, nil) }
    return wanted == found
  }
}
