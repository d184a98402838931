import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceTransaction
import PolicyEngine
import Restore
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Existing entries that a restore keeps under another name next to the restored ones: each gets a
/// separate name, a database is kept with its log, and all of them are reported.
@Suite(.spreadScans) struct KeptEntryTests {
  private let fixture: Fixture

  init() throws { fixture = try Fixture(inMemory: true) }

  private func write(_ files: [String: String]) throws {
    for (name, text) in files { try fixture.directory.write(text, at: ByteString("tree/\(name)")) }
  }

  /// The names of the kept entries in the tree, with their texts.
  private func kept() throws -> [ByteString: String] {
    var found: [ByteString: String] = [:]
    for name in try fixture.names("tree") where name.description.contains(".before-restore-") {
      found[name] = try fixture.text(ByteString("tree").appending(name))
    }
    return found
  }

  private func reader() throws -> RepositoryReader { try fixture.repository.beginReading() }

  /// Plans the restore of one path, or of all. Existing entries that match a pattern are in no
  /// backup, so they are kept.
  private func plan(
    _ stored: StoredSnapshot, _ path: ByteString = "", excluding patterns: [Pattern.Text] = [],
    at time: Timestamp = Host.now(), deletes: Bool = false
  ) throws -> DeviceRestorePlan {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    var request = DeviceRestoreRequest(
      device, isInPlace: true,
      policy: try Fixture.policy(.folder, patterns.map { .exclude($0) }), time: time)
    (request.path, request.savesFirst, request.isForced) = (path, false, true)
    request.deletes = deletes
    return try DeviceRestorePlan.make(stored, request, from: reader())
  }

  private func run(
    _ plan: DeviceRestorePlan, isStopping: @escaping @Sendable () -> Bool = { false }
  ) throws -> DeviceRestoreOperation.Report {
    try DeviceRestoreOperation(
      plan, from: reader(),
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository),
      isStopping: isStopping
    ).run()
  }

  private static func long(_ count: Int, _ end: String = "") -> String {
    String(repeating: "x", count: count - end.utf8.count) + end
  }

  // MARK: - Failures

  /// A directory has to be renamed before a file gets its name. If the file cannot be put in place,
  /// for example on a full volume, the directory is moved back from the trash.
  @Test func anEntryOfAnotherKindReturnsIfItsReplacementFails() throws {
    try write(["kind": "stored"])
    let stored = try #require(try fixture.backup().snapshot)
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    var returned = 0
    for call in 1..<100 {
      _ = try Recovery(device, policy: Fixture.policy(.folder), isForced: true).run()
      try tree.removeTree("kind")
      try write(["kind/inner": "present"])
      let plan = try plan(stored, deletes: true)
      let fault = Faults.Plan(failing: [.rename], at: call, number: 28)
      let report = try? Faults.inject(fault) { try run(plan) }
      let isStored = (try? fixture.text("tree/kind")) == "stored"
      let isPresent = (try? fixture.text("tree/kind/inner")) == "present"
      #expect(isStored || isPresent, "call \(call)")
      if isPresent { returned += 1 }
      if !fault.hasFired {
        #expect(isStored && report != nil)
        break
      }
    }
    #expect(returned > 1)
  }

  /// If a directory temporarily cannot be read while the policy is applied to the device, its
  /// entries are kept, and the restore reports this, even if a thread of the scan was to begin with
  /// it.
  @Test(arguments: [ScanVariant.usual, ScanVariant(share: 1, workers: 2)])
  func keptEntriesOfAnUnreadableDirectoryAreReported(_ variant: ScanVariant) throws {
    try write(["folder/stored": "stored"])
    let stored = try #require(try fixture.backup().snapshot)
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    var reported = 0
    for call in 1..<400 {
      _ = try Recovery(device, policy: Fixture.policy(.folder), isForced: true).run()
      try write(["folder/extra": "extra"])
      let fault = Faults.Plan(failing: [.open, .list], at: call, number: 5)
      let report = try? Faults.inject(fault) {
        try variant.run { try run(plan(stored, deletes: true)) }
      }
      let isThere = try fixture.names("tree/folder").contains("extra")
      if let report, isThere {
        let failed = report.remarks(\.failed).map(\.path)
        #expect(!failed.isEmpty || !report.damaged.isEmpty, "call \(call)")
        if failed == ["folders/tree/folder/extra"] { reported += 1 }
      }
      if !fault.hasFired {
        #expect(report != nil && !isThere)
        break
      }
    }
    #expect(reported > 0)
  }

  // MARK: - Databases

  /// The first restore keeps a database without a log, and the second one a database with a log,
  /// within one second or at exactly the same time. Only its own database finds the log.
  @Test(arguments: [0, 1] as [UInt32]) func keptDatabasesHaveTheirOwnLogs(
    _ nanoseconds: UInt32
  ) throws {
    try write(["db": "SQLite format 3\0 stored"])
    let stored = try #require(try fixture.backup().snapshot)
    let first = Timestamp(seconds: Host.now().seconds)
    try write(["db": "SQLite format 3\0 first"])
    _ = try run(plan(stored, "folders/tree/db", at: first))
    try write(["db": "SQLite format 3\0 second", "db-wal": "log of second"])
    let second = Timestamp(seconds: first.seconds, nanoseconds: nanoseconds)
    let report = try run(plan(stored, "folders/tree/db", at: second))
    let kept = try kept()
    #expect(kept.count == 3, "\(kept.keys)")
    let databases = kept.filter { $0.value.hasPrefix("SQLite") }
    for (name, text) in databases {
      let log = kept[ByteString("\(name)-wal")]
      #expect(log == (text.hasSuffix("second") ? "log of second" : nil), "\(kept.keys)")
    }
    #expect(Set(report.setAside.compactMap(\.keptPath.lastComponent)).count == 2)
    // Only identical times need a number.
    let number = nanoseconds == 0 ? ".1" : ".000000001"
    #expect(databases.keys.contains { $0.description.hasSuffix(number) }, "\(kept.keys)")
    #expect(
      report.setAside.allSatisfy {
        kept[$0.keptPath.lastComponent ?? ""]?.contains("second") == true
      })
  }

  /// The names of a database and its companions are truncated at the same place.
  @Test(arguments: [200, 210, 240, 247]) func longKeptDatabasesHaveTheirLogs(
    _ length: Int
  ) throws {
    let (one, two) = (Self.long(length, "1"), Self.long(length, "2"))
    for name in [one, two] { try write([name: "SQLite format 3\0 stored"]) }
    let stored = try #require(try fixture.backup().snapshot)
    for name in [one, two] {
      let number = name.suffix(1)
      try write([name: "SQLite format 3\0 \(number)", "\(name)-wal": "log \(number)"])
      try write(["\(name)-journal": "journal \(number)"])
    }
    let report = try run(plan(stored, excluding: ["x*"]))
    let kept = try kept()
    #expect(kept.count == 6 && report.setAside.count == 6, "\(kept.keys)")
    for (name, text) in kept where text.hasPrefix("SQLite") {
      let number = text.suffix(1)
      #expect(kept[ByteString("\(name)-wal")] == "log \(number)")
      #expect(kept[ByteString("\(name)-journal")] == "journal \(number)")
    }
  }

  /// The restore ends at each move in turn: no database is next to another one's log, nothing is
  /// lost, and after the recovery all files have the same state.
  @Test func noDatabaseIsBesideAnotherLogAtAnyMoment() throws {
    let stored = ["db": "SQLite format 3\0 stored", "db-wal": "log of stored"]
    let present = [
      "db": "SQLite format 3\0 present", "db-wal": "log of present", "db-shm": "index",
    ]
    try write(stored)
    let snapshot = try #require(try fixture.backup().snapshot)
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    var isComplete = false
    for call in 1..<200 {
      try write(present)
      let plan = try plan(snapshot)
      let end = Faults.Plan(endingAt: call, of: [.rename, .link, .remove])
      _ = try? Faults.inject(end) { try run(plan) }
      isComplete = !end.hasFired
      if isComplete { break }
      let found = try databaseFiles()
      if let database = found["db"], let log = found["db-wal"] {
        #expect(database.hasSuffix("stored") == log.hasSuffix("stored"), "call \(call)")
      }
      for recovered in try Recovery(device, policy: Fixture.policy(.folder)).run().done {
        #expect(recovered.failed.isEmpty, "call \(call): \(recovered.failed)")
      }
      let state = try databaseFiles()
      #expect(state == stored || state == present, "call \(call): \(state)")
      let tree = try fixture.tree()
      for name in state.keys { try tree.remove(ByteString(name)) }
      try? tree.removeTree(".sandboxctl")
    }
    #expect(isComplete)
  }

  private func databaseFiles() throws -> [String: String] {
    var found: [String: String] = [:]
    for name in try fixture.names("tree") where name.description.hasPrefix("db") {
      found[name.description] = try fixture.text(ByteString("tree").appending(name))
    }
    return found
  }

  // MARK: - Names

  /// Two long names that differ only at their ends are truncated to the same name.
  @Test func longNamesTruncatedToTheSameNameAreBothKept() throws {
    let names = [Self.long(231, "1"), Self.long(231, "2"), Self.long(231, "3")]
    for name in names { try write([name: "stored"]) }
    let stored = try #require(try fixture.backup().snapshot)
    for name in names { try write([name: "present \(name.suffix(1))"]) }
    let plan = try plan(stored, excluding: ["x*"])
    // The journal has the names that were actually used.
    let part = try #require(plan.parts.first).plan
    let root = try Directory.open(resolved: part.target.directory)
    let staging = try StagingDirectory.make(in: root, keeping: NeededStaging())
    let run = try RestoreRun(
      part, in: root, staging: staging, threads: 1, counters: ProgressCounters())
    let steps = PlacementSteps(
      try part.numberingKeptEntries(for: run), without: run.findings, hasTrash: true
    ).all
    let planned = Set(steps.compactMap(\.keptName))
    try staging.remove()
    let report = try self.run(plan)
    #expect(report.remarks(\.failed).isEmpty)
    let kept = try kept()
    #expect(kept.count == 3 && Set(kept.keys) == planned, "\(kept.keys)")
    for entry in report.setAside {
      let number = entry.path.description.suffix(1)
      #expect(kept[entry.keptPath.lastComponent ?? ""] == "present \(number)")
    }
    #expect(report.setAside.count == 3)
  }

  /// A second restore at the same time keeps another file under another name, and reports it.
  @Test func anOccupiedNameGetsANumber() throws {
    try write(["a": "stored"])
    let stored = try #require(try fixture.backup().snapshot)
    let time = Host.now()
    for state in ["first", "second"] {
      try write(["a": state])
      let report = try run(plan(stored, "folders/tree/a", at: time))
      let name = report.setAside.first?.keptPath.lastComponent
      #expect(try name.map { try fixture.text(ByteString("tree").appending($0)) } == state)
    }
    #expect(try Set(kept().values) == ["first", "second"])
  }

  // MARK: - Changes and failures

  /// Another program replaces the file before each status call in turn: all versions of the file
  /// are in place or kept, and all kept ones are reported.
  @Test func replacementsOfAKeptEntryAreKeptAndReported() throws {
    try write(["a": "stored"])
    let stored = try #require(try fixture.backup().snapshot)
    let tree = fixture.directory.path("tree")
    var most = 0
    for call in 1... {
      try write(["a": "present"])
      try fixture.directory.write("app \(call)", at: "app/a")
      let swap = Faults.Plan(before: [.status], at: call) { [app = fixture.directory.path("app")] in
        guard let from = try? Directory.open(path: app), let to = try? Directory.open(path: tree)
        else { return }
        try? from.rename("a", to: "a", in: to)
      }
      let report = try? Faults.inject(swap) { try run(plan(stored, "folders/tree/a")) }
      if !swap.hasFired { break }
      let kept = try kept()
      #expect(try (kept.values + [fixture.text("tree/a")]).contains("app \(call)"), "\(kept)")
      if let report {
        #expect(Set(report.setAside.compactMap(\.keptPath.lastComponent)) == Set(kept.keys))
      }
      most = max(most, kept.count)
      for name in kept.keys { try Directory.open(path: tree).remove(name) }
      try? Directory.open(path: tree).removeTree(".sandboxctl")
    }
    #expect(most == 2, "a file came between")
  }

  /// Each rename fails in turn. If the existing file stays, it has no second name; any other kept
  /// entry is reported.
  @Test(arguments: [false, true]) func aFailedPlacementLeavesNoSecondName(
    linksFail: Bool
  ) throws {
    try write(["a": "stored", "b": "stored"])
    let stored = try #require(try fixture.backup().snapshot)
    let tree = try fixture.tree()
    for call in 1... {
      try write(["a": "present", "b": "present"])
      let plan = try plan(stored, excluding: ["a", "b"])
      let faults = Faults.Plan(
        failing: linksFail ? [.rename, .link] : [.rename], at: call, number: 13)
      var report: DeviceRestoreOperation.Report?
      var said = ""
      Faults.inject(faults) { do { report = try run(plan) } catch { said = "\(error)" } }
      if !faults.hasFired { break }
      said += report?.setAside.map { "\($0.keptPath)" }.joined(separator: " ") ?? ""
      for name in try kept().keys {
        #expect(said.contains("\(name)"), "call \(call): \(name) in \(said)")
        #expect(try tree.status(name).links == 1, "call \(call): \(name)")
        try tree.remove(name)
      }
      try? tree.removeTree(".sandboxctl")
    }
  }

  /// Each rename fails in turn: a file that stays is not in the trash, and is not reported as kept
  /// there.
  @Test func aFileThatIsNotReplacedIsNotInTheTrash() throws {
    try write(["a": "stored", "folder/b": "stored"])
    let stored = try #require(try fixture.backup().snapshot)
    let tree = try fixture.tree()
    var stayed = 0
    for call in 1... {
      try write(["a": "present", "folder/b": "present"])
      let plan = try plan(stored)
      let faults = Faults.Plan(failing: [.rename], at: call, number: 13)
      let report = try? Faults.inject(faults) { try run(plan) }
      if !faults.hasFired { break }
      var isReplaced = false
      for path in ["a", "folder/b"] as [ByteString] {
        let full = ByteString("tree").appending(path)
        if try fixture.text(full) == "stored" {
          isReplaced = true
        } else {
          stayed += 1
          let above = try Directory.open(path: fixture.directory.path(full.parent))
          #expect(try above.status(path.lastComponent ?? "").links == 1, "call \(call): \(path)")
        }
      }
      if let report { #expect((report.trash != nil) == isReplaced, "call \(call)") }
      try? tree.removeTree(".sandboxctl")
    }
    #expect(stayed > 0)
  }

  /// An interrupted restore lists the entries that it kept before.
  @Test func anInterruptedRestoreListsKeptEntries() throws {
    let names = (0..<6).map { "f\($0)" }
    for name in names { try write([name: "stored"]) }
    let stored = try #require(try fixture.backup().snapshot)
    var named = 0
    for stop in 1... {
      for name in names { try write([name: "present"]) }
      let asked = Atomic<Int>(0)
      let plan = try plan(stored, excluding: ["f*"])
      do {
        _ = try run(plan) { asked.add(1, ordering: .relaxed).newValue >= stop }
        break
      } catch let error as OperationError where error.kind == .interrupted {
        let kept = try kept().keys
        #expect(kept.allSatisfy { error.description.contains("\($0)'") }, "\(error)")
        named = max(named, kept.count)
      }
      for name in try kept().keys { try fixture.tree().remove(name) }
      try? fixture.tree().removeTree(".sandboxctl")
    }
    #expect(named > 2)
  }
}
