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
  /// The seeds of the generated devices: one that is always the same, and a new one.
  private static let seeds = [11, Seeded.fresh("devices of divided scans").seed]

  @Test(arguments: seeds)
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

  @Test(arguments: seeds) func purgesDoNotDependOnTheDivision(seed: UInt64) throws {
    let fixture = try PurgeFixture(below: "device")
    try fill(fixture, seed)
    let now = Host.now()
    let before = try fixture.files(0).union(fixture.files(1))
    var left: [ByteString: TreeRecord]?
    for (number, variant) in ScanVariant.all.enumerated() {
      let name = "copy \(number)"
      try fixture.directory.copy("device", of: fixture.directory, to: name)
      let copy = try PurgeFixture(fixture.directory, below: ByteString(name))
      let report = try variant.run {
        PurgeOperation(
          try purgePlan(copy, variant, at: now), PurgeOptions(sign: { _, _ in nil })
        ).run()
      }
      #expect(report.failed.isEmpty && report.changed.isEmpty, "\(variant)")
      let files = try copy.files(0).union(copy.files(1))
      #expect(files.count > 10 && files.count < before.count - 10, "\(variant)")
      let found = try records(below: copy.root, in: fixture.directory)
      #expect(Self.differences(left ?? found, found).isEmpty, "\(variant)")
      left = left ?? found
    }
  }

  /// Restores into a device without the containers, which are created under other names.
  @Test(arguments: seeds)
  func restoresIntoADeviceDoNotDependOnTheDivision(seed: UInt64) throws {
    let fixture = try Fixture(inMemory: true)
    try fill(fixture, seed)
    let stored = try #require(try backup(fixture, .usual).snapshot)
    var first: [ByteString: TreeRecord]?
    for (number, variant) in ScanVariant.all.enumerated() {
      let root = ByteString("other \(number)")
      _ = try Directory.make(
        path: fixture.directory.path(root).appending("Containers/Data/Application"))
      try restore(fixture, stored, variant, to: root, isInPlace: false)
      let found = try contents(of: root, in: fixture)
      #expect(found.count { $0.value.kind == .file } > 10, "\(variant)")
      #expect(Self.differences(first ?? found, found).isEmpty, "\(variant)")
      first = first ?? found
    }
    // The snapshot has the content of the device that was backed up.
    let source = try contents(of: "tree", in: fixture)
    let restored = try #require(first).filter { $0.value.kind == .file }
    #expect(restored.allSatisfy { source[$0.key] == $0.value })
  }

  /// Restores in place, over files that were changed, removed and added.
  @Test(arguments: seeds)
  func restoresInPlaceDoNotDependOnTheDivision(seed: UInt64) throws {
    let fixture = try Fixture(inMemory: true)
    try fill(fixture, seed)
    let stored = try #require(try backup(fixture, .usual).snapshot)
    let original = try fixture.records("tree")
    try change(fixture, original, seed)
    try fixture.copy("tree", to: "changed")
    let changed = try fixture.records("changed")
    var first: [ByteString: TreeRecord]?
    for variant in ScanVariant.all {
      try fixture.directory.directory.removeTree("tree")
      try fixture.copy("changed", to: "tree")
      try restore(fixture, stored, variant, to: "tree", isInPlace: true)
      let found = try records(below: "tree", in: fixture.directory)
      #expect(Self.differences(first ?? found, found).isEmpty, "\(variant)")
      first = first ?? found
    }
    let found = try #require(first)
    #expect(Self.differences(changed, found).count > 10)
    // The content of excluded directories stays as it is in the device.
    for path in Self.differences(original, found) {
      #expect(found[path] == changed[path], "\(path)")
    }
  }

  @Test(arguments: seeds)
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
      #expect(restore.total(\.leaves).files > 10 && restore.total(\.creates).entries == 0)
      plans.insert(restore.total(\.leaves))
    }
    #expect(plans.count == 1)
  }

  /// A plan to restore everything in place.
  private func restorePlan(
    _ fixture: Fixture, _ stored: StoredSnapshot, _ variant: ScanVariant
  ) throws -> DeviceRestorePlan {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .coreSimulator)
    return try variant.run {
      try DeviceRestorePlan.make(
        stored,
        DeviceRestoreRequest(
          device, isInPlace: true, policy: Fixture.policy(.coreSimulator), time: Host.now()),
        from: fixture.repository.beginReading())
    }
  }

  /// Restores a whole snapshot into a device.
  private func restore(
    _ fixture: Fixture, _ stored: StoredSnapshot, _ variant: ScanVariant, to root: ByteString,
    isInPlace: Bool
  ) throws {
    let report = try variant.run {
      let device = try Device.find(root: fixture.directory.path(root), layout: .coreSimulator)
      let reader = try fixture.repository.beginReading()
      var request = DeviceRestoreRequest(
        device, isInPlace: isInPlace, policy: try Fixture.policy(.coreSimulator))
      (request.deletes, request.savesFirst, request.isForced) = (true, false, true)
      let plan = try DeviceRestorePlan.make(stored, request, from: reader)
      return try DeviceRestoreOperation(
        plan, from: reader,
        saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository)
      ).run()
    }
    #expect(report.parts.allSatisfy { $0.report.isComplete }, "\(variant)")
  }

  // MARK: - Comparing

  /// The entries below a directory without the program's own, and without the times of directories
  /// that the operation changes.
  private func records(
    below path: ByteString, in directory: TemporaryDirectory
  ) throws -> [ByteString: TreeRecord] {
    try TreeRecord.all(in: directory, path).filter { !$0.key.isWithin(OwnNames.directory) }
      .mapValues { record in
        var record = record
        if record.kind == .directory { record.modified = Timestamp(seconds: 0) }
        return record
      }
  }

  /// The entries of all containers of a device by their logical paths.
  private func contents(
    of root: ByteString, in fixture: Fixture
  ) throws -> [ByteString: TreeRecord] {
    let device = try Device.find(root: fixture.directory.path(root), layout: .coreSimulator)
    var found: [ByteString: TreeRecord] = [:]
    for container in device.containers {
      let inner = ByteString(
        container.absolutePath.bytes.dropFirst(fixture.directory.path.count + 1))
      for (path, record) in try fixture.records(inner) {
        found[container.logicalPrefix.appending(path)] = record
      }
    }
    return found
  }

  private static func differences(
    _ one: [ByteString: TreeRecord], _ other: [ByteString: TreeRecord]
  ) -> [ByteString] {
    Set(one.keys).union(other.keys).filter { path in
      guard let first = one[path], let second = other[path] else { return true }
      return first.kind == .directory ? second.kind != .directory : first != second
    }.sorted()
  }

  // MARK: - Random devices

  /// Changes a third of the files of a device, removes some, and adds others.
  private func change(
    _ fixture: Fixture, _ original: [ByteString: TreeRecord], _ seed: UInt64
  ) throws {
    var random = Seeded(seed)
    for (path, record) in original.sorted(by: { $0.key < $1.key }) where record.kind == .file {
      let position = ByteString("tree").appending(path)
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1: try fixture.directory.write("changed since", at: position)
      case 2:
        let above = position.components.dropLast().reduce(fixture.directory.path) {
          $0.appending($1)
        }
        try Directory.open(path: above).remove(position.lastComponent ?? "")
      case 3: try fixture.directory.write("new", at: ByteString("\(position) new"))
      default: break
      }
    }
  }

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
        let position =
          ["Library/Caches", "tmp", "Documents"].randomElement(using: &random) ?? "tmp"
        let path = ([position] + above + ["file \(number)"]).joined(separator: "/")
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
