import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// What a purge makes of volumes: how they are mounted, how many there are, what is used meanwhile.
@Suite(.spreadScans) struct PurgeVolumeTests {
  private func run(_ plan: PurgePlan) -> PurgeReport {
    PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
  }

  /// Lets a file's content be older than its being made.
  private func age(_ path: ByteString, byDays days: Int64, _ rig: PurgeFixture) throws {
    let whole = rig.data().appending(path)
    let name = try #require(path.lastComponent)
    try rig.above(whole).setModified(
      Timestamp(seconds: Host.now().seconds - days * 86_400), of: name)
  }

  /// Where reading is noted a file that was made lately is young, whatever time it bears; where it is
  /// not noted that time is all there is.
  @Test(.enabled(if: try Mount.isPermitted()), arguments: [("relatime", false), ("noatime", true)])
  func withoutTimesOfReadingThoseOfChangeCount(option: String, isOld: Bool) throws {
    let rig = try PurgeFixture()
    let mount = try Mount(inMemory: "size=16m,\(option)", on: rig.directory.path(rig.data()))
    try rig.put("Library/Caches/a")
    try age("Library/Caches/a", byDays: 100, rig)
    let plan = try rig.plan()
    let unit = try #require(plan.units.first)
    #expect(
      PurgeUnit.Age(unit, at: plan.request.now) == (isOld ? .over90Days : .over30Days))
    #expect(run(plan).volumes.reduce(0) { $0 + $1.units } == 1)
    withExtendedLifetime(mount) {}
  }

  @Test(.enabled(if: try Mount.isPermitted())) func eachVolumeIsJudgedByItself() throws {
    let rig = try PurgeFixture()
    let mounts = try (0..<2).map {
      try Mount(inMemory: "size=8m", on: rig.directory.path(rig.data($0)))
    }
    for app in 0..<2 {
      for number in 0..<3 {
        try rig.put(ByteString("Library/Caches/\(number)"), kib: 64, in: app)
      }
      try rig.put("Documents/a", in: app)
    }
    let scan = try rig.scan()
    var request = rig.request(.byPressure, free: 500, scan)
    let devices = scan.containers.compactMap(\.entries.first?.status.identity.device)
    #expect(Set(devices).count == 2)
    // The second one is short of 50 MiB, the first one of nothing.
    let short = try #require(
      scan.containers.first { $0.container.absolutePath == rig.directory.path(rig.data(1)) })
    let device = try #require(short.entries.first?.status.identity.device)
    request.spaces[device] = VolumeSpace(available: 19 << 20, total: 1000 << 20)
    let plan = PurgePlan.make(scan, request)
    #expect(plan.volumes.count == 2)
    for volume in plan.volumes {
      #expect(volume.pressure == (volume.device == device ? .critical : nil))
    }
    let report = run(plan)
    #expect(try rig.files(0).count == 4)
    #expect(try rig.files(1) == ["Documents/a"])
    // Of a figure each volume has its own share.
    let again = try rig.plan(.free(100 << 10), level: nil)
    #expect(again.volumes.map(\.goal) == [100 << 10, 100 << 10])
    #expect(again.volumes.map(\.chosen.count).sorted() == [0, 2])
    #expect(report.freed == 3 * 64 << 10)
    withExtendedLifetime(mounts) {}
  }

  /// What is read between the plan and its deletion is in use.
  @Test func whatIsReadMeanwhileStays() throws {
    let rig = try PurgeFixture(inMemory: false)
    guard try Directory.open(path: rig.directory.path).notesAccess() else {
      print("skipped: the temporary directory's volume notes no reading")
      return
    }
    let paths: [ByteString] = [
      "Library/Caches/read", "Library/Caches/not", "Library/Caches/w/fsCachedData/in/read",
    ]
    for path in paths {
      try rig.put(path)
      // Reading is noted (relatime) when it was not since the last change.
      _ = try Program.run(
        "touch", ["-d", "2 days ago", "\(rig.directory.path(rig.data().appending(path)))"])
    }
    let plan = try rig.plan()
    #expect(plan.chosenPaths.count == 3)
    for path in [paths[0], paths[2]] { _ = try rig.directory.read(rig.data().appending(path)) }
    let report = run(plan)
    #expect(report.changed.count == 2, "\(report)")
    #expect(report.changed.allSatisfy { $0.remark.contains("it was read meanwhile") })
    #expect(try rig.files() == [paths[0], paths[2]])
  }
}
