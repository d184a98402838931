import DeviceScan
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Purge

/// Immutable and append-only files, which nobody can delete. The tests use a disk, because a file
/// system in memory may not support these flags.
@Suite(.spreadScans) struct PurgeImmutableTests {
  private let fixture: PurgeFixture

  init() throws { fixture = try PurgeFixture(inMemory: false) }

  private func run(_ plan: PurgePlan) -> PurgeReport {
    PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
  }

  private func setFlags(_ flags: UInt32, of path: ByteString) throws {
    let parent = try fixture.above(fixture.data().appending(path))
    let name = try #require(path.lastComponent)
    if try parent.status(name).kind == .directory {
      try parent.directory(name).setFlags(flags)
    } else {
      try parent.file(name).setFlags(flags)
    }
  }

  /// Calls `body` while entries have flags; prints that the test is skipped if flags cannot be set.
  private func whileFixed(
    _ entries: [(path: ByteString, flags: UInt32)], _ body: () throws -> Void
  ) throws {
    defer { for entry in entries { try? setFlags(0, of: entry.path) } }
    do {
      for entry in entries { try setFlags(entry.flags, of: entry.path) }
    } catch {
      print("skipped: no file can be made immutable: \(error)")
      return
    }
    try body()
  }

  private func names(_ plan: PurgePlan) -> [ByteString] {
    plan.fixedEntries.compactMap(\.path.lastComponent).sorted()
  }

  @Test func immutableFilesAreNotPromised() throws {
    for path: ByteString in [
      "Library/Caches/free", "Library/Caches/immutable", "Library/Caches/append",
      "Library/Caches/fixed/below", "Documents/precious",
    ] { try fixture.put(path, kib: 64) }
    try whileFixed([
      ("Library/Caches/immutable", FileFlags.immutable),
      ("Library/Caches/append", FileFlags.append), ("Library/Caches/fixed", FileFlags.immutable),
      ("Documents/precious", FileFlags.immutable),
    ]) {
      let plan = try fixture.plan()
      #expect(plan.chosenPaths == ["Library/Caches/free"])
      #expect(plan.volumes[0].levels.allSatisfy { $0.bytes < 128 << 10 })
      #expect(names(plan) == ["append", "fixed", "immutable"], "\(plan.fixedEntries)")
      let remarks = plan.fixedEntries.filter { $0.remark.contains("its direct entries") }
      #expect(remarks.map(\.path.lastComponent) == ["fixed"])
      let container = try #require(plan.scan.containers.first).container
      for (path, fixed) in [
        ("Library/Caches/immutable", "immutable"), ("Library/Caches/fixed/below", "fixed"),
      ] {
        guard case .fixed(let holder) = plan.judge(container, ByteString(path)).conflict else {
          Issue.record("\(path)")
          continue
        }
        #expect(holder.lastComponent == ByteString(fixed))
      }
      let report = run(plan)
      #expect(report.failed.isEmpty && report.changed.isEmpty, "\(report)")
      #expect(report.freed >= 64 << 10 && report.meetsGoal)
      #expect(try fixture.files().count == 4)
    }
  }

  /// A unit is deleted as a whole or not at all, so an immutable file keeps all of it.
  @Test func unitsWithImmutableFilesStay() throws {
    for path: ByteString in [
      "Library/Caches/web/fsCachedData/1", "Library/Caches/web/fsCachedData/deep/2",
      "Library/Caches/img.db", "Library/Caches/img.db-wal", "Library/Caches/free",
    ] { try fixture.put(path) }
    let before = try fixture.files()
    try whileFixed([
      ("Library/Caches/web/fsCachedData/deep/2", FileFlags.immutable),
      ("Library/Caches/img.db-wal", FileFlags.append),
    ]) {
      let plan = try fixture.plan()
      #expect(plan.chosenPaths == ["Library/Caches/free"])
      #expect(names(plan) == ["2", "img.db-wal"], "\(plan.fixedEntries)")
      #expect(run(plan).failed.isEmpty)
      #expect(try fixture.files() == before.subtracting(["Library/Caches/free"]))
    }
  }

  /// All immutable files of a unit are named, unless precious data protects the unit anyway.
  @Test(arguments: [false, true]) func allImmutableFilesOfAUnitAreNamed(isPrecious: Bool) throws {
    let unit: ByteString = "Library/Caches/web/fsCachedData"
    for name: ByteString in ["1", "2", "3/in", "9"] { try fixture.put(unit.appending(name)) }
    for name: ByteString in ["img.db", "img.db-wal"] {
      try fixture.put(ByteString("Library/Caches").appending(name))
    }
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: p, match: Library/Caches/web/fsCachedData/9, class: user-data, purge: never}
        - {id: w, match: Library/Caches/img.db-wal, class: user-data, purge: never}

      """
    let fixed: [ByteString] = ["1", "2", "3"]
    try whileFixed(
      fixed.map { (unit.appending($0), FileFlags.immutable) }
        + [("Library/Caches/img.db", FileFlags.immutable)]
    ) {
      let plan = try isPrecious ? fixture.plan([overlay]) : fixture.plan()
      #expect(plan.chosenPaths.isEmpty)
      #expect(names(plan) == (isPrecious ? [] : ["1", "2", "3", "img.db"]), "\(plan.fixedEntries)")
    }
  }

  /// A directory unit is moved to the program's directory of the container before it is deleted.
  @Test(arguments: [FileFlags.immutable, FileFlags.append])
  func unitsOfImmutableContainersStay(_ flags: UInt32) throws {
    for path: ByteString in ["Library/Caches/web/fsCachedData/1", "Library/Caches/free"] {
      try fixture.put(path, kib: 64)
    }
    let container = try fixture.above(fixture.data().appending("any"))
    do { try container.setFlags(flags) } catch {
      print("skipped: no directory can be made immutable: \(error)")
      return
    }
    defer { try? container.setFlags(0) }
    let plan = try fixture.plan()
    #expect(plan.chosenPaths == ["Library/Caches/free"])
    let scan = try #require(plan.scan.containers.first).container
    #expect(plan.fixedEntries.map(\.path) == [scan.logicalPrefix], "\(plan.fixedEntries)")
    let unit = plan.judge(scan, "Library/Caches/web/fsCachedData")
    #expect(unit.conflict == .fixed(scan.logicalPrefix), "\(unit)")
    let report = run(plan)
    #expect(report.failed.isEmpty && report.meetsGoal, "\(report)")
    #expect(try fixture.files() == ["Library/Caches/web/fsCachedData/1"])
    #expect(try !container.names().contains(".sandboxctl"))
  }

  /// Directories that an earlier purge left, and this one cannot delete either, are reported,
  /// and only the deleted part of them is counted.
  @Test func leftoversThatCannotBeDeletedAreReported() throws {
    let left: ByteString = ".sandboxctl/purge/doomed-0123"
    try fixture.put(left.appending("fixed"), kib: 256)
    try fixture.put(left.appending("free"), kib: 64)
    try whileFixed([(left.appending("fixed"), FileFlags.immutable)]) {
      let report = run(try fixture.plan())
      #expect(report.failed.map(\.path.lastComponent) == ["doomed-0123"], "\(report)")
      #expect(report.failed.allSatisfy { $0.remark.hasPrefix("an earlier purge could not") })
      #expect(report.freed >= 64 << 10 && report.freed < 128 << 10, "\(report)")
      #expect(run(try fixture.plan()).freed == 0)
    }
    let report = run(try fixture.plan())
    #expect(report.failed.isEmpty && report.freed >= 256 << 10, "\(report)")
  }

  /// A file in an immutable directory cannot be removed, but it can be truncated.
  @Test func filesOfImmutableDirectoriesAreTruncated() throws {
    for path: ByteString in ["Library/Caches/logs/a", "Library/Caches/logs/b"] {
      try fixture.put(path, kib: 64)
    }
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: t, match: Library/Caches/**, class: cache, purge: {order: 20, action: truncate}}

      """
    try whileFixed([
      ("Library/Caches/logs/b", FileFlags.append), ("Library/Caches/logs", FileFlags.immutable),
    ]) {
      let plan = try fixture.plan([overlay])
      #expect(plan.chosenPaths == ["Library/Caches/logs/a"])
      #expect(names(plan) == ["b"])
      #expect(run(plan).freed >= 64 << 10)
    }
  }

  /// Files of a running app are not counted among those that a purge would delete.
  @Test func immutableFilesOfRunningAppsAreNotNamed() throws {
    try fixture.put("Library/Caches/immutable")
    try whileFixed([("Library/Caches/immutable", FileFlags.immutable)]) {
      let scan = try fixture.scan()
      var request = fixture.request(.everything, level: .critical, scan)
      #expect(names(PurgePlan.make(scan, request)) == ["immutable"])
      let party = PurgePlan.party(of: try #require(scan.containers.first).container)
      request.running[party] = "it runs"
      #expect(PurgePlan.make(scan, request).fixedEntries.isEmpty)
    }
  }
}
