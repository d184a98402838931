import ArchiveStore
import Backup
import Restore
import SystemIO
import TestSupport
import Testing

/// A merge into a directory with databases in which every call fails in turn: each database is
/// either unchanged with its log or restored with its log. `make test` tests a sample of the calls.
@Suite(.spreadScans) struct DatabaseFaultTests {
  /// The stored databases: one with a log, one without, one that differs from the target only in
  /// its journal, and one that the target does not have.
  private static let stored: [ByteString: String] = [
    "a": "a stored", "a-wal": "log of a stored", "b": "b stored",
    "c": "c", "c-journal": "journal of c stored", "d": "d stored", "d-wal": "log of d stored",
  ]
  /// The existing files in the target.
  private static let there: [ByteString: String] = [
    "a": "a there", "a-wal": "log of a there", "a-shm": "index of a there",
    "b": "b there", "b-journal": "journal of b there", "b-wal": "log of b there",
    "c": "c", "c-journal": "journal of c there", "c-wal": "log of c there",
  ]

  private func write(_ files: [ByteString: String], in faulty: FaultFixture, _ name: String) throws
  {
    for (file, text) in files {
      try faulty.base.directory.write(text, at: ByteString(name).appending(file))
      // The times of the unchanged database do not distinguish the two.
      if file == "c" { try faulty.base.setTime(ByteString(name).appending(file), 100) }
    }
  }

  /// Each database in a directory, with its logs and journals.
  private func units(_ files: [ByteString: String]) -> [ByteString: [ByteString: String]] {
    var units: [ByteString: [ByteString: String]] = [:]
    for (file, text) in files where !file.description.hasSuffix("-shm") {
      let database = ByteString(Array(file.bytes.prefix(1)))
      if !file.description.contains(".before-restore-") {
        units[database, default: [:]][file] = text
      }
    }
    return units
  }

  private func found(_ fixture: Fixture) throws -> [ByteString: String] {
    var found: [ByteString: String] = [:]
    for name in try fixture.names("into") where name.bytes.first != UInt8(ascii: ".") {
      let path = ByteString("into").appending(name)
      if try Directory.open(path: fixture.directory.path("into")).status(name).kind == .file {
        found[name] = try fixture.text(path)
      }
    }
    return found
  }

  private func isOfOneState(
    _ database: ByteString, _ found: [ByteString: [ByteString: String]], _ outcome: RestoreOutcome
  ) -> Bool {
    if database == "d", found[database] == ["d": "d stored"] {
      // A database that did not exist may be restored without its log, if both are reported.
      let failed = Set(outcome.report?.failed.map(\.path) ?? [])
      return failed.isSuperset(of: ["d", "d-wal"])
    }
    let states = [Self.there, Self.stored].map { units($0)[database] }
    return states.contains(found[database])
  }

  /// Whether all existing files of a database are kept, under whatever names.
  private func isKept(_ database: ByteString, _ files: [ByteString: String]) -> Bool {
    let old = units(Self.there)[database] ?? [:]
    return old.values.allSatisfy { files.values.contains($0) }
  }

  @Test(arguments: FaultKind.some, [false, true])
  func eachDatabaseMatchesItsLog(_ kind: FaultKind, deletes: Bool) throws {
    let faulty = try FaultFixture()
    let fixture = faulty.base
    try fixture.directory.directory.removeTree("tree")
    try write(Self.stored, in: faulty, "tree")
    let snapshot = try #require(try faulty.backup().snapshot)
    let request = RestoreRequest(
      path: "folders/tree", target: fixture.directory.path("into"), overwrite: .ifChanged,
      deletes: deletes)
    try write(Self.there, in: faulty, "into")
    let new = units(Self.stored)
    let fewest = kind.number == nil ? 3 : 20
    try faulty.eachRestore(kind, snapshot, request, fewest: fewest) { outcome, what in
      let files = try found(fixture)
      for database in ["a", "b", "c", "d"] as [ByteString] {
        let isOfOneState = isOfOneState(database, units(files), outcome)
        // If every call fails from then on, nothing can be rolled back: this is reported, and
        // nothing is lost.
        let isTold = kind.failsRepeatedly && outcome.report == nil
        #expect(isOfOneState || isTold && isKept(database, files), "\(what): \(files)")
      }
      for name in ["a-wal", "b-journal", "b-wal"] as [ByteString] where !deletes {
        // A replaced file is kept under another name, unless the stored one was restored.
        let isThere = files.values.contains(Self.there[name] ?? "")
        #expect(isThere || name == "a-wal" || kind.failsRepeatedly, "\(what): \(name)")
      }
      try fixture.directory.directory.removeTree("into")
      try write(Self.there, in: faulty, "into")
      try faulty.restore(snapshot, request)
      #expect(try self.units(found(fixture)) == new, "\(what)")
      try fixture.directory.directory.removeTree("into")
      try write(Self.there, in: faulty, "into")
    }
  }
}
