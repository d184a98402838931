import ArchiveStore
import Backup
import Restore
import SystemIO
import TestSupport
import Testing

/// Whole operations on a repository in a bucket, in which each request fails in turn in each way:
/// no data is lost, no snapshot is made twice, and an error states the remedy. `make test` tests a
/// sample.
@Suite(.serialized) struct RemoteFaultTests {
  @Test func aFailedRequestOfABackupLosesNothing() throws {
    let original = try RemoteFixture.afterBackup()
    let count = try original.store.requests().count
    #expect(count > 8)
    for step in RemoteFaultStep.some(upTo: count, 53, whole: 5, "faults of a backup") {
      let cache = ByteString("cache-\(step.fault)-\(step.number)")
      try original.reset(with: cache)
      var fixture = original
      try fixture.store.setRules(step.fault.rule(at: step.number))
      let outcome = Result { try fixture.backUp(cache) }
      try fixture.store.setRules("[]")
      try check(outcome, of: &fixture, step)
      // The next backup stores the missing data.
      let known = try fixture.open().snapshots().snapshots.count
      try fixture.note(try fixture.backUp(cache))
      let all = try fixture.expectSound("\(step), next backup")
      #expect(all.count == known + 1, "\(step), next backup")
      #expect(try fixture.restored(fixture.latest()) == fixture.base.records("tree"), "\(step)")
      try fixture.base.directory.directory.removeTree(cache)
    }
  }

  private func check(
    _ outcome: Result<BackupReport, any Error>, of fixture: inout RemoteFixture,
    _ step: RemoteFaultStep
  ) throws {
    let before = fixture.snapshots.count
    switch outcome {
    case .success(let report):
      try fixture.note(report)
      let listed = try fixture.expectSound("\(step)")
      #expect(listed.count == before + 1, "\(step): \(listed.count) snapshots")
    case .failure(let error):
      #expect(!step.fault.passes, "\(step): \(error)")
      fixture.expectClear(error, "\(step)")
      let listed = try fixture.expectSound("\(step)")
      // A snapshot that is listed is named by the error.
      let isNamed = "\(error)".contains("it may be listed")
      let most = isNamed ? before + 1 : before
      #expect((before...most).contains(listed.count), "\(step): \(error)")
    }
  }

  @Test func aFailedRequestOfAPruneLosesNothing() throws {
    let fixture = try RemoteFixture()
    try fixture.store.setRules("[]")
    let all = try RepositoryPrune(fixture.open(), workers: 2).run()
    #expect(all.removedPacks > 0)
    let count = try fixture.store.requests().count
    for step in RemoteFaultStep.some(upTo: count, 331, whole: 37, "faults of a prune") {
      try fixture.reset()
      try fixture.store.setRules(step.fault.rule(at: step.number))
      let outcome = Result { try RepositoryPrune(fixture.open(), workers: 2).run() }
      try fixture.store.setRules("[]")
      if case .failure(let error) = outcome {
        #expect(!step.fault.passes, "\(step): \(error)")
        fixture.expectClear(error, "\(step)")
      }
      try fixture.expectSound("\(step)")
      // Its lease expires, and the next prune does the remaining work.
      for seconds in [3700.0, 90_000] {
        try fixture.store.advance(by: seconds)
        _ = try RepositoryPrune(fixture.open()).run()
      }
      #expect(try RepositoryPrune(fixture.open()).run().plan.isIdle, "\(step)")
      try fixture.expectSound("\(step), next prune")
    }
  }

  @Test func aFailedRequestOfARestoreLosesNothing() throws {
    let fixture = try RemoteFixture()
    let snapshot = try fixture.latest()
    try fixture.store.setRules("[]")
    let wanted = try fixture.restored(snapshot)
    #expect(try wanted == fixture.base.records("tree"))
    let count = try fixture.store.requests().count
    for step in RemoteFaultStep.some(upTo: count, 13, whole: 3, "faults of a restore") {
      try fixture.reset()
      try fixture.store.setRules(step.fault.rule(at: step.number))
      let outcome = Result { try fixture.restored(snapshot) }
      try fixture.store.setRules("[]")
      switch outcome {
      case .success(let found): #expect(found == wanted, "\(step)")
      case .failure(let error):
        #expect(!step.fault.passes, "\(step): \(error)")
        fixture.expectClear(error, "\(step)")
        // The result exists as a whole or not at all.
        #expect(try !fixture.base.directory.directory.names().contains("restored"), "\(step)")
      }
      #expect(try fixture.restored(snapshot) == wanted, "\(step), next restore")
    }
  }
}
