import ArchiveStore
import Codecs
import DeviceDiscovery
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppUpdate
@testable import Backup
@testable import DeviceScan
@testable import Purge
@testable import Restore

/// Work for a large number of entries, packs or exclusions takes n log n steps in total, so that
/// operations on a device with a hundred thousand files are planned in seconds. Measured as
/// processor time (`Growth`).
@Suite(.spreadScans) struct GrowthTests {
  private let fixture: Fixture

  init() throws { fixture = try Fixture(inMemory: true) }

  // MARK: - Sets of paths

  @Test func lookupsInASetOfPathsTakeNLogN() throws {
    let growth = try Growth { count in
      let paths = (0..<count).map { ByteString("a/\($0 &* 7919 % count)/b") }
      return {
        let set = SparedPaths.PathSet(paths)
        for path in paths { expect(set.isAbout(path.parent) && set.covers(path)) }
        expect(!set.isAbout("a/x/b"))
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  /// A snapshot has as many containers with excluded files as there are deletions.
  @Test func checksWhetherDeletionsWereExcludedTakeNLogN() throws {
    try fixture.directory.write("text", at: "tree/file")
    let stored = try #require(try fixture.backup().snapshot)
    let growth = try Growth { count in
      let paths = (0..<count).map { ByteString("apps/\($0 &* 7919 % count)/data") }
      let plan = Self.plan(stored, excludingFilesIn: paths)
      return {
        let (unlistedExclusions, spared) = (
          UnlistedExclusions(plan), SparedPaths(plan.snapshot.snapshot)
        )
        for path in paths {
          let file = path.appending("Documents/file")
          expect(unlistedExclusions.reasonToSpare(file) != nil && spared.reasonToSpare(file) == nil)
        }
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  private static func plan(
    _ stored: StoredSnapshot, excludingFilesIn paths: [ByteString]
  ) -> RestorePlan {
    var snapshot = stored.snapshot
    snapshot.device.containers = paths.map { DeviceRecord.Container(path: $0, realPath: $0) }
    snapshot.unreadable = paths.map { PathNote(path: $0.appending("Documents/x"), note: "") }
    snapshot.excluded = paths.map { Exclusion(path: $0, rule: "rule", files: 1, bytes: 1) }
    return RestorePlan(
      StoredSnapshot(id: stored.id, snapshot: snapshot), RestoreRequest(path: "", target: "/"),
      at: RestoreTarget(directory: "/", name: nil, shownDepth: 0))
  }

  // MARK: - Updates and rollbacks

  /// Databases and their logs in one directory: one file of every second pair has to be kept.
  @Test func decisionsOnDatabasesOfAnUpdateTakeNLogN() throws {
    var (user, cache) = (Verdict.silent(.userData), Verdict.silent(.cache))
    (user.update, cache.update) = (.preserve, .discard)
    let verdicts = [user, cache, cache, cache]
    let growth = try Growth { count in
      let scan = try ContainerScan.wide(count) { number in
        "\(number / 2 &* 7919 % count).db\(number % 2 == 0 ? "" : "-wal")"
      } verdict: {
        verdicts[$0 % 4]
      }
      return {
        let outcomes = DataOutcomes(scan, isStrict: true)
        // The log of a kept database is also kept.
        expect(outcomes.drops.count == count / 2)
        expect(outcomes.paths.count == count)
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  /// All files of a directory were created after the update, and the rollback deletes them.
  @Test func deletionsOfARollbackTakeNLogN() throws {
    let device = try fixture.scan()
    let identifier = try #require(BundleIdentifier("org.example.one"))
    let planner = AppChangePlanner(device, AppChangeRequest(.rollback, of: identifier))
    let growth = try Growth { count in
      let scan = try ContainerScan.wide(count) { "file \($0 &* 7919 % count)" }
      let paths = Set(scan.entries.indices.dropFirst().map { scan.path($0) })
      return {
        expect(planner.newer(in: scan, [], paths).count == count)
        let outcomes = DataOutcomes(keeping: scan, replacing: [], dropping: paths)
        expect(outcomes.drops.count == count)
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  // MARK: - Backups

  /// All files of a directory have vanished, and a second scan finds them again.
  @Test func vanishedEntriesAreFoundInNLogN() throws {
    var device = try fixture.scan()
    let growth = try Growth { count in
      let scan = try ContainerScan.wide(count) { "file \($0 &* 7919 % count)" }
      let entries = Set(scan.entries.indices.dropFirst().map { EntryID(0, $0) })
      device.containers = [scan]
      return { [device] in
        let vanished = VanishedEntries(entries, of: [SelectedTree(0, scan)])
        expect(vanished.paths(in: device).count == count)
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  /// None of the excluded directories has the class that the text names.
  @Test func largestExcludedDirectoriesAreFoundInNLogN() throws {
    try fixture.directory.write("text", at: "tree/directory/file")
    var device = try fixture.scan()
    let model = try #require(device.containers.first)
    let growth = try Growth { count in
      var scan = try ContainerScan.directories(count, like: model)
      for index in scan.entries.indices.dropFirst() { scan.entries[index].selection = .excluded }
      device.containers = [scan]
      let plan = BackupPlan.make(device)
      return {
        let exclusions = BackupPlan.OwnerExclusions(plan)
        expect(exclusions.location(of: .downloaded, in: "folders/tree") == nil)
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  // MARK: - Purges

  /// A large number of directories that a rule treats as a unit: each is checked before it is
  /// deleted.
  @Test func checksOfPurgedDirectoriesTakeNLogN() throws {
    try fixture.directory.write("text", at: "tree/cache/file")
    let model = try #require(try fixture.scan().containers.first)
    let path = fixture.directory.path("tree/cache")
    let growth = try Growth(counts: [4000, 40_000]) { count in
      let scan = try ContainerScan.directories(count, like: model)
      return {
        let planned = PlannedEntries(scan: scan)
        for entry in 1...count {
          let check = try PlannedEntries.DirectoryCheck.run(
            against: planned, entry: entry, directory: try Directory.open(path: path))
          expect(check.difference == nil && check.freed.bytes > 0)
        }
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  // MARK: - Packs

  /// One run has as many containers as the repository has packs.
  @Test func checksOfThePacksOfContainersTakeNLogN() throws {
    let growth = try Growth(counts: [1000, 10_000, 100_000]) { count in
      let state = try StateFixture()
      let packs = Set((0..<count).map { Blake2b.hash(Array("\($0)".utf8)) })
      try state.open().finish(
        [try StateFixture.container("folders/tree", nil)], snapshot: StateFixture.snapshot,
        packs: packs,
        keepingOthers: true)
      let opened = try state.open()
      let container = try #require(opened.containers.first)
      return {
        let listed = ListedPacks(packs)
        for _ in 0..<count { expect(opened.arePacksThere(listed, for: container)) }
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  // MARK: - Restores

  /// For each changed file, the plan checks whether its replacement would leave its content in no
  /// backup.
  @Test func checksOfReplacedFilesTakeNLogN() throws {
    try fixture.directory.write("text", at: "tree/file")
    let stored = try #require(try fixture.backup().snapshot)
    let reader = try fixture.repository.beginReading()
    let policy = try Fixture.policy(.folder)
    let growth = try Growth { count in
      var scan = try ContainerScan.wide(count) { "file \($0 &* 7919 % count)" }
      scan.entries[count / 2].selection = .excluded
      var request = RestoreRequest(path: "folders/tree", target: fixture.directory.path("tree"))
      request.rules = RestoreRules(policy: policy, kind: .folder, sparedBy: .unrestricted)
      request.rules?.present = scan
      let location = RestoreTarget(
        directory: fixture.directory.path("tree"), name: nil, shownDepth: 0)
      let plan = RestorePlan(stored, request, at: location)
      let names = scan.entries.indices.dropFirst().map { scan.name($0) }
      return {
        var planner = try RestorePlanner(plan, reader)
        planner.beginRoot()
        expect(names.count { planner.mustBeKept($0) } == 1)
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  /// A whole plan: all files of a directory have changed since the backup, and the same number of
  /// files is new.
  @Test func restoresOfChangedFilesArePlannedInNLogN() throws {
    let growth = try Growth { count in
      let fixture = try Fixture(inMemory: true)
      for number in 0..<count { try fixture.directory.write("a", at: Self.file(number)) }
      let stored = try #require(try fixture.backup().snapshot)
      for number in 0..<(2 * count) {
        try fixture.directory.write("changed", at: Self.file(number))
      }
      let reader = try fixture.repository.beginReading()
      let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
      var request = DeviceRestoreRequest(
        device, isInPlace: true, policy: try Fixture.policy(.folder))
      (request.overwrite, request.deletes) = (.always, true)
      return { [request] in
        let plan = try DeviceRestorePlan.make(stored, request, from: reader)
        let part = try #require(plan.parts.first?.plan)
        expect(part.replacedPaths.count >= count && part.deletedPaths.count == count)
        withExtendedLifetime(fixture) {}
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  private static func file(_ number: Int) -> ByteString { ByteString("tree/directory/\(number)") }
}

extension RestorePlanner {
  /// Begins with the target directory itself.
  fileprivate mutating func beginRoot() {
    let tree = TreeReference(draft.plan.snapshot.snapshot.tree.digest)
    let root = draft.plan.tree.append(
      TreeEntry(name: "", node: .directory(tree)), named: "", parent: nil, action: .leave)
    directories.append(
      OpenDirectory(
        number: root, pathLength: 0, frame: RestoreSelector.Frame(), isParentOnly: false))
  }
}

/// Checks a condition that is evaluated many times: an `#expect` for each would cost more than the
/// measured code.
private func expect(_ holds: Bool, _ location: SourceLocation = #_sourceLocation) {
  if !holds { Issue.record("expectation failed", sourceLocation: location) }
}
