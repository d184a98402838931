import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Rebuilding the index from the packs.
struct IndexRepairTests {
  private let memory = MemoryStorage()
  private let storage: WatchedStorage
  private let repository: Repository
  private let snapshots: [StoredSnapshot]
  private let files = [20, 1].enumerated().map { number, count in
    (0..<count).map {
      ("\(number)-\($0)", SeededBytes.some(seed: UInt64(100 * number + $0), count: 300))
    }
  }

  /// Makes two backups whose sizes are such that their index objects are not merged.
  init() throws {
    storage = WatchedStorage(memory)
    repository = try Repository.create(in: storage, program: "test")
    let repository = repository
    snapshots = try files.enumerated().map { number, files in
      try repository.back(up: files, sequence: UInt64(number + 1))
    }
  }

  private func indexes() throws -> Set<Digest> { Set(try RepositoryListing.indexes(memory)) }

  private func flip(_ id: Digest) throws {
    try memory.change(RepositoryLayout.tested.index(id)) { $0[$0.count - 20] ^= 1 }
  }

  /// Expects that everything is found with the index alone, without remarks.
  private func expectWhole(_ what: String = "") throws {
    let found = try Checked(repository, .everything)
    #expect(found.damaged.isEmpty && found.costs.isEmpty, "\(what): \(found.findings)")
    try expectRead(what) { $0.isEmpty }
  }

  private func expectRead(_ what: String, _ remarks: ([StoreError]) -> Bool) throws {
    let reader = try Repository.open(memory).beginReading()
    for (stored, files) in zip(snapshots, files) {
      for (name, bytes) in files {
        #expect(try reader.bytes(at: ByteString(name), in: stored) == bytes, "\(what): \(name)")
      }
    }
    #expect(remarks(reader.remarks), "\(what): \(reader.remarks)")
  }

  private func repair(dry: Bool = false) throws -> IndexRepair.Report {
    try IndexRepair(repository, isDry: dry).run()
  }

  @Test func intactIndexIsNotChanged() throws {
    let before = try indexes()
    let report = try repair()
    #expect(report.isIdle && report.written.isEmpty && before.count == 2)
    #expect(try indexes() == before)
    #expect(try memory.list(RepositoryLayout.leases).isEmpty)
  }

  @Test(arguments: [[0], [1], [0, 1]]) func damagedObjectsAreReplaced(_ numbers: [Int]) throws {
    let all = try indexes().sorted()
    let damaged = numbers.map { all[$0] }
    for id in damaged { try flip(id) }
    let now = try indexes()
    storage.state.withLock { $0.events = [] }
    let dry = try repair(dry: true)
    #expect(dry.packs == 2 * numbers.count && dry.removed.allSatisfy(damaged.contains))
    #expect(dry.written.isEmpty && dry.unreadable.isEmpty && dry.kept.isEmpty)
    let changes = storage.state.withLock(\.events).filter { event in
      ["commit", "rename", "remove", "touch", "start", "folders"].contains { event.hasPrefix($0) }
    }
    #expect(try indexes() == now && changes.isEmpty, "\(changes)")
    let report = try repair()
    #expect(report.packs == dry.packs && report.blobs == dry.blobs && report.written.count == 1)
    // An object that is rebuilt with the same bytes is written but not removed; a dry run reports
    // the same.
    #expect(dry.removed == report.removed)
    #expect(Set(report.removed).isDisjoint(with: report.written))
    #expect(Set(report.removed + report.written).isSuperset(of: damaged))
    #expect(try indexes() == Set(all).subtracting(damaged).union(report.written))
    try expectWhole("\(numbers)")
    #expect(try repair().isIdle)
    #expect(try memory.list(RepositoryLayout.leases).isEmpty)
    // A writer relies on the packs again.
    let session = try repository.beginWriting()
    #expect(session.contains(BlobID(kind: .data, digest: Blake2b.hash(files[0][3].1))))
    session.abandon()
  }

  @Test func missingIndexIsRebuilt() throws {
    for id in try indexes() { try memory.remove(RepositoryLayout.tested.index(id)) }
    try expectRead("before") { $0.count == 1 }
    let report = try repair()
    #expect(report.packs == 4 && report.written.count == 1 && report.removed.isEmpty)
    #expect(report.blobs == 21 + 2)
    try expectWhole()
  }

  /// A damaged object stays as long as a pack is unreadable, since it may be the only one that
  /// names the pack.
  @Test func nothingIsRemovedIfAPackIsUnreadable() throws {
    let damaged = try #require(try indexes().first)
    let object = try IndexObject.open(damaged, from: memory)
    let pack = object.pack(0).id
    try flip(damaged)
    try memory.change(RepositoryLayout.tested.pack(pack)) { $0.removeLast(9) }
    let report = try repair()
    #expect(report.unreadable.map(\.subject) == ["\(RepositoryLayout.tested.pack(pack))"])
    #expect(report.packs == object.packs - 1 && report.written.count == 1)
    #expect(report.removed.isEmpty && report.kept.count == 1)
    #expect(try indexes().contains(damaged))
  }

  /// Objects of a later version are not removed.
  @Test func objectOfALaterVersionIsKept() throws {
    let path = RepositoryLayout.tested.index(try #require(try indexes().first))
    var bytes = try memory.content(path)
    bytes[8] = 2
    try memory.remove(path)
    let newer = try memory.put(bytes, kind: .index)
    let report = try repair()
    #expect(report.kept.count == 1 && report.removed.isEmpty && report.written.count == 1)
    #expect(try indexes().contains(newer))
    try expectRead("the later one stays") { $0.map(\.code) == [.unsupported] }
  }

  @Test func anotherProgramHoldsTheRightToRemoveObjects() throws {
    for id in try indexes() { try flip(id) }
    let right = try #require(try PruneLease(Lease(memory)))
    let error = storeError { try repair() }
    #expect(error?.code == .busy && error?.hint != nil)
    right.release()
    #expect(try repair().packs == 4)
  }

  /// Packs are read for an hour: neither the lease nor the right to remove objects expires, because
  /// their heartbeats are written every minute.
  @Test func bothLeasesAreTouchedWhilePacksAreRead() throws {
    for id in try indexes() { try memory.remove(RepositoryLayout.tested.index(id)) }
    let clock = Atomic<Int>(0)
    let touches = Mutex<[String]>([])
    storage.state.withLock { state in
      state.action = { event in
        if event.hasPrefix("range packs/") { clock.add(61, ordering: .relaxed) }
        if event.hasPrefix("touch") { touches.withLock { $0.append(event) } }
      }
    }
    let repair = IndexRepair(
      repository, counters: ProgressCounters(), isStopping: { false },
      clock: { Double(clock.load(ordering: .relaxed)) })
    let report = try repair.run()
    storage.state.withLock { $0.action = nil }
    #expect(report.packs == 4)
    // Each is touched once when it is taken, and once for each pack that took a minute.
    let alive = touches.withLock { $0 }.count { $0 == "touch alive" }
    #expect(alive >= 2 + 2 * 4, "\(touches.withLock { $0 })")
  }

  /// Another program takes the right to remove objects while packs are read: the repair writes
  /// nothing.
  @Test func repairStopsWhenTheRightToRemoveObjectsIsLost() throws {
    for id in try indexes() { try memory.remove(RepositoryLayout.tested.index(id)) }
    let clock = Atomic<Int>(0)
    storage.state.withLock { state in
      state.action = { [memory] event in
        guard event.hasPrefix("range packs/") else { return }
        clock.add(61, ordering: .relaxed)
        try? memory.rename(PruneLease.path, to: RepositoryLayout.leases.appending("taken"))
      }
    }
    let repair = IndexRepair(
      repository, counters: ProgressCounters(), isStopping: { false },
      clock: { Double(clock.load(ordering: .relaxed)) })
    let error = storeError { try repair.run() }
    storage.state.withLock { $0.action = nil }
    #expect(error?.code == .leaseLost && error?.hint != nil, "\(error as Any)")
    #expect(try indexes().isEmpty)
  }

  /// The repair ends before the next pack, changes nothing and leaves no lease.
  @Test(arguments: [false, true]) func repairEndsOnRequest(dry: Bool) throws {
    for id in try indexes() { try flip(id) }
    let now = try indexes()
    let counters = ProgressCounters()
    let repair = IndexRepair(
      repository, isDry: dry, counters: counters,
      isStopping: { counters.progress.filesDone == 3 })
    let error = storeError { try repair.run() }
    #expect(error?.kind == .interrupted && error?.hint == "run it again", "\(error as Any)")
    #expect(counters.progress.filesToDo == 4 && "\(counters.progress.active)".hasPrefix("packs/"))
    #expect(try indexes() == now)
    #expect(try memory.list(RepositoryLayout.leases).isEmpty)
    #expect(try self.repair(dry: dry).packs == 4)
  }

  /// Each call fails, once or permanently (as after a kill): readable data stays readable, and the
  /// next repair completes the work.
  @Test(arguments: [false, true]) func repairSurvivesEveryFailedStorageCall(failsRepeatedly: Bool)
    throws
  {
    let good = try indexes().map { id in
      (id, try memory.load(RepositoryLayout.tested.index(id), limit: 1 << 20))
    }
    let watched = WatchedStorage(memory, passing: WatchedStorage.isFurtherPackDirectory)
    let repository = try Repository.open(watched)
    var failures = 0
    for number in 1...200 {
      for id in try indexes() { try memory.remove(RepositoryLayout.tested.index(id)) }
      for (id, bytes) in good { try memory.put(bytes, RepositoryLayout.tested.index(id)) }
      for (id, _) in good { try flip(id) }
      watched.fail(at: number, failsRepeatedly: failsRepeatedly)
      let error = storeError { try IndexRepair(repository).run() }
      if error != nil { failures += 1 }
      let isOver = !watched.hasFailed
      watched.fail(at: nil)
      try expectRead("call \(number)") { _ in true }
      for name in try memory.list(RepositoryLayout.leases) {
        let lease = RepositoryLayout.leases.appending(name)
        for file in try memory.list(lease) { try memory.remove(lease.appending(file)) }
        try memory.remove(lease)
      }
      if error != nil {
        _ = try self.repair()
        try expectWhole("call \(number)")
      }
      if isOver { break }
    }
    #expect(failures > 15 && failures < 200, "\(failures)")
    try expectWhole()
  }
}
