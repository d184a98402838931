import ArchiveStore
import Backup
import Restore
import Synchronization
import SystemIO
import TestSupport
import Testing

/// A restore from a remote repository, which announces the data that it reads next.
struct RestoreAheadTests {
  /// A storage that is not a directory of this host. At each announcement, it records whether a
  /// directory has been made.
  private final class Elsewhere: ForwardingStorage {
    let base: any Storage
    let hasMade: @Sendable () -> Bool
    let expected = Mutex<[(packs: Int, hasMade: Bool)]>([])

    init(_ base: any Storage, hasMade: @escaping @Sendable () -> Bool) {
      (self.base, self.hasMade) = (base, hasMade)
    }

    func directoryIdentity() throws(StoreError) -> FileIdentity? { nil }

    func expect(_ ranges: [ObjectRange]) {
      let found = (Set(ranges.map(\.path)).count, hasMade())
      expected.withLock { $0.append(found) }
    }
  }

  /// The trees are announced before the plan, and the contents before the first directory is made.
  /// Nothing is announced at the end.
  @Test func contentsAreFetchedWhileDirectoriesAreMade() throws {
    let fixture = try Fixture()
    try fixture.writeProject()
    let stored = try #require(try fixture.backup().snapshot)
    _ = try Directory.make(path: fixture.directory.path("out"))
    let storage = Elsewhere(try LocalStorage(path: fixture.directory.path("repo"))) {
      ((try? fixture.records("out")) ?? [:]).keys.contains { $0.components.last == "project" }
    }
    let reader = try Repository.open(storage).beginReading()
    let plan = try RestorePlan.make(
      stored, path: "folders/tree", to: fixture.directory.path("out/restored"), from: reader)
    let trees = storage.expected.withLock { $0 }
    #expect(trees.count == 1 && trees[0].packs == 1 && !trees[0].hasMade)
    let report = try RestoreOperation(plan, from: reader, threads: 2).run()
    #expect(report.isComplete, "\(report.failed) \(report.damaged)")
    let all = storage.expected.withLock { $0 }
    #expect(all.map(\.packs) == [1, 1, 0])
    #expect(all.map(\.hasMade) == [false, false, true])
    #expect(try fixture.records("out/restored") == fixture.records("tree"))
  }
}
