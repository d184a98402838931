import DeviceScan
import PolicyEngine
import Purge
import SystemIO
import TestSupport
import Testing

/// Conditions on the age of files. A database with its log, its journal and its index is deleted
/// only if the age of each of them permits it: the database's own time says little while its
/// commits are in its log.
@Suite(.spreadScans) struct PurgeAgeTests {
  private static let caches: ByteString = "Library/Caches"
  private static let old: Int64 = 60
  private static let young: Int64 = 2

  /// Policies that let a purge delete files older than 30 days, in two ways.
  private static let overlays = [
    """
    overlay: [coresimulator]
    schema: 1
    rules:
      - {id: none, match: Library/Caches/**, purge: never}
      - {id: old, match: Library/Caches/**, purge: {order: 20}, when: {older-than: 30d}}

    """,
    """
    overlay: [coresimulator]
    schema: 1
    rules:
      - {id: young, match: Library/Caches/**, purge: never, when: {newer-than: 30d}}

    """,
  ]

  /// Writes the files of a database, by suffix with the days since their last change.
  private func write(
    _ name: String, _ ages: [String: Int64], in fixture: PurgeFixture
  ) throws {
    let directory = fixture.data().appending(Self.caches)
    for (suffix, days) in ages {
      let file = ByteString(name + suffix)
      try fixture.put(Self.caches.appending(file))
      try Directory.open(path: fixture.directory.path(directory)).setModified(
        Timestamp(seconds: Host.now().seconds - days * 86_400), of: file)
    }
  }

  @Test(arguments: overlays) func aDatabaseIsAsYoungAsItsYoungestFile(_ overlay: String) throws {
    let fixture = try PurgeFixture()
    try write("plain", ["": Self.old], in: fixture)
    try write("recent", ["": Self.young], in: fixture)
    try write("whole", ["": Self.old, "-wal": Self.old, "-shm": Self.old], in: fixture)
    try write("undone", ["": Self.old, "-journal": Self.old], in: fixture)
    try write("young", ["": Self.young, "-wal": Self.old], in: fixture)
    for suffix in ["-wal", "-journal", "-shm"] {
      try write("with\(suffix).db", ["": Self.old, suffix: Self.young], in: fixture)
    }
    let before = try fixture.files()
    let plan = try fixture.plan([overlay])
    let chosen: Set<ByteString> = ["plain", "undone", "whole"]
    #expect(Set(plan.chosenPaths.compactMap(\.lastComponent)) == chosen)
    #expect(plan.units.count == 3 && plan.units.count { $0.kind == .database } == 2)
    let report = PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
    #expect(report.failed.isEmpty && report.changed.isEmpty)
    let deleted: [ByteString] = [
      "plain", "undone", "undone-journal", "whole", "whole-wal", "whole-shm",
    ]
    #expect(
      try fixture.files() == before.subtracting(deleted.map { Self.caches.appending($0) }))
  }

  /// A log is not deleted without its database, even if the log's own age permits it.
  @Test(arguments: overlays) func aLogIsKeptWithItsDatabase(_ overlay: String) throws {
    let fixture = try PurgeFixture()
    try write("db", ["": Self.young, "-wal": Self.old, "-journal": Self.old], in: fixture)
    try write("lone", ["-wal": Self.old], in: fixture)
    #expect(try fixture.plan([overlay]).chosenPaths == [Self.caches.appending("lone-wal")])
  }

  /// A backup stores a database with its log, whatever ages a purge requires.
  @Test(arguments: overlays) func agesDoNotAffectTheVerdictsOfABackup(_ overlay: String) throws {
    let fixture = try PurgeFixture()
    try write("db", ["": Self.young, "-wal": Self.old], in: fixture)
    let device = try fixture.scan().device
    let policy = try PurgeFixture.policy([
      overlay,
      "overlay: [coresimulator]\nschema: 1\nrules:\n"
        + "  - {id: all, match: Library/Caches/**, backup: always}\n",
    ])
    let scan = DeviceScan.run(device, policy: policy, options: ScanOptions())
    let entries = scan.containers.flatMap { container in
      container.entries.indices.map { (container.path($0), container.entries[$0]) }
    }.filter { $0.0.isWithin("Library/Caches/db") || $0.0 == "Library/Caches/db-wal" }
    #expect(entries.count == 2 && entries.allSatisfy { $0.1.selection == .included })
    let purges = Dictionary(uniqueKeysWithValues: entries.map { ($0.0, $0.1.verdicts.keep.purge) })
    #expect(purges["Library/Caches/db"]?.terms == nil)
    #expect(purges["Library/Caches/db-wal"]?.terms != nil)
  }
}
