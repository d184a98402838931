import Codecs
import PolicyEngine
import SandboxModel
import ScenarioRunner
import SystemIO
import TestSupport
import Testing

@testable import Scenario

/// Each type of step, on the sample device.
struct StepTests {
  private typealias Step = RunnerFixture
  private static let app: ByteString = "org.example.notebook"

  @Test func writtenFilesExistUntilTheyAreRemoved() throws {
    try RunnerFixture().pass(
      Step.write("Documents/New/a.txt", "one"),
      Step.expect("apps/org.example.notebook/data/Documents/New/a.txt", .exists),
      Step.step(.remove(LogicalPath(Step.notebook.appending("Documents/New")))),
      Step.expect("apps/org.example.notebook/data/Documents/New/**", .absent),
      Step.expect(Step.notes, .exists, .dataClass(.userData), .sameBytes(as: "beginning")))
  }

  @Test func markOfTheVersionExcludesFromTheBackupOfThePlatform() throws {
    let path = try LogicalPath(Step.notebook.appending("Documents/Notes/Ideas.txt"))
    let pattern = "apps/org.example.notebook/data/Documents/Notes/Ideas.txt"
    try RunnerFixture().pass(
      Step.step(.mark(.init(path: path, isExcluded: true, attribute: nil))),
      Step.expect(
        pattern, .mark(.attribute("com.apple.metadata:com_apple_backup_excludeItem")),
        .verdict(.platform, .backup(.never))),
      Step.step(.mark(.init(path: path, isExcluded: false, attribute: nil))),
      Step.expect(pattern, .mark(.none), .verdict(.platform, .backup(.always))))
  }

  @Test func attributeCountsOnlyInItsVersions() throws {
    let path = try LogicalPath(Step.notebook.appending("Documents/Notes/Ideas.txt"))
    let pattern = "apps/org.example.notebook/data/Documents/Notes/Ideas.txt"
    let mark = Step.step(
      .mark(.init(path: path, isExcluded: true, attribute: "com.apple.MobileBackup")))
    try RunnerFixture().pass(
      mark, Step.expect(pattern, .verdict(.platform, .backup(.never))), versions: ["5.0.1"])
    try RunnerFixture().pass(
      mark, Step.expect(pattern, .verdict(.platform, .backup(.always))), versions: ["5.0"])
  }

  @Test func updateKeepsDocumentsAndRollbackRestoresThem() throws {
    try RunnerFixture().pass(
      Step.step(.update(.init(app: "notebook", source: .version("9.0"), isStrict: true))),
      Step.expect(Step.notes, .exists, .sameBytes(as: "beginning")),
      Step.expect("apps/org.example.notebook/data/tmp/*", .absent),
      Step.write("Documents/Notes/Ideas.txt", "changed"),
      Step.step(.rollback(.init(app: "notebook", data: nil)), failure: .newerData),
      Step.step(.rollback(.init(app: "notebook", data: .before))),
      Step.expect(Step.notes, .sameBytes(as: "beginning")))
  }

  @Test func purgeRemovesOnlyCaches() throws {
    try RunnerFixture().pass(
      Step.expect("apps/org.example.notebook/data/Library/Caches/*", .exists),
      Step.step(.purge(.level(.critical))),
      Step.expect("apps/org.example.notebook/data/Library/Caches/*", .absent),
      Step.expect(Step.notes, .exists, .sameBytes(as: "beginning")))
  }

  @Test func offloadRemovesOnlyTheBundle() throws {
    try RunnerFixture().pass(
      Step.step(.offload(app: "notebook")),
      Step.expect("apps/org.example.notebook/bundle/**", .absent),
      Step.expect(Step.notes, .sameBytes(as: "beginning")),
      Step.step(
        .update(.init(app: "notebook", source: .version("9.0"), isStrict: false)),
        failure: .appNotInstalled))
  }

  @Test func newDeviceHasTheDataThatThePlatformBacksUp() throws {
    try RunnerFixture().pass(
      Step.step(.backup(.init(name: "first", view: .platform))),
      Step.write("Documents/Later.txt", "later"),
      Step.step(.restore(.init(target: .newDevice, snapshot: "first", app: nil))),
      Step.expect(Step.notes, .exists, .sameBytes(as: "first")),
      Step.expect("apps/org.example.notebook/data/Documents/Later.txt", .absent),
      Step.expect("apps/org.example.notebook/data/Library/Caches/*", .absent))
  }

  @Test func restoreInPlaceRestoresRemovedFiles() throws {
    try RunnerFixture().pass(
      Step.step(
        .restore(.init(target: .inPlace, snapshot: nil, app: nil)), failure: .snapshotNotFound),
      Step.step(.backup(.init(name: nil, view: .keep))),
      Step.step(.remove(LogicalPath(Step.notebook.appending("Documents/Notes")))),
      Step.expect(Step.notes, .absent),
      Step.step(.restore(.init(target: .inPlace, snapshot: nil, app: "notebook"))),
      Step.expect(Step.notes, .exists, .sameBytes(as: "beginning")))
  }

  @Test func deliveryIsReadOnlyAndNeedsADocumentType() throws {
    let text = ScenarioAction.Delivery(app: "notebook", name: "a.txt", content: .text("one"))
    let image = ScenarioAction.Delivery(app: "notebook", name: "a.png", content: .size(100))
    try RunnerFixture().pass(
      Step.step(.deliver(text)), Step.step(.deliver(text)),
      Step.expect(
        "apps/org.example.notebook/data/Documents/Inbox/a.txt", .exists, .dataClass(.inbox)),
      Step.expect("apps/org.example.notebook/data/Documents/Inbox/a-1.txt", .exists),
      Step.step(.deliver(image), failure: .typeRefused))
  }

  @Test func interruptionIsRecovered() throws {
    let update = ScenarioAction.update(
      .init(app: "notebook", source: .version("9.0"), isStrict: false))
    for count in [1, 20, 60, 90, 120] {
      try RunnerFixture().pass(
        Step.step(.interrupt(.init(action: update, count: count, unit: .call, recovers: true))),
        Step.expect(Step.notes, .exists, .sameBytes(as: "beginning")),
        Step.expect("apps/org.example.notebook/bundle/**", .exists))
    }
  }

  private func interrupt(
    _ action: ScenarioAction, at count: Int, of unit: ScenarioAction.Interruption.Unit
  ) -> ScenarioStep {
    Step.step(.interrupt(.init(action: action, count: count, unit: unit, recovers: true)))
  }

  /// The points at which operations are interrupted: the first ones, and some in the middle.
  private static let places: [(Int, ScenarioAction.Interruption.Unit)] =
    Sampling.isWhole
    ? [(1, .phase), (3, .phase), (1, .call), (12, .call), (25, .call)] : [(3, .phase), (12, .call)]

  @Test func interruptedBackupLeavesTheEarlierOne() throws {
    let backup = ScenarioAction.backup(.init(name: "second", view: .platform))
    for (count, unit) in Self.places {
      try RunnerFixture().pass(
        Step.step(.backup(.init(name: "first", view: .platform))),
        Step.write("Documents/Later.txt", "later"), interrupt(backup, at: count, of: unit),
        Step.step(.backup(.init(name: "third", view: .platform))),
        Step.step(.restore(.init(target: .newDevice, snapshot: "first", app: nil))),
        Step.expect(Step.notes, .exists, .sameBytes(as: "beginning")),
        Step.step(.restore(.init(target: .newDevice, snapshot: "third", app: nil))),
        Step.expect("apps/org.example.notebook/data/Documents/Later.txt", .exists))
    }
  }

  @Test func interruptedPurgeTakesCachesOnly() throws {
    let purge = ScenarioAction.purge(.level(.critical))
    for count in Sampling.isWhole ? [1, 5, 12, 40] : [12] {
      try RunnerFixture().pass(
        interrupt(purge, at: count, of: .call),
        Step.expect(Step.notes, .exists, .sameBytes(as: "beginning")), Step.step(purge),
        Step.expect("apps/org.example.notebook/data/Library/Caches/*", .absent),
        Step.expect(Step.notes, .exists, .sameBytes(as: "beginning")))
    }
  }

  @Test func interruptedRestoreIsRepeated() throws {
    for (target, view) in [
      (ScenarioAction.Restore.Target.inPlace, Verdicts.View.keep), (.newDevice, .platform),
    ] {
      let restore = ScenarioAction.restore(.init(target: target, snapshot: "first", app: nil))
      for (count, unit) in Self.places {
        try RunnerFixture().pass(
          Step.step(.backup(.init(name: "first", view: view))),
          Step.step(.remove(LogicalPath(Step.notebook.appending("Documents/Notes/Ideas.txt")))),
          interrupt(restore, at: count, of: unit), Step.step(restore),
          Step.expect(Step.notes, .exists, .sameBytes(as: "beginning")))
      }
    }
  }

  @Test func interruptedRollbackLosesNothing() throws {
    let update = ScenarioAction.update(
      .init(app: "notebook", source: .version("9.0"), isStrict: false))
    let rollback = ScenarioAction.rollback(.init(app: "notebook", data: .before))
    for (count, unit) in Self.places {
      try RunnerFixture().pass(
        Step.step(update), interrupt(rollback, at: count, of: unit),
        Step.expect(Step.notes, .exists, .sameBytes(as: "beginning")),
        Step.expect("apps/org.example.notebook/bundle/**", .exists))
    }
  }

  @Test func interruptionAtAPhaseOfAnOperationWithoutPhasesIsAnError() throws {
    let purge = ScenarioAction.purge(.level(.critical))
    let results = try RunnerFixture().run(
      Step.document([interrupt(purge, at: 1, of: .phase)]))
    guard case .error(let problem) = results[0].outcome else {
      Issue.record("\(results)")
      return
    }
    #expect(problem.message.contains("it has no phases"), "\(problem.message)")
  }

  @Test func interruptionAfterTheEndIsAnError() throws {
    let offload = ScenarioAction.offload(app: "notebook")
    try RunnerFixture().pass(
      Step.step(
        .interrupt(.init(action: offload, count: 90_000, unit: .phase, recovers: true)),
        failure: .invalidValue))
  }
}
