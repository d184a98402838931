import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Writing of frames from several threads to packs.
struct PackerPoolTests {
  /// A run with its packs in memory.
  private struct Fixture {
    let storage = WatchedStorage(MemoryStorage())
    let packs: RunPacks
    let known: KnownBlobs

    init() throws {
      let repository = try Repository.create(in: storage, program: "test")
      packs = RunPacks(try Lease(repository.storage), RunStatus(location: "test"))
      known = KnownBlobs(IndexSet([]))
    }

    func frame(_ number: Int) -> PackFrame {
      PackFrame(stored: [UInt8](repeating: UInt8(number), count: 100), plain: 200, blobs: [])
    }

    var opened: Int { storage.state.withLock(\.events).filter { $0.hasPrefix("start") }.count }
  }

  @Test(arguments: [(1, 1), (2, 2), (3, 2), (4, 2), (8, 4), (9, 5)])
  func twoWorkersShareAPacker(workers: Int, ways: Int) throws {
    let fixture = try Fixture()
    #expect(PackerPool(fixture.packs, fixture.known, workers: workers).active.count == ways)
  }

  /// Threads that never write at the same time share one pack.
  @Test func consecutiveFramesShareOnePack() throws {
    let fixture = try Fixture()
    let lanes = PackerPool(fixture.packs, fixture.known, workers: 8, alone: 0)
    let before = fixture.opened
    for number in 0..<10 { try lanes.append(fixture.frame(number)) }
    #expect(fixture.opened == before + 1)
    #expect(lanes.active.map { $0.detachOpen() != nil } == [true, false, false, false])
  }

  /// Even threads that write at the same time share one pack, as long as there is little data.
  @Test func littleDataMakesOnePackWithAnyThreads() throws {
    let fixture = try Fixture()
    // Writing is slow, so that the other threads find the pack busy.
    fixture.storage.state.withLock { state in
      state.action = { event in if event.hasPrefix("append") { sleepShortly() } }
    }
    let lanes = PackerPool(fixture.packs, fixture.known, workers: 4, alone: 4_000)
    let before = fixture.opened
    func appendFromFourThreads() throws {
      let threads = try Workers(count: 4, capacity: 4, name: "test")
      for number in 0..<40 { threads.submit { try? lanes.append(fixture.frame(number)) } }
      threads.finish()
    }
    try appendFromFourThreads()
    #expect(fixture.opened == before + 1)
    // From now on, a thread that finds the pack busy opens a second pack, for which the first
    // writer waits.
    let isInside = Atomic<Bool>(false)
    let isOpened = Atomic<Bool>(false)
    let end = Host.monotonicSeconds() + 600
    fixture.storage.state.withLock { state in
      state.action = { event in
        if event.hasPrefix("start") { isOpened.store(true, ordering: .sequentiallyConsistent) }
        guard event.hasPrefix("append"), !isInside.exchange(true, ordering: .sequentiallyConsistent)
        else { return }
        while !isOpened.load(ordering: .sequentiallyConsistent), Host.monotonicSeconds() < end {
          sleepShortly()
        }
      }
    }
    try appendFromFourThreads()
    #expect(fixture.opened == before + 2)
  }

  /// While one thread writes a frame to a pack, the frame of another thread does not have to wait.
  @Test func busyPackBlocksNoThread() throws {
    let fixture = try Fixture()
    let lanes = PackerPool(fixture.packs, fixture.known, workers: 2, alone: 0)
    let isInside = Atomic<Bool>(false)
    let mayGoOn = Atomic<Bool>(false)
    fixture.storage.state.withLock { state in
      state.action = { event in
        guard event.hasPrefix("append"), !isInside.exchange(true, ordering: .sequentiallyConsistent)
        else { return }
        while !mayGoOn.load(ordering: .sequentiallyConsistent) { sleepShortly() }
      }
    }
    let busy = try Workers(count: 1, capacity: 1, name: "test")
    busy.submit { try? lanes.append(fixture.frame(1)) }
    while !isInside.load(ordering: .sequentiallyConsistent) { sleepShortly() }
    // If this waited, it would never return.
    try lanes.append(fixture.frame(2))
    mayGoOn.store(true, ordering: .sequentiallyConsistent)
    busy.finish()
    #expect(lanes.active.allSatisfy { $0.detachOpen() != nil })
  }
}
