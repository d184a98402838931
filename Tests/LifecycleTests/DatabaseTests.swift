import ArchiveStore
import Foundation
import Lifecycle
import PolicyEngine
import SystemIO
import TestSupport
import Testing

/// Databases are stored with their logs and journals, as they were at one moment.
@Suite(.spreadScans) struct DatabaseTests {
  private static let magic = "SQLite format 3\0"

  private func how(_ report: BackupReport) -> [ByteString: String] {
    Dictionary(uniqueKeysWithValues: report.databases.map { ($0.path, $0.how) })
  }

  @Test func aDatabaseIsKnownByItsBytesOrByItsLog() throws {
    let rig = try Fixture()
    try rig.directory.write(Self.magic + "alone", at: "tree/alone")
    try rig.directory.write(Self.magic + "pages", at: "tree/journaled")
    try rig.directory.write("old pages", at: "tree/journaled-journal")
    try rig.directory.write("secret pages", at: "tree/encrypted")
    try rig.directory.write("secret log", at: "tree/encrypted-wal")
    try rig.directory.write("index of the log", at: "tree/encrypted-shm")
    try rig.directory.write("dear diary", at: "tree/travel")
    try rig.directory.write("day one", at: "tree/travel-journal")
    try rig.directory.write("a log of nothing", at: "tree/nothing-wal")
    let report = try rig.backup(keeping: "cache")
    #expect(
      how(report) == [
        "folders/tree/alone": "watching", "folders/tree/journaled": "watching",
        "folders/tree/encrypted": "watching",
      ])
    #expect(report.snapshot?.snapshot.databases == report.databases)
    #expect(report.files == 9 && report.isComplete && report.warnings.isEmpty)
    _ = try rig.restore(report)
    #expect(try rig.names("back") == rig.names("tree"))
    for name in try rig.names("tree") {
      let (now, then) = (ByteString("tree").appending(name), ByteString("back").appending(name))
      #expect(try rig.directory.read(now) == rig.directory.read(then), "\(name)")
    }
    let again = try rig.backup(keeping: "cache")
    #expect(again.opened == 0 && again.databases.isEmpty)
  }

  @Test func aLogThatGrewIsReadAndItsDatabaseIsNot() throws {
    let rig = try Fixture()
    var random = Seeded(3)
    try rig.directory.write(Self.magic.utf8 + random.bytes(3_000_000), at: "tree/db")
    try rig.directory.write(random.bytes(4_000), at: "tree/db-wal")
    let first = try rig.backup(keeping: "cache")
    try rig.directory.write(random.bytes(8_000), at: "tree/db-wal")
    let counters = ProgressCounters()
    let second = try rig.backup(keeping: "cache") { $0.counters = counters }
    #expect(how(second) == ["folders/tree/db": "watching"])
    #expect(counters.progress.bytesDone == 8_000)
    #expect(first.files == 2 && second.files == 2)
    _ = try rig.restore(second)
    #expect(try rig.directory.read("back/db") == rig.directory.read("tree/db"))
    #expect(try rig.directory.read("back/db-wal") == rig.directory.read("tree/db-wal"))
  }

  @Test func whatCameOrWentSinceTheScanIsAsTheCaptureFoundIt() throws {
    let rig = try Fixture()
    try rig.directory.write(Self.magic + "pages", at: "tree/a")
    try rig.directory.write("log", at: "tree/a-wal")
    try rig.directory.write(Self.magic + "pages", at: "tree/b")
    try rig.directory.write("more", at: "tree/c")
    let scan = try rig.scan()
    try Directory.open(path: rig.directory.path("tree")).remove("a-wal")
    try rig.directory.write("a new log", at: "tree/b-wal")
    let report = try rig.backup(scan)
    #expect(report.files == 4 && report.isComplete && report.warnings.isEmpty)
    _ = try rig.restore(report)
    #expect(try rig.names("back") == ["a", "b", "b-wal", "c"])
    #expect(try rig.text("back/b-wal") == "a new log")
  }

  /// Databases of which each file has a name in two directories, as `cp -al` makes them; and what only looks
  /// like them: a file beside one with a journal's name. Each is found by both names.
  @Test func hardLinkedDatabasesAreWhole() throws {
    let rig = try Fixture()
    let names = ["db", "db-wal", "plain", "plain-journal", "only", "only-journal", "small"]
    for name in names { try rig.directory.write("in \(name)", at: ByteString("tree/a/\(name)")) }
    try rig.directory.write(Self.magic + "pages", at: "tree/a/db")
    try rig.directory.write(Self.magic + "pages", at: "tree/a/small")
    try rig.directory.write("a journal of its own", at: "tree/b/only-journal")
    let tree = try Directory.open(path: rig.directory.path("tree"))
    for name in names where name != "only-journal" {
      let name = ByteString(name)
      try tree.directory("b").createHardLink(name, to: name, in: tree.directory("a"))
    }
    let report = try rig.backup(keeping: "cache")
    #expect(report.isComplete && report.warnings.isEmpty && report.files == 14)
    #expect(try rig.restore(report).isComplete)
    let back = try Directory.open(path: rig.directory.path("back"))
    for name in names {
      for directory in ["a", "b"] {
        let path = ByteString("\(directory)/\(name)")
        #expect(
          try rig.directory.read(ByteString("tree").appending(path))
            == rig.directory.read(ByteString("back").appending(path)), "\(path)")
      }
      let places = try ["a", "b"].map { try back.directory($0).status(ByteString(name)).identity }
      #expect((places[0] == places[1]) == (name != "only-journal"), "\(name)")
    }
    #expect(try rig.backup(keeping: "cache").opened == 0)
  }

  @Test func aLogThatIsLeftOutStaysOut() throws {
    let rig = try Fixture()
    try rig.directory.write(Self.magic + "pages", at: "tree/a")
    try rig.directory.write("log", at: "tree/a-wal")
    let report = try rig.backup(try rig.scan([.exclude("*-wal")]))
    #expect(how(report) == ["folders/tree/a": "watching"])
    _ = try rig.restore(report)
    #expect(try rig.names("back") == ["a"])
  }

  @Test func aDatabaseThatIsBusyIsTriedAgainAtTheEnd() throws {
    let rig = try Fixture()
    let pages = [UInt8](repeating: 1, count: 4 << 20)
    try rig.directory.write(Array(Self.magic.utf8) + pages, at: "tree/a busy one")
    try rig.directory.write("log", at: "tree/a busy one-wal")
    for number in 0..<300 {
      try rig.directory.write("\(number)", at: ByteString("tree/b\(number)"))
    }
    // Another program holds the database's lock for itself and keeps writing.
    let writer = try BusyWriter(rig.directory.path("tree/a busy one"))
    defer { writer.stop() }
    // It is read for a third of a second, in which the writer gets its turn, on most machines.
    let slowly = Faults.Plan(pausing: 0.005, afterReading: 64 << 10)
    func backup() throws -> BackupReport {
      try Faults.inject(slowly) {
        try rig.backup(keeping: "cache") { $0.databaseTimeout = 0.5 }
      }
    }
    var report = try backup()
    let end = Host.monotonicSeconds() + 300
    while report.warnings.isEmpty, Host.monotonicSeconds() < end { report = try backup() }
    #expect(how(report) == ["folders/tree/a busy one": "as-it-stood"])
    #expect(report.warnings.map(\.path) == ["folders/tree/a busy one"])
    #expect(
      report.warnings.map(\.remark) == [
        "the database was in use and is stored as it stood: other programs held its locks"
      ])
    #expect(!report.isComplete && report.files == 302, "what may be torn is not complete")
    writer.stop()
    let next = try rig.backup(keeping: "cache")
    #expect(how(next) == ["folders/tree/a busy one": "watching"])
  }
}

/// A program that locks a database as SQLite does in exclusive mode, and writes to it all the time.
private final class BusyWriter {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  private static let program = """
    import fcntl, os, select, sys
    file = os.open(sys.argv[1], os.O_RDWR)
    fcntl.lockf(file, fcntl.LOCK_EX, 512, 0x40000000)
    print("ready", flush=True)
    while not select.select([0], [], [], 0)[0]: os.pwrite(file, os.urandom(8), 16)
    """

  init(_ path: ByteString) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "python3", "-c", Self.program, String(decoding: path.bytes, as: UTF8.self),
    ]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    _ = output.fileHandleForReading.readData(ofLength: 1)
  }

  func stop() {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }
}
