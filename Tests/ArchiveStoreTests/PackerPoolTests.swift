import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Frames of several threads on their way into packs.
@Suite struct PackerPoolTests {
  /// A run with packs of its own in a memory.
  private struct Fixture {
    let storage = WatchedStorage(MemoryStorage())
    let packs: RunPacks
    let known: KnownBlobs

    init() throws {
      let repository = try Repository.create(in: storage, program: "test")
      packs = RunPacks(try Lease(repository.storage), RunStatus(place: "test"))
      known = KnownBlobs(IndexSet([]))
    }

    func frame(_ number: Int) -> PackFrame {
      PackFrame(stored: [UInt8](repeating: UInt8(number), count: 100), plain: 200, blobs: [])
    }

    var opened: Int { storage.state.withLock(\.events).filter { $0.hasPrefix("start") }.count }
  }

  @Test(arguments: [(1, 1), (2, 2), (3, 2), (4, 2), (8, 4), (9, 5)])
  func thereIsAWayForEachTwoWorkers(workers: Int, ways: Int) throws {
    let rig = try Fixture()
    #expect(PackerPool(rig.packs, rig.known, workers: workers).ways.count == ways)
  }

  /// Threads that never meet make one pack.
  @Test func framesOneAfterAnotherComeIntoOnePack() throws {
    let rig = try Fixture()
    let lanes = PackerPool(rig.packs, rig.known, workers: 8, alone: 0)
    let before = rig.opened
    for number in 0..<10 { try lanes.append(rig.frame(number)) }
    #expect(rig.opened == before + 1)
    #expect(lanes.ways.map { $0.takeOpen() != nil } == [true, false, false, false])
  }

  /// Threads that meet make one pack all the same, as long as there is little.
  @Test func littleIsOnePackWhateverTheThreads() throws {
    let rig = try Fixture()
    // Whoever writes is slow, so that the others find the pack busy.
    rig.storage.state.withLock { state in
      state.action = { event in if event.hasPrefix("append") { sleepShortly() } }
    }
    let lanes = PackerPool(rig.packs, rig.known, workers: 4, alone: 4_000)
    let before = rig.opened
    func appendFromFourThreads() throws {
      let threads = try Workers(count: 4, capacity: 4, name: "test")
      for number in 0..<40 { threads.submit { try? lanes.append(rig.frame(number)) } }
      threads.finish()
    }
    try appendFromFourThreads()
    #expect(rig.opened == before + 1)
    // From now on whoever meets another one opens a second pack: the first to write waits for that.
    let isInside = Atomic<Bool>(false)
    let isOpened = Atomic<Bool>(false)
    let end = Host.monotonicSeconds() + 600
    rig.storage.state.withLock { state in
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
    #expect(rig.opened == before + 2)
  }

  /// While a frame is being written into a pack, another thread's frame does not wait for it.
  @Test func aBusyPackKeepsNobodyWaiting() throws {
    let rig = try Fixture()
    let lanes = PackerPool(rig.packs, rig.known, workers: 2, alone: 0)
    let isInside = Atomic<Bool>(false)
    let mayGoOn = Atomic<Bool>(false)
    rig.storage.state.withLock { state in
      state.action = { event in
        guard event.hasPrefix("append"), !isInside.exchange(true, ordering: .sequentiallyConsistent)
        else { return }
        while !mayGoOn.load(ordering: .sequentiallyConsistent) { sleepShortly() }
      }
    }
    let busy = try Workers(count: 1, capacity: 1, name: "test")
    busy.submit { try? lanes.append(rig.frame(1)) }
    while !isInside.load(ordering: .sequentiallyConsistent) { sleepShortly() }
    // Would not return if it waited.
    try lanes.append(rig.frame(2))
    mayGoOn.store(true, ordering: .sequentiallyConsistent)
    busy.finish()
    #expect(lanes.ways.allSatisfy { $0.takeOpen() != nil })
  }
}
