import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceTransaction
import PolicyEngine
import Purge
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceScan

/// The results of operations do not depend on how their scans are divided among threads.
@Suite(.spreadScans) struct ScanShareTests {
  @Test(arguments: [11, 12, 13] as [UInt64])
  func purgePlansDoNotDependOnTheDivision(seed: UInt64) throws {
    let fixture = try PurgeFixture()
    try fill(fixture, seed)
    let now = Host.now()
    let serial = try purgePlan(fixture, .usual, at: now)
    #expect(serial.chosenPaths.count > 40)
    for variant in ScanVariant.all {
      let plan = try purgePlan(fixture, variant, at: now)
      #expect(plan.chosenPaths == serial.chosenPaths, "\(variant)")
      #expect(plan.volumes.map(\.gain) == serial.volumes.map(\.gain), "\(variant)")
    }
  }

  @Test func aPurgeDoesNotDependOnTheDivision() throws {
    var left: Set<Set<ByteString>> = []
    for variant in [ScanVariant.usual, ScanVariant(share: 1, workers: 5)] {
      let fixture = try PurgeFixture()
      try fill(fixture, 17)
      let report = PurgeOperation(try purgePlan(fixture, variant, at: Host.now())).run()
      #expect(report.failed.isEmpty && report.changed.isEmpty)
      left.insert(try fixture.files(0).union(fixture.files(1)))
    }
    #expect(left.count == 1)
  }

  @Test(arguments: [21, 22] as [UInt64])
  func backupsAndRestorePlansDoNotDependOnTheDivision(seed: UInt64) throws {
    let fixture = try Fixture(inMemory: true)
    try fill(fixture, seed)
    let first = try #require(try backup(fixture, .usual).snapshot)
    var plans: Set<RestoreTotals> = []
    for variant in ScanVariant.all {
      let again = try backup(fixture, variant)
      #expect(again.snapshot?.snapshot.tree == first.snapshot.tree, "\(variant)")
      #expect(again.snapshot?.snapshot.excluded == first.snapshot.excluded, "\(variant)")
      let restore = try restorePlan(fixture, first, variant)
      #expect(restore.total(\.leaves).files > 20 && restore.total(\.creates).entries == 0)
      plans.insert(restore.total(\.leaves))
    }
    #expect(plans.count == 1)
  }

  /// A plan to restore everything in place.
  private func restorePlan(
    _ fixture: Fixture, _ stored: StoredSnapshot, _ variant: ScanVariant
  ) throws -> DeviceRestorePlan {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .coreSimulator)
    return try ScanOptions.$usualShare.withValue(variant.share) {
      try ScanOptions.$usualWorkers.withValue(variant.workers) {
        try DeviceRestorePlan.make(
          stored,
          DeviceRestoreRequest(
            device, isInPlace: true, policy: Fixture.policy(.coreSimulator), time: Host.now()),
          from: fixture.repository.beginReading())
      }
    }
  }

  // MARK: - Random devices

  private func purgePlan(
    _ fixture: PurgeFixture, _ variant: ScanVariant, at now: Timestamp
  ) throws -> PurgePlan {
    let device = try Device.find(root: fixture.directory.path(fixture.root), layout: .coreSimulator)
    let scan = DeviceScan.run(
      device, policy: try PurgeFixture.policy(), options: variant.applied(to: .forPurge()))
    var request = fixture.request(.everything, level: .critical, scan)
    request.now = Timestamp(seconds: now.seconds + 40 * 86_400)
    return PurgePlan.make(scan, request)
  }

  private func backup(_ fixture: Fixture, _ variant: ScanVariant) throws -> BackupReport {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .coreSimulator)
    let scan = DeviceScan.run(
      device, policy: try Fixture.policy(.coreSimulator),
      options: variant.applied(to: ScanOptions()))
    return try BackupOperation(
      BackupPlan.make(scan), to: fixture.repository,
      BackupRequest(program: "test", workers: variant.workers)
    ).run()
  }

  private func fill(_ fixture: PurgeFixture, _ seed: UInt64) throws {
    var random = Seeded(seed)
    for app in 0..<2 {
      for number in 0..<60 {
        let depth = Int.random(in: 0...4, using: &random)
        let above = (0..<depth).map { _ in "d\(Int.random(in: 0...3, using: &random))" }
        let place = ["Library/Caches", "tmp", "Documents"].randomElement(using: &random) ?? "tmp"
        let path = ([place] + above + ["file \(number)"]).joined(separator: "/")
        try fixture.put(
          ByteString(path), kib: Int.random(in: 1...9, using: &random),
          youngerBy: Int64.random(in: 0...38, using: &random), in: app)
      }
    }
  }

  /// Two containers with directories of many widths and depths, some with an exclusion mark.
  private func fill(_ fixture: Fixture, _ seed: UInt64) throws {
    var random = Seeded(seed)
    for app in 1...2 {
      let container = ByteString(
        "tree/Containers/Data/Application/0A0A0A0A-0000-4000-8000-00000000000\(app)")
      var directories = ["Documents", "Library/Caches", "Library/Application Support"].map {
        container.appending(ByteString($0))
      }
      for number in 0..<30 {
        let above = try #require(directories.randomElement(using: &random))
        let path = above.appending(ByteString("directory \(number)"))
        let made = try Directory.make(path: fixture.directory.path(path))
        directories.append(path)
        for file in 0..<Int.random(in: 0...7, using: &random) {
          let file = try made.create(ByteString("file \(file)"))
          try file.write([UInt8(truncatingIfNeeded: number)])
        }
        if number % 7 == 0 {
          try made.attributes.set(
            "user.com.apple.metadata:com_apple_backup_excludeItem", to: Array("bplist".utf8))
        }
      }
    }
  }
}
