import AppUpdate
import ArchiveStore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// How long the trash keeps the files that an operation on an app moved there.
@Suite(.spreadScans) struct AppTrashTests {
  private static let day: Int64 = 24 * 3600

  private func items(_ fixture: UpdateFixture) throws -> [Trash.Item] {
    try Trash(of: fixture.device()).items()
  }

  private func update(_ fixture: UpdateFixture, at seconds: Int64) throws {
    let package = MemoryPackage()
    var request = AppChangeRequest(
      .update, of: UpdateFixture.identifier, package: package.app, time: Timestamp(seconds: seconds)
    )
    (request.isForced, request.isStrict, request.savesFirst) = (true, true, false)
    try fixture.carryOut(AppChangePlan.make(try fixture.scan(), request), package)
  }

  /// A day later, the next successful operation on the app deletes the trash item; a refused or
  /// failed operation, a dry run, and an operation on another app do not.
  @Test func theNextOperationAfterADayDeletesTheTrash() throws {
    let fixture = try UpdateFixture()
    let begin: Int64 = 1_900_000_000
    try update(fixture, at: begin)
    let first = try items(fixture)
    #expect(first.count == 1 && first[0].operation == "update" && first[0].totals.files > 3)
    try update(fixture, at: begin + Self.day)
    #expect(try items(fixture).count == 2, "exactly a day is not older than a day")
    let later = begin + 2 * Self.day + 10
    let counter = Faults.Plan(failing: [.rename], at: 1, number: 28, failsRepeatedly: true)
    _ = Faults.inject(counter) {
      #expect(throws: (any Error).self) { try update(fixture, at: later) }
    }
    _ = try Recovery(fixture.device(), policy: PurgeFixture.policy(), isForced: true).run()
    #expect(
      try items(fixture).map(\.id).starts(with: first.map(\.id)), "a failed one empties nothing")
    _ = try fixture.plan(.update, MemoryPackage())
    #expect(try items(fixture).map(\.id).starts(with: first.map(\.id)))
    try update(fixture, at: later)
    #expect(try items(fixture).allSatisfy { $0.time.seconds >= later })
  }

  /// Files that an interrupted rollback still has to restore are not deleted from the trash,
  /// neither on request nor by age.
  @Test func trashOfAnInterruptedRollbackIsKept() throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, MemoryPackage()) { $0.isStrict = true }
    let updated = try #require(try items(fixture).first)
    let plan = try fixture.rollbackPlan { $0.savesFirst = false }
    #expect(plan.containers.contains { !$0.trashRestores.isEmpty })
    var call = 0
    let reader = try fixture.base.repository.beginReading()
    while call < 200 {
      call += 1
      let faults = Faults.Plan(failing: [.rename], at: call, number: 5, failsRepeatedly: true)
      Faults.inject(faults) { _ = try? fixture.carryOut(plan, from: reader) }
      if try InterruptedOperation.all(on: fixture.root).contains(where: \.canBeFinished) { break }
      _ = try Recovery(fixture.device(), policy: PurgeFixture.policy(), isForced: true).run()
    }
    #expect(try Trash(of: fixture.device()).isInUse(updated))
    let done = try Recovery(fixture.device(), policy: PurgeFixture.policy(), isForced: true).run()
      .done
    #expect(done.map(\.isFinished) == [true])
    #expect(try !Trash(of: fixture.device()).isInUse(updated))
    #expect(try fixture.contents()["apps/org.example.one/data/tmp/upload"]?.text == "temporary")
  }

  /// A rollback that is still staging has locked its apps, but has not yet recorded the items that
  /// it takes from the trash.
  @Test func trashOfLockedAppsIsNotEmptied() throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, MemoryPackage()) { $0.isStrict = true }
    let updated = try #require(try items(fixture).first)
    let all = Trash.ItemSelection(operations: [], minimumAge: nil)
    func empty(isDryRun: Bool = false) throws -> Trash.EmptyingResult? {
      try Trash.empty(
        [fixture.device()], all, isDryRun: isDryRun, counting: ProgressCounters(),
        isStopping: { false }
      ).first
    }
    do {
      let locks = try AppLocks(Array(updated.subjects.prefix(1)), root: fixture.root)
      for isDryRun in [true, false] {
        let kept = try #require(try empty(isDryRun: isDryRun))
        #expect(kept.removed.isEmpty)
        #expect(kept.failed.map(\.id) == [updated.id])
      }
      withExtendedLifetime(locks) {}
    }
    #expect(try items(fixture).map(\.id) == [updated.id])
    #expect(try empty()?.removed == [updated.id])
  }

  /// Without the trash, a rollback would silently lack data that no snapshot has.
  @Test func rollbackIsRefusedIfTheTrashCannotBeRead() throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, MemoryPackage()) { $0.isStrict = true }
    let trash = try Directory.open(path: fixture.root.appending(".sandboxctl/trash"))
    try trash.setPermissions(0o770)
    #expect(throws: OperationError.self) { _ = try fixture.rollbackPlan() }
    // The current data needs nothing from the trash.
    #expect(try fixture.rollbackPlan { $0.data = .now }.refusals.isEmpty)
    try trash.setPermissions(0o700)
    #expect(try fixture.rollbackPlan().containers.contains { !$0.trashRestores.isEmpty })
  }

  /// A directory in the trash that cannot be opened, here because a link is in its place, is also
  /// named by the report, because its content is not restored.
  @Test func rollbackReportsUnreadableTrashEntries() throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, MemoryPackage()) { $0.isStrict = true }
    let item = try #require(try items(fixture).first)
    let app = try Directory.open(
      path: try #require(item.directories.first).appending("apps/org.example.one"))
    try app.rename("data", to: "moved", in: app, replacing: false)
    try app.createLink("data", to: "moved")
    let plan = try fixture.rollbackPlan { $0.savesFirst = false }
    #expect(plan.unreadTrash.map(\.path) == ["apps/org.example.one/data"])
    let report = try fixture.carryOut(plan, from: fixture.base.repository.beginReading())
    #expect(!report.isComplete)
    #expect(report.failed.contains { $0.remark.contains("trash cannot be read") }, "\(report)")
  }

  /// An operation's directory or note that cannot be read is never treated as missing.
  @Test func operationsThatCannotBeReadAreListed() throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, MemoryPackage()) { $0.isStrict = true }
    let trash = Trash(of: try fixture.device())
    var unread = 0
    for call in 1...12 {
      let fault = Faults.Plan(failing: [.open], at: call, number: 5)
      guard let found = Faults.inject(fault, { try? trash.listed() }) else { continue }
      unread += found.unreadable.count
      #expect(found.items.first?.operation == "update" || !found.unreadable.isEmpty, "\(call)")
    }
    #expect(unread > 1, "the directory, and its note")
    #expect(try trash.listed().unreadable.isEmpty)
  }

  @Test func rollbackFailsIfItsTrashWasEmptiedSinceThePlan() throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, MemoryPackage()) { $0.isStrict = true }
    let plan = try fixture.rollbackPlan { $0.savesFirst = false }
    let taken = try #require(plan.containers.flatMap(\.trashRestores).first)
    let name = try #require(taken.from.lastComponent)
    try Directory.open(path: taken.from.parent).removeTree(name)
    let before = try fixture.contents()
    let reader = try fixture.base.repository.beginReading()
    let error = #expect(throws: OperationError.self) {
      try fixture.carryOut(plan, from: reader)
    }
    #expect(error?.code == .changedSincePlan, "\(error?.description ?? "")")
    #expect(try fixture.contents() == before, "the device is unchanged")
  }
}
