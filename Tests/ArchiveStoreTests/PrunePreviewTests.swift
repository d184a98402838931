import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The plan of a prune, which a dry run prints, including packs that an earlier prune has
/// condemned, and the progress of a prune.
struct PrunePreviewTests {
  /// A repository in which a prune has condemned two packs, which wait for a writer.
  private func condemned() throws -> (fixture: PruneFixture, writer: WritingSession) {
    var fixture = try PruneFixture()
    try fixture.backUp(PruneFixture.files(0..<10))
    try fixture.backUp(PruneFixture.files(20..<22))
    let writer = try fixture.repository.beginWriting()
    try fixture.forget(0)
    #expect(try fixture.prune().waitingPacks == 2)
    return (fixture, writer)
  }

  @Test func condemnedPacksWaitForARunningProgram() throws {
    let (fixture, writer) = try condemned()
    let report = try fixture.plan()
    #expect(report.removedPacks == 0 && report.removedBytes == 0 && report.plan.isIdle)
    #expect(report.waitingPacks == 2 && report.waitingFor == [writer.lease.path.name])
    #expect(try fixture.packs().count == 4 && fixture.prune().waitingPacks == 2)
  }

  @Test func unneededCondemnedPacksWouldBeRemoved() throws {
    let (fixture, writer) = try condemned()
    writer.abandon()
    let before = try fixture.storedBytes()
    let report = try fixture.plan()
    #expect(report.removedPacks == 2 && report.waitingPacks == 0 && report.waitingFor.isEmpty)
    #expect(try fixture.packs().count == 4 && fixture.storedBytes() == before)
    let done = try fixture.prune()
    #expect(done.removedPacks == 2 && done.removedBytes == report.removedBytes)
    #expect(try before - fixture.storedBytes() == report.removedBytes)
    #expect(try fixture.plan().removedPacks == 0)
  }

  /// A condemned pack that a snapshot needs again stays, and is planned like any other.
  @Test func condemnedPacksThatAreNeededAgainArePlanned() throws {
    let (made, writer) = try condemned()
    var fixture = made
    let files = PruneFixture.files(0..<1)
    let tree = try writer.storeTree(
      files.map { file in
        let content = try writer.storeFile(
          logicalPath: ByteString("folders/test/" + file.name), bytes: file.bytes)
        return TreeEntry(name: ByteString(file.name), node: .file(content))
      })
    let stored = try writer.finish(fixture.repository.makeSnapshot(tree, sequence: 9))
    fixture.snapshots.append((stored, files))
    let report = try fixture.plan()
    let done = try fixture.prune()
    #expect(report.removedPacks == 1, "the pack with the tree of the first snapshot")
    let planned = report.plan.packs(.rewrite)
    #expect(planned.map(\.id) == done.plan.packs(.rewrite).map(\.id) && !planned.isEmpty)
    #expect(done.removedPacks == report.removedPacks + planned.count)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// If a program is running, packs that would be condemned now are removed only later.
  @Test func packsWaitForProgramsThatAreRunningNow() throws {
    let fixture = try PruneFixture.withUnusedPacks()
    let alone = try fixture.plan()
    #expect(alone.waitingPacks == 0 && !alone.plan.isIdle)
    let writer = try fixture.repository.beginWriting()
    let report = try fixture.plan()
    #expect(report.waitingPacks == alone.plan.packs.count { $0.action != .keep })
    #expect(report.waitingFor == [writer.lease.path.name])
    #expect(try fixture.prune().waitingPacks == report.waitingPacks)
  }

  /// A prune removes leases that have expired, so a plan does not wait for them.
  @Test func expiredLeasesDelayNothing() throws {
    let (fixture, writer) = try condemned()
    fixture.clock.advance(by: 3500)
    #expect(try fixture.plan().waitingFor == [writer.lease.path.name])
    fixture.clock.advance(by: 200)
    let report = try fixture.plan()
    #expect(report.removedPacks == 2 && report.waitingPacks == 0 && report.waitingFor.isEmpty)
    #expect(try fixture.memory.list(RepositoryLayout.leases) == [writer.lease.path.name])
    let done = try fixture.prune()
    #expect(done.removedPacks == 2 && done.waitingFor.isEmpty)
  }

  /// While a prune searches for used data, it counts directories, and then packs.
  @Test func markingShowsItsProgress() throws {
    let fixture = try PruneFixture.withUnusedPacks()
    for isDry in [true, false] {
      let counters = ProgressCounters(of: "pack")
      let seen = Mutex<[ProgressCounters.State]>([])
      let prune = RepositoryPrune(fixture.repository, counters: counters) {
        seen.withLock { $0.append(counters.progress) }
        return false
      }
      let report = isDry ? try prune.plan() : try prune.run()
      let states = seen.withLock { $0 }
      #expect(states.contains { $0.noun == "directory" && $0.filesDone == 2 }, "\(states)")
      #expect(counters.progress.noun == "pack")
      #expect(counters.progress.filesDone == (isDry ? 0 : report.plan.packs(.rewrite).count))
    }
  }
}
