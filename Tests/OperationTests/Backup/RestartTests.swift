import ArchiveStore
import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// After a restart of the machine, which may have been a crash, databases are read although their
/// times are unchanged since the recorded ones (docs/state-file.md, "Restarts").
@Suite(.spreadScans) struct RestartTests {
  private static let first = "0e6c3b0a-52e6-4c63-8f7b-6d8f2a1c9b01"
  private static let second = "9f1d7a52-0b4e-4f0c-a3d6-1c2b3a4d5e02"
  private static let magic = Array("SQLite format 3\0".utf8)

  let fixture: Fixture
  init() throws { fixture = try Fixture(inMemory: true) }

  private func backup(
    boot: String?, _ change: (inout BackupRequest) -> Void = { _ in }
  ) throws -> (report: BackupReport, read: UInt64) {
    let counters = ProgressCounters()
    let report = try fixture.backup(keeping: "cache") { request in
      request.workers = 1
      request.counters = counters
      request.boot = boot
      change(&request)
    }
    return (report, counters.progress.bytesDone)
  }

  /// The bytes of a database's pages, distinguished by a number.
  private func pages(_ number: UInt8, count: Int = 2) -> [UInt8] {
    Self.magic + [UInt8](repeating: number, count: count * 512 - Self.magic.count)
  }

  private func write(_ bytes: [UInt8], _ name: String) throws {
    try fixture.directory.write(bytes, at: ByteString("tree/" + name))
  }

  /// Writes files of each kind; the databases and the log have 3 KiB.
  private func writeAll() throws {
    try write(pages(1), "alone")
    try write(pages(2), "sub/logged")
    try write([UInt8](repeating: 3, count: 1024), "sub/logged-wal")
    try write([UInt8](repeating: 4, count: 4096), "sub/blocks")
    try write(Array("a text".utf8), "text")
    try write([], "empty")
  }

  private static let databases: Set<ByteString> = ["folders/tree/alone", "folders/tree/sub/logged"]

  private func databases(_ report: BackupReport) -> Set<ByteString> {
    Set(report.databases.map(\.path))
  }

  @Test func aRestartReadsTheDatabasesOnce() throws {
    try writeAll()
    #expect(databases(try backup(boot: Self.first).report) == Self.databases)
    let same = try backup(boot: Self.first)
    #expect(same.report.opened == 0 && same.read == 0 && same.report.databases.isEmpty)
    let restarted = try backup(boot: Self.second) { $0.skipsUnchanged = true }
    #expect(databases(restarted.report) == Self.databases && restarted.read == 3072)
    #expect(restarted.report.isUnchanged)
    let again = try backup(boot: Self.second)
    #expect(again.report.opened == 0 && again.read == 0 && again.report.databases.isEmpty)
    _ = try fixture.restore(again.report)
    for name: ByteString in ["alone", "sub/logged", "sub/logged-wal", "sub/blocks", "text"] {
      #expect(
        try fixture.directory.read(ByteString("back").appending(name))
          == fixture.directory.read(ByteString("tree").appending(name)), "\(name)")
    }
  }

  /// A file that could be a database by its size but is not one keeps its stored content, under
  /// each of its names.
  @Test func aRestartReadsNoOtherFile() throws {
    try write([UInt8](repeating: 4, count: 4096), "sub/blocks")
    try write([UInt8](repeating: 5, count: 512), "linked")
    try write(Array("a text".utf8), "text")
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.directory("sub").createHardLink("other", to: "linked", in: tree)
    _ = try backup(boot: Self.first)
    let restarted = try backup(boot: Self.second) { $0.skipsUnchanged = true }
    #expect(restarted.report.opened == 0 && restarted.read == 0 && restarted.report.isUnchanged)
    #expect(restarted.report.isComplete && restarted.report.warnings.isEmpty)
    let again = try backup(boot: Self.second)
    #expect(again.report.opened == 0)
    #expect(try fixture.restore(again.report).isComplete)
    let back = try Directory.open(path: fixture.directory.path("back"))
    #expect(
      try back.status("linked").identity == back.directory("sub").status("other").identity)
  }

  private static let hasMemory =
    (try? Directory.open(path: "/dev/shm").volumeTimes()) == .loose

  private static let storing = """
    import mmap, sys
    with open(sys.argv[1], "r+b") as file:
      with mmap.mmap(file.fileno(), 0) as map:
        # The page is mapped by a read: a store that maps it changes the times.
        map[600]
        map[600:604] = b"late"
    """

  /// A store through a mapping does not change the times of a file in memory, as if a crash had
  /// lost the new times of a file on a disk.
  @Test(.enabled(if: hasMemory), arguments: ["alone", "sub/logged", "sub/logged-wal"])
  func aWriteThatTheTimesDoNotShowIsStoredAfterARestart(_ name: String) throws {
    try writeAll()
    _ = try backup(boot: Self.first)
    let path = ByteString("tree/" + name)
    let before = try fixture.directory.directory.status(path)
    let done = try Program.run("python3", ["-c", Self.storing, "\(fixture.directory.path(path))"])
    #expect(done.code == 0, "\(done.errors)")
    let after = try fixture.directory.directory.status(path)
    try #require(before.modified == after.modified && before.changed == after.changed)
    #expect(try backup(boot: Self.first).report.opened == 0)
    let restarted = try backup(boot: Self.second) { $0.skipsUnchanged = true }
    #expect(!restarted.report.isUnchanged)
    _ = try fixture.restore(restarted.report)
    let stored = try fixture.directory.read(ByteString("back/" + name))
    #expect(
      try stored == fixture.directory.read(path) && Array(stored[600..<604]) == Array("late".utf8))
  }

  /// Without a reliable boot ID, each run may be the first one after a crash.
  @Test(arguments: [
    nil, "", "0e6c3b0a", "00000000-0000-0000-0000-000000000000",
    "0e6c3b0a-52e6-4c63-8f7b-6d8f2a1c9b0x", "0e6c3b0a 52e6 4c63 8f7b 6d8f2a1c9b01",
  ])
  func withoutAValidBootIDDatabasesAreAlwaysRead(_ id: String?) throws {
    try writeAll()
    _ = try backup(boot: id)
    for boot in [id, id, Self.first] {
      let done = try backup(boot: boot)
      #expect(databases(done.report) == Self.databases && done.read == 3072)
    }
    #expect(try backup(boot: Self.first).report.opened == 0)
  }

  @Test func aStateWithoutABootIsOfAnotherOne() throws {
    try writeAll()
    _ = try backup(boot: Self.first)
    let above = ByteString("cache/sandboxctl/\(fixture.repository.id.hex)")
    let name = try #require(
      try fixture.names(above).first { "\($0)".hasSuffix(".state") })
    var bytes = try fixture.directory.read(above.appending(name))
    for position in [0, 4096] where bytes[position] != 0 {
      // As a program writes it that does not know the field.
      bytes.replaceSubrange(
        (position + 256)..<(position + 264), with: [UInt8](repeating: 0, count: 8))
      let sum = Blake2b.hash(Array(bytes[position..<(position + 504)])).bytes.prefix(8).reversed()
      bytes.replaceSubrange((position + 504)..<(position + 512), with: sum)
    }
    try fixture.directory.write(bytes, at: above.appending(name))
    let done = try backup(boot: Self.first)
    #expect(done.report.remarks.isEmpty, "the state is used")
    #expect(databases(done.report) == Self.databases && done.read == 3072)
    #expect(try backup(boot: Self.first).report.opened == 0)
  }

  /// The entries of an interrupted run belong to its boot, not to the one in which it is continued.
  @Test(arguments: [true, false])
  func anInterruptedRunIsOfItsBoot(_ isRestarted: Bool) throws {
    try write(pages(1), "a")
    for name in ["b", "c", "d"] { try write(Array(name.utf8), name) }
    let counters = ProgressCounters()
    let error = #expect(throws: OperationError.self) {
      try backup(boot: Self.first) { request in
        request.counters = counters
        request.isStopping = { counters.progress.filesDone >= 2 }
      }
    }
    #expect(error?.kind == .interrupted)
    let boot = isRestarted ? Self.second : Self.first
    #expect(databases(try backup(boot: boot).report) == (isRestarted ? ["folders/tree/a"] : []))
    #expect(try backup(boot: boot).report.opened == 0)
  }

  /// A run over a part of the device does not examine the other containers, so their boot ID is
  /// kept.
  @Test func aRunOverAPartKeepsTheBootOfTheOthers() throws {
    let state = try StateFixture()
    let (first, second) = (Boot(Self.first), Boot(Self.second))
    func finish(_ path: ByteString, _ boot: Boot, keepingOthers: Bool) throws {
      let run = try state.open(boot: boot)
      let position = try StateFixture.record(run, [1])
      try run.finish(
        [try StateFixture.container(path, position)], snapshot: StateFixture.snapshot, packs: [],
        keepingOthers: keepingOthers)
    }
    func isOfThisBoot(_ boot: Boot) throws -> Bool {
      let run = try state.open(boot: boot)
      return run.isOfThisBoot(try #require(run.containers.first).entry)
    }
    try finish("a", first, keepingOthers: false)
    #expect(try isOfThisBoot(first) && !isOfThisBoot(second))
    try finish("b", second, keepingOthers: true)
    #expect(try isOfThisBoot(first) && !isOfThisBoot(second))
    try finish("a", second, keepingOthers: false)
    #expect(try !isOfThisBoot(first) && isOfThisBoot(second))
    try finish("a", second, keepingOthers: true)
    #expect(try isOfThisBoot(second), "nothing else remained")
  }
}
