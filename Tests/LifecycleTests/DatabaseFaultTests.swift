import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// Databases in a directory that is merged into, while every call fails in turn: each of them is as it was,
/// with its log, or as stored, with its log.
@Suite(.spreadScans) struct DatabaseFaultTests {
  /// What is stored: one with a log, one without, one of which only the log differs from what is there,
  /// and one that is not there.
  private static let stored: [ByteString: String] = [
    "a": "a stored", "a-wal": "log of a stored", "b": "b stored",
    "c": "c", "c-journal": "journal of c stored", "d": "d stored", "d-wal": "log of d stored",
  ]
  /// What is there.
  private static let there: [ByteString: String] = [
    "a": "a there", "a-wal": "log of a there", "a-shm": "index of a there",
    "b": "b there", "b-journal": "journal of b there", "b-wal": "log of b there",
    "c": "c", "c-journal": "journal of c there", "c-wal": "log of c there",
  ]

  private func write(_ files: [ByteString: String], in faulty: FaultFixture, _ name: String) throws
  {
    for (file, text) in files {
      try faulty.rig.directory.write(text, at: ByteString(name).appending(file))
      // The same one is not to be told by its time.
      if file == "c" { try faulty.rig.setTime(ByteString(name).appending(file), 100) }
    }
  }

  /// The logs and journals that each database has in a directory, and itself.
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

  private func found(_ rig: Fixture) throws -> [ByteString: String] {
    var found: [ByteString: String] = [:]
    for name in try rig.names("into") where name.bytes.first != UInt8(ascii: ".") {
      let path = ByteString("into").appending(name)
      if try Directory.open(path: rig.directory.path("into")).status(name).kind == .file {
        found[name] = try rig.text(path)
      }
    }
    return found
  }

  private func isOfOneState(
    _ database: ByteString, _ found: [ByteString: [ByteString: String]], _ outcome: RestoreOutcome
  ) -> Bool {
    if database == "d", found[database] == ["d": "d stored"] {
      // Where nothing was it may come without its log, which is told of both.
      let failed = Set(outcome.report?.failed.map(\.path) ?? [])
      return failed.isSuperset(of: ["d", "d-wal"])
    }
    let states = [Self.there, Self.stored].map { units($0)[database] }
    return states.contains(found[database])
  }

  /// Whether all that was there of a database is there, under whatever names.
  private func isKept(_ database: ByteString, _ files: [ByteString: String]) -> Bool {
    let old = units(Self.there)[database] ?? [:]
    return old.values.allSatisfy { files.values.contains($0) }
  }

  @Test(arguments: FaultKind.some, [false, true])
  func eachIsOfOneState(_ kind: FaultKind, deletes: Bool) throws {
    let faulty = try FaultFixture()
    let rig = faulty.rig
    try rig.directory.directory.removeTree("tree")
    try write(Self.stored, in: faulty, "tree")
    let snapshot = try #require(try faulty.backup().snapshot)
    let request = RestoreRequest(
      path: "folders/tree", target: rig.directory.path("into"), overwrite: .ifChanged,
      deletes: deletes)
    try write(Self.there, in: faulty, "into")
    let new = units(Self.stored)
    let failures = try faulty.eachRestore(kind, snapshot, request) { outcome, what in
      let files = try found(rig)
      for database in ["a", "b", "c", "d"] as [ByteString] {
        let isOfOneState = isOfOneState(database, units(files), outcome)
        // Where nothing works from then on nothing can be taken back: it is told, and nothing is lost.
        let isTold = kind.staysBroken && outcome.report == nil
        #expect(isOfOneState || isTold && isKept(database, files), "\(what): \(files)")
      }
      for name in ["a-wal", "b-journal", "b-wal"] as [ByteString] where !deletes {
        // What gave way is there under another name, unless the stored one came.
        let isThere = files.values.contains(Self.there[name] ?? "")
        #expect(isThere || name == "a-wal" || kind.staysBroken, "\(what): \(name)")
      }
      try rig.directory.directory.removeTree("into")
      try write(Self.there, in: faulty, "into")
      try faulty.restore(snapshot, request)
      #expect(try self.units(found(rig)) == new, "\(what)")
      try rig.directory.directory.removeTree("into")
      try write(Self.there, in: faulty, "into")
    }
    #expect(failures >= (kind.number == nil ? 3 : 20), "\(kind): \(failures)")
  }
}
