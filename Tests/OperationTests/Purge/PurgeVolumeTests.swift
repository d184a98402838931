import DeviceScan
import PolicyEngine
import Purge
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// How a purge handles volumes: mount options, several volumes, files used during the purge.
@Suite(.spreadScans) struct PurgeVolumeTests {
  private func run(_ plan: PurgePlan) -> PurgeReport {
    PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
  }

  /// Makes a file's content older than the file itself.
  private func age(_ path: ByteString, byDays days: Int64, _ fixture: PurgeFixture) throws {
    let whole = fixture.data().appending(path)
    let name = try #require(path.lastComponent)
    try fixture.above(whole).setModified(
      Timestamp(seconds: Host.now().seconds - days * 86_400), of: name)
  }

  /// If access times are recorded, a recently created file counts as young, whatever its
  /// modification time; otherwise only the modification time counts.
  @Test(.enabled(if: try Mount.isPermitted()), arguments: [("relatime", false), ("noatime", true)])
  func withoutAccessTimesTheModificationTimeCounts(option: String, isOld: Bool) throws {
    let fixture = try PurgeFixture()
    let mount = try Mount(
      inMemory: "size=16m,\(option)", on: fixture.directory.path(fixture.data()))
    try fixture.put("Library/Caches/a")
    try age("Library/Caches/a", byDays: 100, fixture)
    let plan = try fixture.plan()
    let unit = try #require(plan.units.first)
    #expect(
      PurgeUnit.Age(unit, at: plan.request.now) == (isOld ? .over90Days : .over30Days))
    #expect(run(plan).volumes.reduce(0) { $0 + $1.units } == 1)
    withExtendedLifetime(mount) {}
  }

  @Test(.enabled(if: try Mount.isPermitted())) func eachVolumeIsEvaluatedSeparately() throws {
    let fixture = try PurgeFixture()
    let mounts = try (0..<2).map {
      try Mount(inMemory: "size=8m", on: fixture.directory.path(fixture.data($0)))
    }
    for app in 0..<2 {
      for number in 0..<3 {
        try fixture.put(ByteString("Library/Caches/\(number)"), kib: 64, in: app)
      }
      try fixture.put("Documents/a", in: app)
    }
    let scan = try fixture.scan()
    var request = fixture.request(.byPressure, free: 500, scan)
    let devices = scan.containers.compactMap(\.entries.first?.status.identity.device)
    #expect(Set(devices).count == 2)
    // The second volume lacks 50 MiB, the first nothing.
    let short = try #require(
      scan.containers.first { $0.container.absolutePath == fixture.directory.path(fixture.data(1)) }
    )
    let device = try #require(short.entries.first?.status.identity.device)
    request.spaces[device] = VolumeSpace(available: 19 << 20, total: 1000 << 20)
    let plan = PurgePlan.make(scan, request)
    #expect(plan.volumes.count == 2)
    for volume in plan.volumes {
      #expect(volume.pressure == (volume.device == device ? .critical : nil))
    }
    let report = run(plan)
    #expect(try fixture.files(0).count == 4)
    #expect(try fixture.files(1) == ["Documents/a"])
    // Each volume gets its own share of a total.
    let again = try fixture.plan(.free(100 << 10), level: nil)
    #expect(again.volumes.map(\.goal) == [100 << 10, 100 << 10])
    #expect(again.volumes.map(\.chosen.count).sorted() == [0, 2])
    #expect(report.freed == 3 * 64 << 10)
    withExtendedLifetime(mounts) {}
  }

  /// A volume in memory, or a FUSE file system, may report a size of 0.
  @Test func aVolumeWithoutASizeIsNotUnderPressure() throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/one", kib: 64)
    let scan = try fixture.scan()
    for goal: PurgeRequest.Goal in [.byPressure, .untilFree(percent: 99)] {
      let plan = PurgePlan.make(scan, fixture.request(goal, free: 0, of: 0, scan))
      #expect(plan.volumes.allSatisfy { $0.pressure == nil && $0.chosen.isEmpty })
    }
    let report = run(PurgePlan.make(scan, fixture.request(.free(1 << 10), free: 0, of: 0, scan)))
    #expect(report.meetsGoal && report.freed >= 64 << 10 && report.volumes[0].before == nil)
  }

  /// An overlay file system cannot rename a directory of its lower layer. Such a unit stays
  /// complete, the reason is reported, and nothing remains of the attempt.
  @Test(.enabled(if: try Mount.isPermitted())) func directoriesOfALowerLayerStay() throws {
    let directory = try TemporaryDirectory("purge", inMemory: true)
    let volume = try Mount(on: directory.directory, at: directory.path, "volume")
    let layers = try directory.directory.directory("volume")
    for name: ByteString in ["upper", "work", "merged"] { try layers.createDirectory(name) }
    let lower = try PurgeFixture(directory, below: "volume/lower/device")
    for path: ByteString in [
      "Library/Caches/web/fsCachedData/deep/1", "Library/Caches/fixed/2", "Library/Caches/one",
    ] { try lower.put(path) }
    guard let overlay = try? Mount(overlayBelow: directory.path("volume")) else {
      print("skipped: no overlay file system here")
      return
    }
    let fixture = try PurgeFixture(directory, below: "volume/merged/device")
    let rule = """
      overlay: all
      schema: 1
      rules:
        - {id: f, match: Library/Caches/fixed/**, class: cache, purge: {order: 20, unit: directory}}

      """
    let plan = try fixture.plan([rule])
    #expect(plan.chosenPaths.count == 3)
    let report = run(plan)
    let failed = report.failed.map { $0.path.lastComponent ?? "" }.sorted()
    #expect(failed == ["fixed", "fsCachedData"], "\(report)")
    #expect(report.failed.allSatisfy { $0.remark.contains("overlay") }, "\(report.failed)")
    let left: Set<ByteString> = [
      "Library/Caches/web/fsCachedData/deep/1", "Library/Caches/fixed/2",
    ]
    #expect(try fixture.files() == left)
    let names = try Directory.open(path: directory.path(fixture.data())).names()
    #expect(!names.contains(".sandboxctl"), "\(names)")
    withExtendedLifetime((overlay, volume)) {}
  }

  /// A directory is moved before it is deleted; on a full volume, there is space for that only
  /// after other units are deleted.
  @Test(.enabled(if: try Mount.isPermitted())) func aFullVolumeIsPurgedCompletely() throws {
    let directory = try TemporaryDirectory("purge")
    try directory.directory.createDirectory("volume")
    let volume = try Mount(inMemory: "size=16m,nr_inodes=80", on: directory.path("volume"))
    let fixture = try PurgeFixture(directory, below: "volume/device")
    for path: ByteString in [
      "Library/Caches/a/fsCachedData/1", "Library/Caches/b", "Library/Caches/c",
      "Library/Caches/d", "Documents/0",
    ] { try fixture.put(path) }
    let documents = try fixture.above(fixture.data().appending("Documents/0"))
    #expect(throws: SystemError.self) {
      for number in 1...80 { try documents.create(ByteString("\(number)")).close() }
    }
    let report = run(try fixture.plan())
    #expect(report.failed.isEmpty && report.volumes[0].units == 4, "\(report)")
    #expect(try fixture.files().allSatisfy { $0.isWithin("Documents") })
    let names = try Directory.open(path: directory.path(fixture.data())).names()
    #expect(!names.contains(".sandboxctl"), "\(names)")
    // If nothing else can be deleted, the unit stays and is reported.
    try fixture.put("Library/Caches/a/fsCachedData/1")
    #expect(throws: SystemError.self) {
      for number in 81...160 { try documents.create(ByteString("\(number)")).close() }
    }
    let failed = run(try fixture.plan()).failed
    #expect(failed.map { $0.path.lastComponent } == ["fsCachedData"], "\(failed)")
    #expect(try fixture.files().contains("Library/Caches/a/fsCachedData/1"))
    withExtendedLifetime(volume) {}
  }

  /// A file that is read between the plan and the deletion counts as used.
  @Test func aFileReadMeanwhileIsKept() throws {
    let fixture = try PurgeFixture(inMemory: false)
    guard try Directory.open(path: fixture.directory.path).notesAccess() else {
      print("skipped: the temporary directory's volume records no access times")
      return
    }
    let paths: [ByteString] = [
      "Library/Caches/read", "Library/Caches/not", "Library/Caches/w/fsCachedData/in/read",
    ]
    for path in paths {
      try fixture.put(path)
      // With relatime, a read is recorded only if it is the first since the last change.
      _ = try Program.run(
        "touch", ["-d", "2 days ago", "\(fixture.directory.path(fixture.data().appending(path)))"])
    }
    let plan = try fixture.plan()
    #expect(plan.chosenPaths.count == 3)
    for path in [paths[0], paths[2]] {
      _ = try fixture.directory.read(fixture.data().appending(path))
    }
    let report = run(plan)
    #expect(report.changed.count == 2, "\(report)")
    #expect(report.changed.allSatisfy { $0.remark.contains("it was read since the plan was made") })
    #expect(try fixture.files() == [paths[0], paths[2]])
  }
}
