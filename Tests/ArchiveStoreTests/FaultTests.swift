import Codecs
import Foundation
import Synchronization
import SystemIO
import Testing

@testable import ArchiveStore

/// A storage that notes what becomes durable, and fails at the n-th call if told so.
final class WatchedStorage: Storage {
  struct State {
    var events: [String] = []
    var calls = 0
    var failing: Int?
    var staysBroken = false
    /// Is told of each call before it is made.
    var action: (@Sendable (String) -> Void)?
  }

  let inner: any Storage
  let state = Mutex(State())

  init(_ inner: any Storage) { self.inner = inner }

  var place: String { inner.place }
  var canRename: Bool { inner.canRename }

  func step(_ event: String) throws(StoreError) {
    state.withLock(\.action)?(event)
    let fails = state.withLock { state in
      state.calls += 1
      state.events.append(event)
      guard let failing = state.failing else { return false }
      return state.calls == failing || (state.staysBroken && state.calls > failing)
    }
    if fails { throw StoreError(.system, "do", event, "the test says so") }
  }

  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    try step("load \(path)")
    return try inner.load(path, limit: limit)
  }

  func load(_ path: ObjectPath, offset: UInt64, count: Int) throws(StoreError) -> [UInt8] {
    try step("range \(path)")
    return try inner.load(path, offset: offset, count: count)
  }

  func list(_ folder: ObjectPath) throws(StoreError) -> [ByteString] {
    try step("list \(folder)")
    return try inner.list(folder)
  }

  func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    try step("status \(path)")
    return try inner.status(path)
  }

  func startObject(in folder: ObjectPath) throws(StoreError) -> any ObjectWriter {
    try step("start")
    return WatchedWriter(self, try inner.startObject(in: folder))
  }

  func makeFolders(_ names: [ByteString], in folder: ObjectPath) throws(StoreError) {
    try step("folders \(folder)")
    try inner.makeFolders(names, in: folder)
  }

  func touch(_ path: ObjectPath) throws(StoreError) {
    try step("touch \(path.name)")
    try inner.touch(path)
  }

  func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try step("rename \(target)")
    try inner.rename(path, to: target)
  }

  func remove(_ path: ObjectPath) throws(StoreError) {
    try step("remove \(path.name)")
    try inner.remove(path)
  }
}

private final class WatchedWriter: ObjectWriter {
  private let storage: WatchedStorage
  private let inner: any ObjectWriter

  init(_ storage: WatchedStorage, _ inner: any ObjectWriter) {
    self.storage = storage
    self.inner = inner
  }

  func append(_ bytes: [UInt8]) throws(StoreError) {
    try storage.step("append")
    try inner.append(bytes)
  }

  func commit(as path: ObjectPath, digest: Digest) throws(StoreError) {
    try storage.step("commit \(path)")
    try inner.commit(as: path, digest: digest)
  }

  func discard() { inner.discard() }
}

@Suite struct DurabilityTests {
  private let files = [("a", [UInt8]("one".utf8)), ("b", [UInt8](repeating: 5, count: 600_000))]

  @Test func packsThenIndexThenSnapshot() throws {
    let storage = WatchedStorage(MemoryStorage())
    let repository = try Repository.create(in: storage, program: "test")
    storage.state.withLock { $0.events = [] }
    try repository.back(up: files)
    let folders = storage.state.withLock(\.events).filter { $0.hasPrefix("commit ") }
      .map { $0.dropFirst(7).prefix { $0 != "/" } }
    #expect(folders == ["packs", "packs", "index", "snapshots"])
  }

  /// A writer lists in the order that prune counts on, and only after its lease is there.
  @Test func theOrderOfListing() throws {
    let storage = WatchedStorage(MemoryStorage())
    let repository = try Repository.create(in: storage, program: "test")
    storage.state.withLock { $0.events = [] }
    let session = try repository.beginWriting()
    var events = storage.state.withLock(\.events)
    session.abandon()
    events.removeAll { $0.hasPrefix("list packs/") && $0 != "list packs/00" }
    #expect(
      events == [
        "folders leases", "touch alive", "list condemned", "list index", "list packs/00",
        "list snapshots",
      ])
  }

  /// A storage call of a second backup fails, one after another: an error, and the repository still
  /// opens, has the first snapshot and its content, and takes the next backup.
  @Test(arguments: [false, true]) func everyStorageCallFails(staysBroken: Bool) throws {
    let counting = WatchedStorage(MemoryStorage())
    let counted = try Repository.create(in: counting, program: "test")
    try counted.back(up: [("a", [1, 2])], sequence: 1)
    counting.state.withLock { $0.calls = 0 }
    try counted.back(up: files, sequence: 2)
    let count = counting.state.withLock(\.calls)
    #expect(count > 270)
    var failures = 0
    for number in 1...(count + 1) where number < 8 || number > count - 70 || number % 50 == 0 {
      if try isFailure(number, staysBroken) { failures += 1 }
    }
    // Only what comes after the snapshot may fail without an error: the index is merged, and the
    // lease removed.
    #expect(failures >= 35)
  }

  private func isFailure(_ number: Int, _ staysBroken: Bool) throws -> Bool {
    let memory = MemoryStorage()
    let storage = WatchedStorage(memory)
    let repository = try Repository.create(in: storage, program: "test")
    let first = try repository.back(up: [("a", [1, 2])], sequence: 1)
    storage.state.withLock { state in
      (state.calls, state.failing, state.staysBroken) = (0, number, staysBroken)
    }
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

/// Every call to the system fails in turn.
@Suite struct SystemFaultTests {
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

  /// The first calls, the last ones and some between: most of the middle lists the 256 folders.
  private func numbers(upTo count: Int) -> [Int] {
    Array(1...40) + stride(from: 41, to: count - 60, by: 197) + Array((count - 60)...(count + 1))
  }

  @Test(arguments: [false, true]) func everySystemCallFails(staysBroken: Bool) throws {
    let folder = TemporaryFolder()
    let path = folder("repo")
    let storage = try LocalStorage.create(path: ByteString(path))
    let repository = try Repository.create(in: storage, program: "test")
    let first = try repository.back(up: [("a", [1, 2])], sequence: 1)
    let counting = Faults.Plan(at: .max, number: 28)
    _ = try Faults.inject(counting) {
      try repository.back(up: [("a", [1, 2]), ("b", [3])], sequence: 2)
    }
    var failures = 0
    for number in numbers(upTo: counting.count) {
      let plan = Faults.Plan(at: number, number: 28, staysBroken: staysBroken)
      let files = [("a", [1, 2]), ("b", [UInt8]("\(number)".utf8))] as [(String, [UInt8])]
      let error = Faults.inject(plan) {
        storeError { try repository.back(up: files, sequence: UInt64(number + 2)) }
      }
      if error != nil { failures += 1 }
      try check(repository, path, first: first, error)
    }
    #expect(counting.count > 300)
    #expect(failures > 60)
  }
}
