import ArchiveStore
import DeviceDiscovery
import PolicyEngine
import Restore
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Backup
@testable import DeviceScan

/// Backups of a locked device: for files that data protection makes unreadable, the version of the
/// last snapshot is kept (docs/data-protection.md).
@Suite(.spreadScans) struct LockedBackupTests {
  @Test func protectedFilesKeepTheirLastVersion() throws {
    let fixture = try LockedFixture()
    let names = ["a": "1", "b": "2", "c": "3", "d": "4", "junk": "11"]
    for (name, digit) in names { try fixture.write("old", name, digit) }
    try fixture.write("old", "free")
    #expect(try fixture.backup().isComplete)
    for (name, digit) in names { try fixture.write("newer", name, digit) }
    try fixture.write("newer", "free")
    let locked = try fixture.backup(locked: true)
    #expect(locked.waiting.map(\.path) == ["folders/tree/a", "folders/tree/b"])
    #expect(locked.waiting.map(\.protection) == [.complete, .completeUnlessOpen])
    #expect(locked.waiting.allSatisfy { $0.hasEarlier && $0.bytes == 5 })
    #expect(!locked.isComplete && locked.unreadable.isEmpty && locked.opened == 4)
    #expect(locked.files == 6 && locked.bytes == 4 * 5 + 2 * 3)
    let snapshot = try #require(locked.snapshot?.snapshot)
    #expect(snapshot.unreadable.map(\.path) == ["folders/tree/a", "folders/tree/b"])
    let stored = try fixture.contents(locked)
    #expect(stored["a"] == "old" && stored["b"] == "old")
    for name in ["c", "d", "free", "junk"] { #expect(stored[name] == "newer", "\(name)") }
    let next = try fixture.backup()
    #expect(next.isComplete && next.opened == 2)
    #expect(next.snapshot?.snapshot.unreadable.isEmpty == true)
    #expect(try Set(fixture.contents(next).values) == ["newer"])
    #expect(try fixture.backup().opened == 0)
  }

  @Test func aNewProtectedFileIsNamedAndMissing() throws {
    let fixture = try LockedFixture()
    try fixture.write("x", "free")
    let locked = try fixture.backup(locked: true, change: { try fixture.write("s", "d/new", "1") })
    #expect(locked.waiting.map(\.path) == ["folders/tree/d/new"])
    #expect(locked.waiting.first?.hasEarlier == false && locked.files == 1)
    #expect(try fixture.contents(locked) == ["free": "x"])
    let again = try fixture.backup(locked: true)
    #expect(again.waiting.count == 1 && again.opened == 0)
    let next = try fixture.backup()
    #expect(try fixture.contents(next) == ["free": "x", "d/new": "s"])
    #expect(next.isComplete && next.opened == 1)
  }

  @Test func anUnchangedProtectedFileDoesNotWait() throws {
    let fixture = try LockedFixture()
    try fixture.write("x", "secret", "1")
    _ = try fixture.backup()
    let locked = try fixture.backup(locked: true)
    #expect(locked.isComplete && locked.waiting.isEmpty && locked.opened == 0)
    #expect(try fixture.contents(locked) == ["secret": "x"])
  }

  @Test func withoutTheStateTheVersionsComeFromTheSnapshot() throws {
    let fixture = try LockedFixture()
    try fixture.write("x", "secret", "1")
    _ = try fixture.backup()
    let locked = try fixture.backup(locked: true, cache: "lost")
    #expect(locked.waiting.count == 1 && locked.opened == 0)
    #expect(try fixture.contents(locked) == ["secret": "x"])
    // The version is kept over several locked runs.
    try fixture.write("y", "secret", "1")
    _ = try fixture.backup(locked: true)
    #expect(try fixture.contents(fixture.backup(locked: true)) == ["secret": "x"])
  }

  @Test func metadataOverridesThePolicy() throws {
    let fixture = try LockedFixture()
    for (name, digit) in [("stated", "4"), ("secret", "1"), ("silent", nil as String?)] {
      try fixture.write("x", name, digit)
    }
    let strict = try fixture.backup(
      locked: true, rules: "{id: s, match: '**', protection: complete}")
    #expect(strict.waiting.map(\.path) == ["folders/tree/secret", "folders/tree/silent"])
    let lenient = try fixture.backup(
      locked: true, rules: "{id: l, match: '**', protection: none}")
    #expect(lenient.waiting.map(\.path) == ["folders/tree/secret"])
  }

  @Test func aDatabaseAndItsLogAreOfOneVersion() throws {
    let fixture = try LockedFixture()
    try fixture.writeDatabase("pages 1", log: "log 1", at: "db", "1")
    try fixture.writeDatabase("pages 1", log: nil, at: "other", "1")
    _ = try fixture.backup()
    // Only the log changes, and is not protected itself; the other database gets a log.
    try fixture.write("log 2, longer", "db-wal")
    try fixture.writeDatabase("pages 2", log: "log 2", at: "other", "2")
    let locked = try fixture.backup(locked: true)
    #expect(
      locked.waiting.map(\.path)
        == ["db", "db-wal", "other", "other-wal"].map { ByteString("folders/tree/\($0)") })
    #expect(locked.waiting.map(\.hasEarlier) == [true, true, true, false])
    #expect(locked.opened == 0)
    var stored = try fixture.contents(locked)
    #expect(stored["db"]?.hasSuffix("pages 1") == true && stored["db-wal"] == "log 1")
    #expect(stored["other"]?.hasSuffix("pages 1") == true && stored["other-wal"] == nil)
    // A log that only the last snapshot has belongs to its version of the database.
    try fixture.tree().remove("db-wal")
    try fixture.writeDatabase("pages 3", log: nil, at: "db", "1")
    let later = try fixture.backup(locked: true)
    stored = try fixture.contents(later)
    #expect(stored["db"]?.hasSuffix("pages 1") == true && stored["db-wal"] == "log 1")
    #expect(later.files == 3)
    let next = try fixture.backup()
    #expect(next.isComplete)
    #expect(try fixture.contents(next) == fixture.present())
  }

  @Test func aHardLinkedFileWaitsUnderAllItsNames() throws {
    let fixture = try LockedFixture()
    try fixture.write("one", "a")
    try fixture.tree().createHardLink("b", to: "a", in: fixture.tree())
    let rules = "{id: s, match: b, protection: complete}"
    _ = try fixture.backup(rules: rules)
    // The names become separate files: each keeps its last content.
    try fixture.tree().remove("a")
    try fixture.write("two", "a")
    try fixture.tree().createHardLink("c", to: "a", in: fixture.tree())
    try fixture.tree().remove("b")
    try fixture.tree().createHardLink("b", to: "a", in: fixture.tree())
    let locked = try fixture.backup(locked: true, rules: rules)
    #expect(locked.waiting.map(\.path) == ["folders/tree/a", "folders/tree/b", "folders/tree/c"])
    #expect(try fixture.contents(locked) == ["a": "one", "b": "one"])
    let next = try fixture.backup(rules: rules)
    #expect(try fixture.contents(next) == ["a": "two", "b": "two", "c": "two"])
  }

  @Test func aFormerLinkIsNotJoinedToAnotherFile() throws {
    let fixture = try LockedFixture()
    try fixture.write("one", "a", "1")
    try fixture.tree().createHardLink("b", to: "a", in: fixture.tree())
    _ = try fixture.backup()
    try fixture.tree().remove("a")
    try fixture.write("two", "a")
    try fixture.tree().createHardLink("c", to: "a", in: fixture.tree())
    try fixture.write("changed", "b", "1")
    let locked = try fixture.backup(locked: true)
    #expect(locked.waiting.map(\.path) == ["folders/tree/b"])
    #expect(try fixture.contents(locked) == ["a": "two", "b": "one", "c": "two"])
  }

  @Test func theScanOpensNoProtectedFile() throws {
    let fixture = try LockedFixture()
    let rules = "{id: d, match: '**', when: {type: database}, backup: never}"
    try fixture.writeDatabase("pages", log: nil, at: "secret", "1")
    try fixture.writeDatabase("pages", log: nil, at: "free", nil)
    func types(locked: Bool) throws -> [ByteString: EntryType] {
      let scan = try fixture.scan(locked: locked, rules: rules).containers[0]
      return Dictionary(
        uniqueKeysWithValues: scan.entries.indices.dropFirst().map {
          (scan.name($0), scan.entries[$0].type)
        })
    }
    #expect(try types(locked: false) == ["secret": .database, "free": .database])
    #expect(try types(locked: true) == ["secret": .file, "free": .database])
  }

  @Test func aRestoreWithDeleteSparesWhatWaits() throws {
    let fixture = try LockedFixture()
    try fixture.write("x", "free")
    _ = try fixture.backup()
    try fixture.write("precious", "secret", "1")
    let locked = try fixture.backup(locked: true)
    try fixture.write("later", "rest")
    _ = try fixture.base.merge(locked, into: "tree", .always, deletes: true)
    #expect(try fixture.present() == ["free": "x", "secret": "precious"])
  }

  @Test func aRestoreKeepsTheClass() throws {
    let fixture = try LockedFixture()
    try fixture.write("x", "secret", "2")
    let report = try fixture.backup()
    _ = try fixture.base.restore(report)
    let back = try Directory.open(path: fixture.base.directory.path("back"))
    let value = try back.attributes(of: "secret").value(of: ProtectionClass.attribute)
    #expect(value == Array("2".utf8))
  }
}

/// Runs on a locked device in random order, and with failures.
@Suite(.spreadScans) struct LockedBackupPropertyTests {
  /// After a locked and an unlocked run, the snapshot equals that of a single unlocked run, and in
  /// a locked run all files of a unit have the same version.
  @Test(arguments: UInt64(1)...UInt64(Sampling.count(6, of: 60)))
  func anUnlockedRunCompletesALockedOne(_ seed: UInt64) throws {
    let fixture = try LockedFixture()
    var random = Seeded(seed)
    var last = RandomUnits(&random)
    try last.write(&random, to: fixture)
    var snapshot = try fixture.contents(fixture.backup())
    for round in 0..<3 {
      try last.write(&random, to: fixture)
      let present = try fixture.present()
      let locked = try fixture.contents(fixture.backup(locked: true))
      for unit in last.units {
        let (now, then) = (unit.state(in: present), unit.state(in: snapshot))
        let kept = unit.state(in: locked)
        #expect(kept == now || kept == then, "seed \(seed), round \(round), \(unit.name)")
        if unit.isFree { #expect(kept == now, "seed \(seed), round \(round), \(unit.name)") }
      }
      snapshot = locked
      if round == 1 { continue }
      let next = try fixture.backup()
      let whole = try fixture.backup(cache: ByteString("fresh \(round)"))
      #expect(next.isComplete && whole.isComplete)
      #expect(next.snapshot?.snapshot.tree == whole.snapshot?.snapshot.tree, "seed \(seed)")
      snapshot = try fixture.contents(next)
      #expect(snapshot == present, "seed \(seed), round \(round)")
    }
  }

  @Test func aLockedRunThatFailsLosesNothing() throws {
    let fixture = try LockedFixture()
    for number in 0..<6 { try fixture.write("old \(number)", "d/\(number)", "\(number % 4 + 1)") }
    try fixture.writeDatabase("pages 1", log: "log 1", at: "db", "1")
    let before = try fixture.contents(fixture.backup())
    for number in 0..<6 { try fixture.write("newer \(number)", "d/\(number)", "\(number % 4 + 1)") }
    try fixture.writeDatabase("pages 2", log: "log 2", at: "db", "1")
    let storage = WatchedStorage(
      fixture.base.repository.storage, passing: WatchedStorage.isFurtherPackDirectory)
    let broken = try Repository.open(storage)
    var (failures, report) = (0, nil as BackupReport?)
    for call in stride(from: 1, to: 400, by: 3) where report == nil {
      storage.state.withLock { ($0.calls, $0.failing, $0.failsRepeatedly) = (0, call, true) }
      report = try? fixture.backup(locked: true, to: broken)
      storage.state.withLock { $0.failing = nil }
      if report == nil { failures += 1 }
      try fixture.expectSound("call \(call)")
    }
    #expect(failures > 3)
    let locked = try fixture.contents(#require(report))
    for name in ["d/0", "d/1", "d/4", "d/5", "db", "db-wal"] {
      #expect(locked[name] == before[name], "\(name)")
    }
    #expect(locked["d/2"] == "newer 2")
    #expect(try fixture.contents(fixture.backup()) == fixture.present())
  }
}

/// A directory whose files have data protection classes, and its repository.
private struct LockedFixture {
  let base: Fixture

  init() throws { base = try Fixture() }

  func tree() throws -> Directory { try base.tree() }

  /// Writes a file, with a data protection class if one is given.
  func write(_ text: String, _ path: String, _ protection: String? = nil) throws {
    try base.directory.write(text, at: ByteString("tree/\(path)"))
    guard let protection else { return }
    let parts = ByteString(path).components
    let above = parts.dropLast().reduce(base.directory.path("tree")) { $0.appending($1) }
    let directory = try Directory.open(path: above)
    try directory.attributes(of: parts[parts.count - 1])
      .set(ProtectionClass.attribute, to: Array(protection.utf8))
  }

  /// Writes a database with its log, of which only the database has a class.
  func writeDatabase(
    _ pages: String, log: String?, at path: String, _ protection: String?
  ) throws {
    try write("SQLite format 3\0" + pages, path, protection)
    if let log { try write(log, path + "-wal") }
  }

  func scan(locked: Bool, rules: String? = nil) throws -> DeviceScan {
    var options = ScanOptions()
    options.isLocked = locked
    let device = try Device.find(root: base.directory.path("tree"), layout: .folder)
    return DeviceScan.run(device, policy: try policy(rules), options: options)
  }

  private func policy(_ rules: String?) throws -> CompiledPolicy {
    guard let rules else { return try Fixture.policy(.folder) }
    let text =
      "policy: test\nschema: 1\nlayout: folder\nrules:\n"
      + "- {id: all, in: [folder], match: '**', class: user-data, backup: always}\n"
      + "- \(rules.replacing("match:", with: "in: [folder], match:"))\n"
    let library = PolicyLibrary([PolicySource(name: "test", text: text, origin: .builtin)])
    return try library.compile(PolicyRequest(policy: "test", layout: .folder))
  }

  /// Calls `change`, then backs up the tree.
  func backup(
    locked: Bool = false, rules: String? = nil, cache: ByteString = "cache",
    to other: Repository? = nil, change: () throws -> Void = {}
  ) throws -> BackupReport {
    try change()
    var request = base.request(keeping: cache)
    request.isLocked = locked
    let plan = BackupPlan.make(try scan(locked: locked, rules: rules))
    return try BackupOperation(plan, to: other ?? base.repository, request).run()
  }

  /// The contents of the files in a snapshot, by path.
  func contents(_ report: BackupReport) throws -> [String: String] {
    let restored = try base.restore(report, to: "contents")
    #expect(restored.isComplete)
    defer { try? base.directory.directory.removeTree("contents") }
    return try files("contents")
  }

  /// The contents of the files on the device.
  func present() throws -> [String: String] { try files("tree") }

  private func files(_ path: ByteString) throws -> [String: String] {
    var found: [String: String] = [:]
    for (name, record) in try base.records(path) where record.kind == .file {
      found[name.description] = try base.text(path.appending(name))
    }
    return found
  }

  /// Checks that nothing is damaged or missing in the repository.
  func expectSound(_ what: String) throws {
    let check = RepositoryCheck(base.repository, reading: .everything, workers: 1)
    let report = try check.run().forEachFinding { _ in }
    #expect(report.damaged == 0, "\(what)")
  }
}

/// Files and databases that are changed at random.
private struct RandomUnits {
  /// A file, or a database with its log.
  struct Unit {
    let name: String
    let isDatabase: Bool
    let protection: Int
    /// Whether it can be read while the device is locked.
    var isFree: Bool { protection == 0 || protection > 2 }

    /// The contents of its files.
    func state(in files: [String: String]) -> [String?] {
      [files[name], isDatabase ? files[name + "-wal"] : nil]
    }
  }

  let units: [Unit]
  private var version = 0

  init(_ random: inout Seeded) {
    units = (0..<12).map { number in
      Unit(
        name: "d\(number % 3)/u\(number)", isDatabase: number % 2 == 0,
        protection: Int(random.bytes(1)[0]) % 5)
    }
  }

  /// Creates, changes and removes some of the units.
  mutating func write(_ random: inout Seeded, to fixture: LockedFixture) throws {
    version += 1
    for unit in units {
      let choice = random.bytes(1)[0] % 4
      if choice == 0 { continue }
      let directory = fixture.base.directory
      for name in [unit.name, unit.name + "-wal"] {
        let path = ByteString("tree/\(name)")
        if try directory.directory.statusIfPresent(path) != nil {
          try Directory.open(path: directory.path(ByteString("tree/\(name.prefix(2))")))
            .remove(ByteString(name.dropFirst(3).description))
        }
      }
      if choice == 1 { continue }
      let protection = unit.protection == 0 ? nil : "\(unit.protection)"
      if unit.isDatabase {
        try fixture.writeDatabase(
          "pages \(version)", log: choice == 2 ? "log \(version)" : nil, at: unit.name, protection)
      } else {
        try fixture.write("text \(version)", unit.name, protection)
      }
    }
  }
}
