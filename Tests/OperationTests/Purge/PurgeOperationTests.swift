import ArchiveStore
import DeviceScan
import Glibc
import SystemIO
import TestSupport
import Testing

@testable import Purge

/// Which files a purge deletes, and which it keeps.
@Suite(.spreadScans) struct PurgeOperationTests {
  /// Carries out a plan; no app runs unless a test sets it.
  private func run(
    _ plan: PurgePlan, _ change: (inout PurgeOptions) -> Void = { _ in }
  ) -> PurgeReport {
    var options = PurgeOptions(sign: { _, _ in nil })
    change(&options)
    return PurgeOperation(plan, options).run()
  }

  private func filled() throws -> PurgeFixture {
    let fixture = try PurgeFixture()
    for path: ByteString in [
      "Documents/a.txt", "Library/Preferences/c.plist", "Library/Caches/one",
      "Library/Caches/deep/er/two", "Library/Caches/img.db", "Library/Caches/img.db-wal",
      "Library/Caches/web/fsCachedData/1", "Library/Caches/web/fsCachedData/deep/2", "tmp/upload",
    ] { try fixture.put(path) }
    return fixture
  }

  private static let kept: Set<ByteString> = ["Documents/a.txt", "Library/Preferences/c.plist"]

  @Test func onlyCachesAreDeleted() throws {
    let fixture = try filled()
    let plan = try fixture.plan()
    let report = run(plan)
    #expect(try fixture.files() == Self.kept)
    #expect(report.volumes[0].units == 5 && report.volumes[0].files == 7)
    #expect(report.freed >= 7 * 4096 && report.meetsGoal)
    #expect(report.failed.isEmpty && report.changed.isEmpty && report.running.isEmpty)
    let caches = fixture.data().appending("Library/Caches")
    #expect(
      try Directory.open(path: fixture.directory.path(caches)).names().isEmpty, "it stays, empty")
    let all = try Directory.open(path: fixture.directory.path(fixture.data())).names()
    #expect(all == ["Documents", "Library", "tmp"], "no file of the program is left")
    #expect(run(try fixture.plan()).volumes[0].units == 0)
  }

  /// On a file system that cannot exchange entries, and on one whose renames cannot refuse to
  /// replace, too: the first rename is the exchange, the second one marks the unit for deletion.
  @Test(arguments: [Int.max, 1, 2]) func aDirectoryNamedByARuleStaysEmpty(
    failing call: Int
  ) throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/fixed/inner/a")
    let parent = try fixture.above(fixture.data().appending("Library/Caches/fixed"))
    try parent.setPermissions(0o750, of: "fixed")
    try parent.attributes(of: "fixed").set("user.note", to: [1])
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: f, match: Library/Caches/fixed/**, class: cache, purge: {order: 20, unit: directory}}

      """
    let plan = try fixture.plan([overlay])
    let fault = Faults.Plan(failing: [.rename], at: call, number: ENOSYS)
    let report = Faults.inject(fault) { run(plan) }
    #expect(fault.hasFired == (call != .max))
    #expect(report.volumes[0].units == 1 && report.failed.isEmpty, "\(report.failed)")
    #expect(try fixture.files().isEmpty)
    let fixed = try parent.directory("fixed")
    #expect(try fixed.isEmpty())
    #expect(try fixed.status().permissions == 0o750)
    #expect(try parent.attributes(of: "fixed").value(of: "user.note") == [1])
  }

  /// This applies even if the goal needs less space than the whole repository.
  @Test func aRepositoryIsDeletedAsAWhole() throws {
    let fixture = try PurgeFixture()
    let clone: ByteString = "Library/Caches/clone"
    for path: ByteString in ["HEAD", "objects/pack/1.pack", "objects/pack/1.idx", "refs/heads/a"] {
      try fixture.put(clone.appending(path))
    }
    let plan = try fixture.plan(.free(4 << 10))
    #expect(plan.chosenPaths == [clone])
    let report = run(plan)
    #expect(report.meetsGoal && report.volumes[0].units == 1 && report.volumes[0].files == 4)
    #expect(try fixture.files().isEmpty)
    let caches = try fixture.above(fixture.data().appending(clone))
    #expect(try caches.names().isEmpty)
  }

  @Test func filesChangedAfterThePlanAreKept() throws {
    let fixture = try filled()
    let plan = try fixture.plan()
    let caches = try Directory.open(
      path: fixture.directory.path(fixture.data()).appending("Library/Caches"))
    try fixture.directory.write("new", at: fixture.data().appending("Library/Caches/one"))
    try fixture.directory.write("x", at: fixture.data().appending("Library/Caches/img.db-journal"))
    try fixture.directory.write(
      "x", at: fixture.data().appending("Library/Caches/web/fsCachedData/deep/3"))
    try caches.rename("deep", to: "moved", in: caches)
    try caches.createLink("deep", to: "../../Documents")
    let report = run(plan)
    #expect(
      Set(report.changed.map { $0.path.lastComponent ?? "" })
        == ["one", "img.db", "fsCachedData", "two"])
    #expect(
      try fixture.files()
        == Self.kept.union([
          "Library/Caches/one", "Library/Caches/img.db", "Library/Caches/img.db-wal",
          "Library/Caches/img.db-journal", "Library/Caches/web/fsCachedData/1",
          "Library/Caches/web/fsCachedData/deep/2", "Library/Caches/web/fsCachedData/deep/3",
          "Library/Caches/moved/er/two", "Library/Caches/deep",
        ]))
    #expect(report.volumes[0].units == 1)
  }

  @Test func aRunningAppIsSkippedAndOthersFreeTheSpace() throws {
    let fixture = try PurgeFixture()
    for number in 0..<3 { try fixture.put(ByteString("Library/Caches/a\(number)"), kib: 64) }
    for number in 0..<3 { try fixture.put(ByteString("Library/Caches/b\(number)"), kib: 32, in: 1) }
    let plan = try fixture.plan(.free(60 << 10), level: nil)
    #expect(plan.chosenPaths == ["Library/Caches/a0"])
    let first = PurgePlan.party(of: try #require(plan.scan.containers.first).container)
    let report = run(plan) { $0.sign = { party, _ in party == first ? "it runs" : nil } }
    #expect(report.running.map(\.path) == [first])
    #expect(try fixture.files(0).count == 3)
    #expect(try fixture.files(1) == ["Library/Caches/b2"])
    #expect(report.meetsGoal && report.freed == 64 << 10)
  }

  @Test func anAppWithAnOpenFileCountsAsRunning() throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/a")
    let scan = try fixture.scan()
    let party = PurgePlan.party(of: try #require(scan.containers.first).container)
    #expect(RunningParties.sign(of: party, in: scan) == nil)
    let path = fixture.directory.path(fixture.data()).appending("Library/Caches/a")
    let sleeper = try Program.start("sleep", ["3600"], standardInput: path)
    defer { sleeper.end() }
    #expect(RunningParties.sign(of: party, in: scan)?.contains("sleep") == true)
  }

  @Test func aPurgeStopsBetweenUnits() throws {
    let fixture = try filled()
    let counters = ProgressCounters()
    let report = run(try fixture.plan()) { options in
      options.counters = counters
      options.isStopping = { counters.progress.filesDone >= 1 }
    }
    #expect(report.isInterrupted)
    #expect(report.volumes[0].units == 1)
    #expect(try Self.kept.isSubset(of: fixture.files()))
  }

  @Test func filesAreTruncatedIfThePolicyRequiresIt() throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/log", kib: 64)
    try fixture.put("Library/Caches/linked", kib: 64)
    try fixture.put("Documents/kept", kib: 8)
    let documents = try Directory.open(
      path: fixture.directory.path(fixture.data()).appending("Documents"))
    let caches = try Directory.open(
      path: fixture.directory.path(fixture.data()).appending("Library/Caches"))
    try caches.remove("linked")
    try caches.createHardLink("linked", to: "kept", in: documents)
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: t, match: Library/Caches/**, class: cache, purge: {order: 20, action: truncate}}

      """
    let report = run(try fixture.plan([overlay]))
    #expect(report.freed == 64 << 10)
    #expect(try caches.status("log").size == 0)
    #expect(try caches.status("linked").size == 8 << 10)
  }

  /// If one file vanishes after the plan, the other files of its directory are still emptied.
  @Test func theOtherFilesOfADirectoryAreTruncatedIfOneIsMissing() throws {
    let fixture = try PurgeFixture()
    let unit: ByteString = "Library/Caches/unit"
    for name: ByteString in ["1", "2", "in/3"] { try fixture.put(unit.appending(name), kib: 64) }
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: u, match: "Library/Caches/unit/**", class: cache, purge: {order: 20, action: truncate, unit: directory}}

      """
    let plan = try fixture.plan([overlay])
    #expect(plan.chosenPaths == [unit])
    let directory = try Directory.open(
      path: fixture.directory.path(fixture.data().appending(unit)))
    try directory.remove("1")
    let report = run(plan)
    #expect(report.freed == 128 << 10, "\(report)")
    #expect(report.changed.isEmpty && report.failed.isEmpty, "\(report)")
    #expect(try directory.status("2").size == 0)
    #expect(try directory.directory("in").status("3").size == 0)
    try directory.removeTree("in")
    try directory.remove("2")
    #expect(run(plan).changed.map(\.remark) == ["it no longer exists"])
  }

  @Test func leftoversOfAKilledPurgeAreDeletedByTheNext() throws {
    let fixture = try filled()
    try fixture.put(".sandboxctl/purge/doomed-0123/left/over", kib: 64)
    let report = run(try fixture.plan())
    #expect(try fixture.files() == Self.kept)
    #expect(report.freed >= (64 << 10) + 7 * 4096)
    let all = try Directory.open(path: fixture.directory.path(fixture.data())).names()
    #expect(!all.contains(".sandboxctl"))
  }

  /// Subdirectories that their owner may not write to, as in the module cache of Go, do not prevent
  /// the deletion of a unit.
  @Test func readOnlyDirectoriesOfAUnitAreDeletedByTheirOwner() throws {
    let fixture = try PurgeFixture()
    let unit: ByteString = "Library/Caches/web/fsCachedData"
    for name: ByteString in ["1", "module/2", "module/deep/3"] {
      try fixture.put(unit.appending(name), kib: 64)
    }
    let module = fixture.directory.path(fixture.data().appending(unit).appending("module"))
    for path in [module.appending("deep"), module] {
      try Directory.open(path: path).setPermissions(0o555)
    }
    _ = try Program.run("chown", ["-R", "nobody", fixture.directory.string])
    let plan = try fixture.plan()
    let report = try Unprivileged.run(keepingGroup: true) { run(plan) }
    #expect(report.failed.isEmpty && report.freed >= 3 * 64 << 10, "\(report)")
    #expect(try fixture.files().isEmpty)
    let all = try Directory.open(path: fixture.directory.path(fixture.data())).names()
    #expect(!all.contains(".sandboxctl"))
  }

  /// Another user's directory in a unit: the deleted part of the unit counts, and the remainder is
  /// reported with the remedy.
  @Test func directoriesOfOtherUsersInAUnitAreReported() throws {
    guard Host.userID == 0 else { return }
    let fixture = try PurgeFixture()
    let unit: ByteString = "Library/Caches/web/fsCachedData"
    try fixture.put(unit.appending("1"), kib: 64)
    try fixture.put(unit.appending("theirs/2"), kib: 256)
    _ = try Program.run("chown", ["-R", "nobody", fixture.directory.string])
    try fixture.above(fixture.data().appending(unit).appending("theirs"))
      .setOwner(user: 0, group: 0, of: "theirs")
    let plan = try fixture.plan()
    let report = try Unprivileged.run(keepingGroup: true) { run(plan) }
    #expect(report.freed >= 64 << 10 && report.freed < 256 << 10, "\(report)")
    let remark = try #require(report.failed.first).remark
    #expect(report.failed.count == 1 && remark.hasPrefix("permission denied; the rest of it is in"))
    #expect(remark.contains("/.sandboxctl/purge/doomed-") && remark.contains("or as root"))
    let next = try fixture.plan()
    let again = try Unprivileged.run(keepingGroup: true) { run(next) }
    #expect(again.freed == 0 && again.failed.count == 1, "\(again)")
    #expect(again.failed.allSatisfy { $0.remark.hasPrefix("an earlier purge could not delete it") })
    #expect(run(try fixture.plan()).freed >= 256 << 10)
    #expect(try fixture.files().isEmpty)
  }

  /// A purge that is killed before a replacement directory is in place leaves it empty next to the
  /// record of its target: the existing entry is unchanged, and no file of the program stays.
  @Test func anUnusedReplacementDirectoryIsDeleted() throws {
    let fixture = try filled()
    try fixture.put(".sandboxctl/purge/kept", kib: 1)
    let container = try Directory.open(path: fixture.directory.path(fixture.data()))
    let aside = try container.directory(".sandboxctl").directory("purge")
    try aside.remove("kept")
    try fixture.put("Documents/full/thesis.txt", kib: 64)
    try container.directory("Documents").createDirectory("empty", permissions: 0o751)
    for (name, origin) in [("0123", "Documents/full"), ("4567", "Documents/empty")] {
      try aside.createDirectory(ByteString(name), permissions: 0o700)
      try aside.createLink(ByteString(name + ".origin"), to: ByteString(origin))
    }
    // A directory with content is not a replacement directory, even if it cannot be moved back.
    try fixture.put(".sandboxctl/purge/89ab/other.txt", kib: 4)
    try aside.createLink("89ab.origin", to: "Documents/full")
    let report = run(try fixture.plan())
    #expect(report.failed.map { $0.path.lastComponent } == ["89ab"])
    #expect(try Set(aside.names()) == ["89ab", "89ab.origin"])
    #expect(try fixture.files().contains("Documents/full/thesis.txt"))
    #expect(try container.directory("Documents").status("empty").permissions == 0o751)
    try aside.removeTree("89ab")
    #expect(run(try fixture.plan()).failed.isEmpty)
    #expect(try !container.names().contains(".sandboxctl"))
  }

  /// A directory that was moved aside and not checked yet may contain anything: at that moment,
  /// another program may have put documents in the place of a cache.
  @Test func filesThatAKilledPurgeDidNotCheckAreRestored() throws {
    let fixture = try filled()
    try fixture.put(".sandboxctl/purge/4567/thesis.txt", kib: 64)
    try fixture.put(".sandboxctl/purge/89ab/other.txt", kib: 64)
    try fixture.put(".sandboxctl/purge/cdef/unknown.txt", kib: 64)
    try fixture.put(".sandboxctl/purge/f00d/planted.txt", kib: 64)
    let container = try Directory.open(path: fixture.directory.path(fixture.data()))
    let aside = try container.directory(".sandboxctl").directory("purge")
    try aside.createLink("4567.origin", to: "Library/Caches/moved")
    try aside.createLink("89ab.origin", to: "Documents/twin")
    // An app may also write there, to get a directory moved out of its container.
    try aside.createLink("f00d.origin", to: "../escaped")
    // The replacement directory that is still in its place.
    try container.directory("Documents").createDirectory("twin", permissions: 0o755)
    let report = run(try fixture.plan())
    let files = try fixture.files()
    #expect(files.contains("Library/Caches/moved/thesis.txt"))
    #expect(files.contains("Documents/twin/other.txt"))
    #expect(Set(report.failed.map { $0.path.lastComponent }) == ["cdef", "f00d"])
    #expect(try Set(aside.names()) == ["cdef", "f00d", "f00d.origin"])
    let above = fixture.directory.path(fixture.data()).appending("..")
    #expect(try !Directory.open(path: above).names().contains("escaped"))
  }
}
