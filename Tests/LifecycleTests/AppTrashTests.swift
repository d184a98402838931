import ArchiveStore
import Lifecycle
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// How long the trash keeps what an operation on an app put there.
@Suite(.spreadScans) struct AppTrashTests {
  private static let day: Int64 = 24 * 3600

  private func items(_ rig: UpdateFixture) throws -> [Trash.Item] {
    try Trash(of: rig.device()).items()
  }

  private func update(_ rig: UpdateFixture, at seconds: Int64) throws {
    let package = MemoryPackage()
    var request = AppChangeRequest(
      .update, of: UpdateFixture.identifier, package: package.app, time: Timestamp(seconds: seconds)
    )
    (request.isForced, request.isStrict, request.savesFirst) = (true, true, false)
    try rig.carryOut(AppChangePlan.make(try rig.scan(), request), package)
  }

  /// The next operation on the app that succeeds empties it after a day; a refused or failed one, a dry
  /// run, and one on another app do not.
  @Test func theNextOperationAfterADayEmptiesIt() throws {
    let rig = try UpdateFixture()
    let begin: Int64 = 1_900_000_000
    try update(rig, at: begin)
    let first = try items(rig)
    #expect(first.count == 1 && first[0].operation == "update" && first[0].totals.files > 3)
    try update(rig, at: begin + Self.day)
    #expect(try items(rig).count == 2, "a day is not over a day")
    let later = begin + 2 * Self.day + 10
    let counter = Faults.Plan(failing: [.rename], at: 1, number: 28, staysBroken: true)
    _ = Faults.inject(counter) { #expect(throws: (any Error).self) { try update(rig, at: later) } }
    _ = try Recovery(rig.device(), policy: PurgeFixture.policy(), isForced: true).run()
    #expect(try items(rig).map(\.id).starts(with: first.map(\.id)), "a failed one empties nothing")
    _ = try rig.plan(.update, MemoryPackage())
    #expect(try items(rig).map(\.id).starts(with: first.map(\.id)))
    try update(rig, at: later)
    #expect(try items(rig).allSatisfy { $0.time.seconds >= later })
  }

  /// What a rollback that was interrupted still brings back is not emptied, asked for or by age.
  @Test func whatIsStillNeededStays() throws {
    let rig = try UpdateFixture()
    try rig.run(.update, MemoryPackage()) { $0.isStrict = true }
    let updated = try #require(try items(rig).first)
    let plan = try rig.rollbackPlan { $0.savesFirst = false }
    #expect(plan.containers.contains { !$0.returns.isEmpty })
    var call = 0
    let reader = try rig.rig.repository.beginReading()
    while call < 200 {
      call += 1
      let faults = Faults.Plan(failing: [.rename], at: call, number: 5, staysBroken: true)
      Faults.inject(faults) { _ = try? rig.carryOut(plan, from: reader) }
      if try InterruptedOperation.all(on: rig.root).contains(where: \.canBeFinished) { break }
      _ = try Recovery(rig.device(), policy: PurgeFixture.policy(), isForced: true).run()
    }
    #expect(try Trash(of: rig.device()).isInUse(updated))
    let done = try Recovery(rig.device(), policy: PurgeFixture.policy(), isForced: true).run().done
    #expect(done.map(\.isFinished) == [true])
    #expect(try !Trash(of: rig.device()).isInUse(updated))
    #expect(try rig.contents()["apps/org.example.one/data/tmp/upload"]?.text == "temporary")
  }
}
