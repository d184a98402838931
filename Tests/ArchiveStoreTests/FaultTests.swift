import Codecs
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

struct DurabilityTests {
  private let files = [("a", [UInt8]("one".utf8)), ("b", [UInt8](repeating: 5, count: 600_000))]

  @Test func packsAreWrittenBeforeIndexAndSnapshot() throws {
    let storage = WatchedStorage(MemoryStorage())
    let repository = try Repository.create(in: storage, program: "test")
    storage.state.withLock { $0.events = [] }
    try repository.back(up: files)
    let directories = storage.state.withLock(\.events).filter { $0.hasPrefix("commit ") }
      .map { $0.dropFirst(7).prefix { $0 != "/" } }
    #expect(directories == ["packs", "packs", "index", "snapshots"])
  }

  /// A writer lists objects in the order that prune relies on, and only after its lease exists. It
  /// lists a pack directory once if the index names a pack in it.
  @Test func writerListsInTheRequiredOrder() throws {
    let storage = WatchedStorage(MemoryStorage())
    let repository = try Repository.create(in: storage, program: "test")
    // The recipients are read again, because they may have changed before the lease existed.
    let recipients = TestEncryption.isOn ? ["load repository.json"] : []
    let before =
      ["directories leases", "touch alive", "touch \(LeaseStatus.Owner.sign)"] + recipients + [
        "list condemned", "list damaged", "list index",
      ]
    #expect(try beginning(repository, storage) == before + ["list packs", "list snapshots"])
    for number in 1...3 {
      try repository.back(up: [("a", [UInt8(number)])], sequence: UInt64(number))
    }
    let indexes = try RepositoryListing.indexes(storage)
    let directories = try RepositoryListing.packs(storage).map {
      "\(RepositoryLayout.tested.pack($0).directory)"
    }
    #expect(directories.count == 6)
    #expect(
      try beginning(repository, storage) == before
        + indexes.flatMap { id in
          ["status", "load"].map { "\($0) \(RepositoryLayout.tested.index(id))" }
        } + ["list packs"]
        + Set(directories).sorted().map { "objects \($0)" } + ["list snapshots"])
  }

  /// Returns the calls at the start of a writer.
  private func beginning(
    _ repository: Repository, _ storage: WatchedStorage
  ) throws -> [String] {
    storage.state.withLock { $0.events = [] }
    let session = try repository.beginWriting()
    defer { session.abandon() }
    return storage.state.withLock(\.events)
  }

  /// Each storage call of a second backup fails in turn: an error is reported, and the repository
  /// can be opened, has the first snapshot and its content, and accepts the next backup. `make
  /// test` tests a sample of the calls, here and below.
  @Test(arguments: [false, true]) func backupSurvivesEveryFailedStorageCall(failsRepeatedly: Bool)
    throws
  {
    let counting = WatchedStorage(MemoryStorage())
    let counted = try Repository.create(in: counting, program: "test")
    try counted.back(up: [("a", [1, 2])], sequence: 1)
    counting.fail(at: nil)
    try counted.back(up: files, sequence: 2)
    let count = counting.calls
    var failures = 0
    for number in Sampling.steps(3, upTo: count + 1, "storage") {
      if try isFailure(number, failsRepeatedly) { failures += 1 }
    }
    // Only calls after the snapshot was stored may fail without an error: those that merge the
    // index and remove the lease.
    #expect(failures >= 25 / Sampling.stride(3))
  }

  private func isFailure(_ number: Int, _ failsRepeatedly: Bool) throws -> Bool {
    let memory = MemoryStorage()
    let storage = WatchedStorage(memory)
    let repository = try Repository.create(in: storage, program: "test")
    let first = try repository.back(up: [("a", [1, 2])], sequence: 1)
    storage.fail(at: number, failsRepeatedly: failsRepeatedly)
    let error = storeError { try repository.back(up: files, sequence: 2) }
    let again = try Repository.open(memory)
    let listing = try again.snapshots()
    #expect(listing.damaged.isEmpty)
    #expect(listing.snapshots.first == first)
    #expect(listing.snapshots.count == (error == nil ? 2 : 1))
    let reader = try again.beginReading()
    for snapshot in listing.snapshots {
      #expect(try reader.bytes(at: "a", in: snapshot) != nil)
    }
    let third = try again.back(up: files, sequence: 3)
    #expect(try again.beginReading().bytes(at: "b", in: third) == files[1].1)
    return error != nil
  }
}

/// Every system call of a backup fails in turn.
struct SystemFaultTests {
  private func check(
    _ repository: Repository, _ path: String, first: StoredSnapshot, _ error: StoreError?
  ) throws {
    let again = try Repository.open(LocalStorage(path: ByteString(path)))
    let listing = try again.snapshots()
    #expect(listing.damaged.isEmpty)
    #expect(listing.snapshots.first == first)
    let reader = try again.beginReading()
    for snapshot in listing.snapshots {
      #expect(try reader.bytes(at: "a", in: snapshot) == [1, 2])
    }
  }

  @Test(arguments: [false, true]) func backupSurvivesEveryFailedSystemCall(failsRepeatedly: Bool)
    throws
  {
    let directory = TemporaryDirectory()
    let path = directory("repo")
    let storage = try LocalStorage.create(path: ByteString(path))
    let repository = try Repository.create(in: storage, program: "test")
    let first = try repository.back(up: [("a", [1, 2])], sequence: 1)
    let counting = Faults.Plan(at: .max, number: 28)
    _ = try Faults.inject(counting) {
      try repository.back(up: [("a", [1, 2]), ("b", [3])], sequence: 2)
    }
    var failures = 0
    for number in Sampling.steps(4, upTo: counting.count + 1, "system calls") {
      let plan = Faults.Plan(at: number, number: 28, failsRepeatedly: failsRepeatedly)
      let files = [("a", [1, 2]), ("b", [UInt8]("\(number)".utf8))] as [(String, [UInt8])]
      let error = Faults.inject(plan) {
        storeError { try repository.back(up: files, sequence: UInt64(number + 2)) }
      }
      if error != nil { failures += 1 }
      try check(repository, path, first: first, error)
    }
    #expect(failures > 60 / Sampling.stride(4))
  }

  /// All calls from the n-th on fail, for each n: either no snapshot of the failed run is listed,
  /// or the error names it and states that it was written.
  @Test func failedRunNamesItsListedSnapshot() throws {
    var (last, named) = (0, 0)
    var isDone = false
    // Few calls follow the rename of the snapshot, so a sample could miss them.
    for number in 1..<500 where !isDone {
      last = number
      let directory = TemporaryDirectory()
      let storage = try LocalStorage.create(path: ByteString(directory("repo")))
      let repository = try Repository.create(in: storage, program: "test")
      let plan = Faults.Plan(at: number, number: 5, failsRepeatedly: true)
      let error = Faults.inject(plan) {
        storeError { try repository.back(up: [("a", [1, 2])], sequence: 1) }
      }
      isDone = !plan.hasFired
      let listed = try RepositoryListing.snapshots(storage)
      guard let error else { continue }
      let words = "\(error.description)"
      let isNamed = words.contains("'snapshot ") && words.contains("it was written and is listed")
      #expect(isNamed == !listed.isEmpty, "call \(number): \(words)")
      if isNamed { named += 1 }
      for id in listed { #expect(words.contains("'snapshot \(id.hex.prefix(8))'"), "\(words)") }
    }
    #expect(isDone && named > 0, "\(last) calls, \(named) of them after the name")
  }
}
