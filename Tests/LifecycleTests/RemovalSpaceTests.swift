import ArchiveStore
import Foundation
import Lifecycle
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Offload, reinstall, uninstall and rollback on a volume that is full, or is filled meanwhile, by bytes and
/// by the number of files that it can hold: after the recovery, with room, the device is as it was or as
/// it was to be, in every path.
@Suite(.serialized, .enabled(if: (try? Mount.isPermitted()) ?? false))
struct RemovalSpaceTests {
  private static let update = MemoryPackage(
    extensions: [("\(UpdateFixture.app).share", "20")], files: ["Example": "new program"])

  private typealias Contents = [ByteString: UpdateFixture.Content]

  /// Does something that may fail for want of room; then makes room, recovers, and tells whether it was
  /// done.
  private func attempt(
    _ volume: UpdateVolume, _ before: Contents, _ after: Contents, _ what: String,
    _ body: () throws -> Void
  ) throws -> Bool {
    var error: (any Error)?
    do { try body() } catch let failure { error = failure }
    let told = "\(what): \(error.map { "\($0)" } ?? "done")"
    if let error {
      #expect(tellsWhatAndWhere(error), "\(told)")
      #expect("\(error)".contains("no space"), "\(told)")
      #expect((error as? LifecycleError)?.hint != nil, "\(told)")
    }
    try volume.empty()
    _ = try volume.rig.recover(told)
    let found = try volume.rig.contents()
    // What failed among its renames is finished by the recovery.
    let isDone = found == after
    #expect(isDone || found == before, "\(told)")
    #expect(isDone || error != nil, "\(told)")
    #expect(!volume.rig.hasStaging, "\(told)")
    return isDone
  }

  @Test(arguments: UpdateVolume.Room.allCases, [AppChange.offload, .uninstall])
  func whatGoesIsNotLost(_ what: UpdateVolume.Room, _ change: AppChange) throws {
    let volume = try UpdateVolume("size=1m,nr_inodes=200")
    let rig = volume.rig
    let before = try rig.contents()
    let kept = before.filter { change == .offload && !$0.key.components.contains("bundle") }
    var outcomes: Set<Bool> = []
    for room in stride(from: 0, to: 30, by: 2) {
      try volume.reset()
      let plan = try rig.plan(change, nil) { $0.savesFirst = false }
      try volume.fill(what, leaving: room)
      let isDone = try attempt(volume, before, kept, "\(change), \(what), room for \(room)") {
        try rig.carryOut(plan, MemoryPackage())
      }
      outcomes.insert(isDone)
      if isDone {
        let trash = try rig.trash()
        #expect(trash["apps/org.example.one/bundle/Example.app/Example"] == "old program")
        let thesis = trash["apps/org.example.one/data/Documents/thesis.txt"]
        #expect(thesis == (change == .uninstall ? "a thesis" : nil))
      }
    }
    #expect(outcomes == [true, false])
    withExtendedLifetime(volume) {}
  }

  @Test(arguments: UpdateVolume.Room.allCases)
  func aReinstallationIsWhole(_ what: UpdateVolume.Room) throws {
    let package = MemoryPackage(
      extensions: [("\(UpdateFixture.app).share", "20")],
      files: ["Example": "new program", "data/table": String(repeating: "t", count: 9000)])
    let volume = try UpdateVolume("size=1m,nr_inodes=200")
    let rig = volume.rig
    try rig.carryOut(rig.plan(.offload, nil) { $0.savesFirst = false }, package)
    try volume.keep()
    let before = try rig.contents()
    try rig.run(.reinstall, package)
    let after = try rig.contents()
    #expect(after.count > before.count)
    var outcomes: Set<Bool> = []
    for room in stride(from: 0, to: 36, by: 3) {
      try volume.reset()
      let plan = try rig.plan(.reinstall, package)
      var source = InterruptedSource(package) { try volume.fill(what, leaving: room) }
      let isDone = try attempt(volume, before, after, "\(what), room for \(room)") {
        _ = try AppChangeOperation(plan, saving: rig.request, to: nil).run(&source)
      }
      outcomes.insert(isDone)
    }
    #expect(outcomes == [true, false])
    withExtendedLifetime(volume) {}
  }

  /// It is filled while the first pack is read.
  @Test(arguments: UpdateVolume.Room.allCases)
  func aRollbackIsWhole(_ what: UpdateVolume.Room) throws {
    let volume = try UpdateVolume("size=1m,nr_inodes=200")
    let rig = volume.rig
    let old = try rig.contents()
    try rig.run(.update, Self.update)
    try rig.write("rewritten", "Documents/thesis.txt")
    try rig.write("new chapter", "Documents/chapter")
    try volume.keep()
    let new = try rig.contents()
    let storage = WatchedStorage(rig.rig.repository.storage)
    let repository = try Repository.open(storage)
    var outcomes: Set<Bool> = []
    for room in stride(from: 0, to: 60, by: 5) {
      try volume.reset()
      let plan = try rig.rollbackPlan { ($0.data, $0.savesFirst) = (.before, false) }
      let reader = try repository.beginReading()
      let isFull = Once()
      storage.state.withLock { state in
        state.action = { event in
          if event.contains("packs/"), isFull.isFirst() { try? volume.fill(what, leaving: room) }
        }
      }
      let isDone = try attempt(volume, new, old, "\(what), room for \(room)") {
        try rig.carryOut(plan, from: reader)
      }
      storage.state.withLock { $0.action = nil }
      #expect(!isFull.isFirst(), "it was filled")
      outcomes.insert(isDone)
    }
    #expect(outcomes == [true, false])
    withExtendedLifetime(volume) {}
  }

  /// What a rollback brings back is held against the room beforehand, and nothing is begun.
  @Test func aRollbackThatDoesNotFitIsNotBegun() throws {
    let volume = try UpdateVolume("size=1m,nr_inodes=200")
    let rig = volume.rig
    try rig.run(.update, Self.update)
    let plan = try rig.rollbackPlan()
    #expect(plan.missingRoom() == nil)
    for what in UpdateVolume.Room.allCases {
      try volume.fill(what, leaving: 1)
      let before = try rig.contents()
      let refusal = try #require(plan.missingRoom())
      #expect(refusal.code == .noRoom && refusal.hint?.contains("free space") ?? false)
      let error = #expect(throws: LifecycleError.self) {
        try rig.carryOut(plan, from: rig.rig.repository.beginReading())
      }
      #expect(error?.description.contains("cannot roll back 'org.example.one' in") ?? false)
      #expect(try rig.contents() == before)
      #expect(try rig.rig.repository.snapshots().snapshots.count == 1, "that of the update alone")
      try volume.empty()
    }
    #expect(try rig.carryOut(plan, from: rig.rig.repository.beginReading()).isComplete)
    withExtendedLifetime(volume) {}
  }

  /// On one volume with the repository the snapshot and the package have to fit, not each for itself.
  @Test func theSnapshotNeedsRoomToo() throws {
    let volume = try UpdateVolume("size=32m")
    let rig = volume.rig
    let repository = try Repository.create(
      in: try LocalStorage.create(path: rig.root.appending("repo")), program: "test")
    let package = MemoryPackage(files: ["table": String(repeating: "t", count: 150_000)])
    try rig.rig.directory.write(
      Seeded(7).someBytes(150_000),
      at: rig.data.appending(UpdateFixture.old).appending("Documents/film"))
    func update() throws -> AppChangeReport {
      var source = package
      return try AppChangeOperation(
        rig.plan(.update, package), saving: rig.request, to: repository
      ).run(&source)
    }
    let before = try rig.contents()
    let mount = try Directory.open(path: rig.root)
    let space = try mount.space()
    // What backups keep free, and room for the one or the other, but not for both.
    let free = space.available - space.total / 20
    try #require(free > 2_000_000)
    try mount.create("filler").write([UInt8](repeating: 1, count: Int(free) - 220_000))
    #expect(try rig.plan(.update, package).missingRoom() == nil, "the package alone has room")
    let error = #expect(throws: LifecycleError.self) { try update() }
    #expect(
      error?.description.contains("are to be written there afterwards") ?? false, "\(error as Any)")
    #expect(error?.hint?.contains("--no-snapshot") ?? false)
    #expect(try rig.contents() == before && !rig.hasStaging)
    #expect(try repository.snapshots().snapshots.isEmpty)
    try volume.empty()
    #expect(try update().isComplete, "both have room now")
    withExtendedLifetime(volume) {}
  }
}

/// Says of the first call alone that it is the first.
private final class Once: Sendable {
  private let isDone = Mutex(false)

  func isFirst() -> Bool {
    isDone.withLock { isDone in
      defer { isDone = true }
      return !isDone
    }
  }
}
