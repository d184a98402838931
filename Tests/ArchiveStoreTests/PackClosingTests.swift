import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Packs that several threads submit for closing while another thread waits for earlier packs.
struct PackClosingTests {
  private let storage = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  private static func fill(_ pack: PackWriter) throws {
    let bytes = Array("frame of \(pack.number)".utf8)
    _ = try pack.append(PackFrame(stored: bytes, plain: bytes.count, blobs: []))
  }

  /// On a slow disk, one pack is being closed, one is queued, and threads wait to submit theirs
  /// when a checkpoint begins. No pack is lost.
  @Test func checkpointLosesNoWaitingPack() throws {
    let watched = WatchedStorage(storage)
    let gate = BoundedQueue<Int>(capacity: 1)
    watched.state.withLock { state in
      state.action = { event in if event.hasPrefix("commit packs/") { _ = gate.dequeue() } }
    }
    let packs = RunPacks(try Lease(watched), RunStatus(location: "test"))
    let threads = try Workers(count: 6, capacity: 6, name: "test")
    for _ in 0..<5 {
      let pack = try packs.open(isReadSoon: false)
      try Self.fill(pack)
      threads.submit { #expect(throws: Never.self) { try packs.closeSoon(pack) } }
    }
    // The pauses make a collision likely; the result does not depend on them.
    Host.pause(seconds: 0.1)
    threads.submit { #expect(throws: Never.self) { try packs.wait() } }
    Host.pause(seconds: 0.1)
    gate.close()
    threads.finish()
    try packs.wait()
    #expect(packs.areAllClosed && packs.counts.packs == 5)
    #expect(packs.unindexed.map(\.number) == [0, 1, 2, 3, 4])
  }

  @Test func concurrentCheckpointsLoseNoPack() throws {
    let packs = RunPacks(try Lease(storage), RunStatus(location: "test"))
    let threads = try Workers(count: 4, capacity: 4, name: "test")
    let done = BoundedQueue<Int>(capacity: 3)
    for number in 0..<3 {
      threads.submit {
        #expect(throws: Never.self) {
          for _ in 0..<100 {
            let pack = try packs.open(isReadSoon: false)
            try Self.fill(pack)
            try packs.closeSoon(pack)
          }
        }
        done.enqueue(number)
      }
    }
    threads.submit {
      var left = 3
      while left > 0 {
        #expect(throws: Never.self) { try packs.wait() }
        if done.dequeue(waitingAtMost: 0) != nil { left -= 1 }
      }
    }
    threads.finish()
    try packs.wait()
    #expect(packs.areAllClosed && packs.counts.packs == 300)
  }

  /// After the end of the run, packs are not closed, and submitting one is an error.
  @Test func packsAreNotClosedAfterTheRun() throws {
    let status = RunStatus(location: "test")
    let packs = RunPacks(try Lease(storage), status)
    let pack = try packs.open(isReadSoon: false)
    status.end()
    #expect(throws: StoreError.self) { try packs.closeSoon(pack) }
    #expect(packs.counts.packs == 0 && !packs.areAllClosed)
  }

  @Test func snapshotReliesOnlyOnClosedPacks() throws {
    let session = try repository.beginWriting()
    let tree = try session.storeTree([])
    let pack = try session.packs.open(isReadSoon: false)
    #expect(throws: StoreError.self) { try session.finish(repository.makeSnapshot(tree)) }
    #expect(try storage.list(RepositoryLayout.snapshots).isEmpty)
    pack.discard()
  }
}
