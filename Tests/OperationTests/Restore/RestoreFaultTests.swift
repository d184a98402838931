import ArchiveStore
import Backup
import Restore
import SystemIO
import TestSupport
import Testing

/// Every system call and every storage operation of a restore fails in turn until the restore
/// succeeds. `make test` tests a sample of the calls.
@Suite(.spreadScans) struct RestoreFaultTests {
  /// Into a new directory: it exists completely or not at all, and only entries that the report
  /// lists are missing.
  @Test(arguments: FaultKind.all) func aRestoreIntoANewDirectoryIsCompleteOrAbsent(
    _ kind: FaultKind
  ) throws {
    let faulty = try FaultFixture()
    for number in 1...2 {
      let large = [UInt8](repeating: UInt8(number), count: 1_200_000)
      try faulty.base.directory.write(large, at: ByteString("tree/large-\(number)"))
    }
    let snapshot = try #require(try faulty.backup().snapshot)
    let wanted = try faulty.records
    let location = try Directory.make(path: faulty.base.directory.path("place"))
    let request = RestoreRequest(
      path: "folders/tree", target: faulty.base.directory.path("place/back"))
    try faulty.eachRestore(kind, snapshot, request, fewest: kind.fewest) { outcome, what in
      let isThere = try location.statusIfPresent("back") != nil
      if let report = outcome.report {
        #expect(isThere, "\(what)")
        try expectNamed(
          wanted, try faulty.base.records("place/back"), report, alternatives: [:], what)
      } else if isThere {
        // The directory is in place, and the last step failed.
        #expect(try differences(wanted, faulty.base.records("place/back")).isEmpty, "\(what)")
      }
      if isThere { try location.removeTree("back") }
      // The next restore deletes the leftovers of a restore that could not clean up.
      #expect(
        kind.failsRepeatedly ? try location.names().count <= 1 : try location.isEmpty(), "\(what)")
      try faulty.restore(snapshot, request)
      #expect(try location.names() == ["back"], "\(what)")
      #expect(try faulty.base.records("place/back") == wanted, "\(what)")
      try location.removeTree("back")
    }
  }

  /// Into an existing directory: each file is either old or completely restored, no other file is
  /// removed, and the next restore completes the first one.
  @Test(arguments: FaultKind.some, [OverwriteMode.always, .ifChanged])
  func aRestoreIntoAnExistingDirectoryLosesNothing(_ kind: FaultKind, _ mode: OverwriteMode) throws
  {
    let faulty = try FaultFixture()
    let fixture = faulty.base
    try fixture.copy("tree", to: "older")
    try fixture.directory.write("mine", at: "older/mine/more")
    try fixture.directory.write("mine", at: "older/folder/mine")
    let older = try fixture.records("older")
    try faulty.change()
    let snapshot = try #require(try faulty.backup().snapshot)
    let wanted = try faulty.records
    let deletes = mode == .always
    let request = RestoreRequest(
      path: "folders/tree", target: fixture.directory.path("into"), overwrite: mode,
      deletes: deletes)
    let kept: Set<ByteString> = deletes ? [] : ["mine", "mine/more", "folder/mine"]
    let complete = wanted.merging(older.filter { kept.contains($0.key) }) { $1 }
    try fixture.copy("older", to: "into")
    try faulty.eachRestore(kind, snapshot, request, fewest: kind.fewest) { outcome, what in
      var found = try fixture.records("into")
      let staging = found.keys.filter { $0.description.hasPrefix(".sandboxctl-restore-") }
      for path in staging { found[path] = nil }
      #expect(kind.failsRepeatedly || staging.isEmpty, "\(what)")
      try expectOldOrNew(older, wanted, found, deletes: deletes, outcome.report, what)
      if let report = outcome.report, report.isComplete {
        #expect(differences(complete, found).isEmpty, "\(what)")
      }
      try faulty.restore(snapshot, request)
      #expect(try differences(complete, fixture.records("into")).isEmpty, "\(what)")
      try fixture.directory.directory.removeTree("into")
      try fixture.copy("older", to: "into")
    }
  }

  // MARK: - Comparing

  private func differences(
    _ wanted: [ByteString: TreeRecord], _ found: [ByteString: TreeRecord]
  ) -> [ByteString] {
    Set(wanted.keys).union(found.keys).filter { wanted[$0] != found[$0] }.sorted()
  }

  /// Checks that each entry that differs from the expected one is reported.
  private func expectNamed(
    _ wanted: [ByteString: TreeRecord], _ found: [ByteString: TreeRecord], _ report: RestoreReport,
    alternatives: [ByteString: TreeRecord], _ what: String
  ) throws {
    let named = (report.failed + report.damaged).map(\.path)
    for path in differences(wanted, found) {
      // A missing name of a file may be reported under another name of the file.
      let others = wanted.keys.filter {
        wanted[$0]?.firstName != nil && wanted[$0]?.firstName == wanted[path]?.firstName
      }
      let isNamed = ([path] + others).contains { path in named.contains { path.isWithin($0) } }
      #expect(isNamed, "\(what): \(path) of \(named)")
    }
  }

  /// Checks that each file is old or restored; entries that are not in the snapshot still exist, or
  /// are deleted if that was requested and all other work was done.
  private func expectOldOrNew(
    _ older: [ByteString: TreeRecord], _ wanted: [ByteString: TreeRecord],
    _ found: [ByteString: TreeRecord], deletes: Bool, _ report: RestoreReport?, _ what: String
  ) throws {
    for path in Set(older.keys).union(wanted.keys).union(found.keys).sorted() {
      guard let entry = found[path] else {
        let isReplaced = wanted[path] == nil && replacesDirectory(path, older, wanted)
        let mayBeGone = older[path] == nil || (wanted[path] == nil && (deletes || isReplaced))
        #expect(mayBeGone, "\(what): \(path) is gone")
        continue
      }
      let isWhole = [older[path], wanted[path]].contains { $0.map(entry.hasContent(of:)) ?? false }
      #expect(isWhole, "\(what): \(path) is neither old nor new")
    }
  }

  private func replacesDirectory(
    _ path: ByteString, _ older: [ByteString: TreeRecord], _ wanted: [ByteString: TreeRecord]
  ) -> Bool {
    older.contains { path.isWithin($0.key) && wanted[$0.key]?.kind != $0.value.kind }
  }
}

extension TreeRecord {
  /// Whether both have the same type and the same bytes.
  func hasContent(of other: TreeRecord) -> Bool {
    kind == other.kind && size == other.size && content == other.content && target == other.target
  }
}
