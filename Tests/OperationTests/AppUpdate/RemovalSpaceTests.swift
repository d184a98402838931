import AppUpdate
import ArchiveStore
import Backup
import DeviceTransaction
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Offload, reinstall, uninstall and rollback on a volume that is full, or fills up during the
/// operation, in bytes or in files: after the recovery, with free space again, every path of the
/// device has its old or its new state.
@Suite(.serialized, .spreadScans, .enabled(if: (try? Mount.isPermitted()) ?? false))
struct RemovalSpaceTests {
  private static let update = MemoryPackage(
    extensions: [("\(UpdateFixture.app).share", "20")], files: ["Example": "new program"])

  private typealias Contents = [ByteString: UpdateFixture.Content]

  /// Runs an operation that may fail for lack of space; then frees space and recovers. Returns
  /// whether the operation was completed.
  private func attempt(
    _ volume: UpdateVolume, _ before: Contents, _ after: Contents, _ what: String,
    _ body: () throws -> Void
  ) throws -> Bool {
    var error: (any Error)?
    do { try body() } catch let failure { error = failure }
    let reported = "\(what): \(error.map { "\($0)" } ?? "done")"
    if let error {
      #expect(tellsWhatAndWhere(error), "\(reported)")
      #expect("\(error)".contains("no space"), "\(reported)")
      #expect((error as? OperationError)?.hint != nil, "\(reported)")
    }
    try volume.empty()
    _ = try volume.fixture.recover(reported)
    let found = try volume.fixture.contents()
    // The recovery finishes an operation that failed among its renames.
    let isDone = found == after
    #expect(isDone || found == before, "\(reported)")
    #expect(isDone || error != nil, "\(reported)")
    #expect(!volume.fixture.hasStaging, "\(reported)")
    return isDone
  }

  @Test(arguments: UpdateVolume.Room.allCases, [AppChange.offload, .uninstall])
  func removedFilesAreNotLostOnAFullVolume(_ what: UpdateVolume.Room, _ change: AppChange) throws {
    let volume = try UpdateVolume("size=1m,nr_inodes=200")
    let fixture = volume.fixture
    let before = try fixture.contents()
    let kept = before.filter { change == .offload && !$0.key.components.contains("bundle") }
    var outcomes: Set<Bool> = []
    for room in stride(from: 0, to: 30, by: 2) {
      try volume.reset()
      let plan = try fixture.plan(change, nil) { $0.savesFirst = false }
      try volume.fill(what, leaving: room)
      let isDone = try attempt(volume, before, kept, "\(change), \(what), room for \(room)") {
        try fixture.carryOut(plan, MemoryPackage())
      }
      outcomes.insert(isDone)
      if isDone {
        let trash = try fixture.trash()
        #expect(trash["apps/org.example.one/bundle/Example.app/Example"] == "old program")
        let thesis = trash["apps/org.example.one/data/Documents/thesis.txt"]
        #expect(thesis == (change == .uninstall ? "a thesis" : nil))
      }
    }
    #expect(outcomes == [true, false])
    withExtendedLifetime(volume) {}
  }

  @Test(arguments: UpdateVolume.Room.allCases)
  func aReinstallationOnAFullVolumeIsCompleteOrUndone(_ what: UpdateVolume.Room) throws {
    let package = MemoryPackage(
      extensions: [("\(UpdateFixture.app).share", "20")],
      files: ["Example": "new program", "data/table": String(repeating: "t", count: 9000)])
    let volume = try UpdateVolume("size=1m,nr_inodes=200")
    let fixture = volume.fixture
    try fixture.carryOut(fixture.plan(.offload, nil) { $0.savesFirst = false }, package)
    try volume.keep()
    let before = try fixture.contents()
    try fixture.run(.reinstall, package)
    let after = try fixture.contents()
    #expect(after.count > before.count)
    var outcomes: Set<Bool> = []
    for room in stride(from: 0, to: 36, by: 3) {
      try volume.reset()
      let plan = try fixture.plan(.reinstall, package)
      var source = InterruptedSource(package) { try volume.fill(what, leaving: room) }
      let isDone = try attempt(volume, before, after, "\(what), room for \(room)") {
        _ = try AppChangeOperation(plan, saving: nil).run(&source)
      }
      outcomes.insert(isDone)
    }
    #expect(outcomes == [true, false])
    withExtendedLifetime(volume) {}
  }

  /// The volume is filled while the first pack is read.
  @Test(arguments: UpdateVolume.Room.allCases)
  func aRollbackOnAFullVolumeIsCompleteOrUndone(_ what: UpdateVolume.Room) throws {
    let volume = try UpdateVolume("size=1m,nr_inodes=200")
    let fixture = volume.fixture
    let old = try fixture.contents()
    try fixture.run(.update, Self.update)
    try fixture.write("rewritten", "Documents/thesis.txt")
    try fixture.write("new chapter", "Documents/chapter")
    try volume.keep()
    let new = try fixture.contents()
    let storage = WatchedStorage(fixture.base.repository.storage)
    let repository = try Repository.open(storage)
    var outcomes: Set<Bool> = []
    for room in stride(from: 0, to: 60, by: 5) {
      try volume.reset()
      let plan = try fixture.rollbackPlan { ($0.data, $0.savesFirst) = (.before, false) }
      let reader = try repository.beginReading()
      let isFull = Once()
      storage.state.withLock { state in
        state.action = { event in
          if event.contains("packs/"), isFull.isFirst() { try? volume.fill(what, leaving: room) }
        }
      }
      let isDone = try attempt(volume, new, old, "\(what), room for \(room)") {
        try fixture.carryOut(plan, from: reader)
      }
      storage.state.withLock { $0.action = nil }
      #expect(!isFull.isFirst(), "the volume was not filled")
      outcomes.insert(isDone)
    }
    #expect(outcomes == [true, false])
    withExtendedLifetime(volume) {}
  }

  /// The space that a rollback needs is checked beforehand, and nothing is changed.
  @Test func aRollbackThatDoesNotFitIsRefused() throws {
    let volume = try UpdateVolume("size=1m,nr_inodes=200")
    let fixture = volume.fixture
    try fixture.run(.update, Self.update)
    let plan = try fixture.rollbackPlan()
    #expect(plan.missingRoom() == nil)
    for what in UpdateVolume.Room.allCases {
      try volume.fill(what, leaving: 1)
      let before = try fixture.contents()
      let refusal = try #require(plan.missingRoom())
      #expect(refusal.code == .noRoom && refusal.hint?.contains("free space") ?? false)
      let error = #expect(throws: OperationError.self) {
        try fixture.carryOut(plan, from: fixture.base.repository.beginReading())
      }
      #expect(error?.description.contains("cannot roll back 'org.example.one' in") ?? false)
      #expect(try fixture.contents() == before)
      #expect(
        try fixture.base.repository.snapshots().snapshots.count == 1, "that of the update alone")
      try volume.empty()
    }
    #expect(try fixture.carryOut(plan, from: fixture.base.repository.beginReading()).isComplete)
    withExtendedLifetime(volume) {}
  }

  /// If the repository is on the same volume, there must be space for both the snapshot and the
  /// package.
  @Test func theSnapshotNeedsSpaceToo() throws {
    let volume = try UpdateVolume("size=32m")
    let fixture = volume.fixture
    let repository = try Repository.create(
      in: try LocalStorage.create(path: fixture.root.appending("repo")), program: "test")
    let package = MemoryPackage(files: ["table": String(repeating: "t", count: 150_000)])
    try fixture.base.directory.write(
      Seeded(7).someBytes(150_000),
      at: fixture.data.appending(UpdateFixture.old).appending("Documents/film"))
    func update() throws -> AppChangeReport {
      var source = package
      return try AppChangeOperation(
        fixture.plan(.update, package), saving: SafetySnapshotMaker(fixture.request, in: repository)
      ).run(&source)
    }
    let before = try fixture.contents()
    let mount = try Directory.open(path: fixture.root)
    let space = try mount.space()
    // The space that backups keep free, plus enough for one of the two, but not for both.
    let free = space.available - space.total / 20
    try #require(free > 2_000_000)
    try mount.create("filler").write([UInt8](repeating: 1, count: Int(free) - 220_000))
    #expect(try fixture.plan(.update, package).missingRoom() == nil, "the package alone fits")
    let error = #expect(throws: OperationError.self) { try update() }
    #expect(
      error?.description.contains("are needed after the backup") ?? false, "\(error as Any)")
    #expect(error?.hint?.contains("--no-snapshot") ?? false)
    #expect(try fixture.contents() == before && !fixture.hasStaging)
    #expect(try repository.snapshots().snapshots.isEmpty)
    try volume.empty()
    #expect(try update().isComplete, "both fit now")
    withExtendedLifetime(volume) {}
  }
}

/// Returns true for its first call only.
private final class Once: Sendable {
  private let isDone = Mutex(false)

  func isFirst() -> Bool {
    isDone.withLock { isDone in
      defer { isDone = true }
      return !isDone
    }
  }
}
