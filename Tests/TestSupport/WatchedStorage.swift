package import ArchiveStore
import Codecs
package import Synchronization
package import SystemIO

/// A storage that records each operation, and makes operations fail when a test requires it.
///
/// Operations are recorded and counted before they run, including those of object writers;
/// discarding an object does not count, because it cannot fail.
package final class WatchedStorage: Storage {
  /// The state that a test reads and sets.
  package struct State: Sendable {
    /// The calls so far, as text: "load index/ab…", "append", "commit packs/…".
    package var events: [String] = []
    /// The number of calls since this was last set to 0.
    package var calls = 0
    /// The number of the call that fails, from 1, or nil if none does.
    package var failing: Int?
    /// Whether all later calls fail as well.
    package var failsRepeatedly = false
    /// The reported space of the volume, or nil for the real one.
    package var space: VolumeSpace?
    /// Returns the error with which an operation fails, or nil if it does not fail. Called with its
    /// text, before the operation.
    package var failure: (@Sendable (String) -> StoreError?)?
    /// Called before each operation with its text.
    package var action: (@Sendable (String) -> Void)?
  }

  /// The calls so far, and which ones fail.
  package let state = Mutex(State())
  private let inner: any Storage
  private let passes: @Sendable (String) -> Bool
  private let fails: @Sendable () -> Bool

  /// Watches a storage; a call fails if the state or `fails` says so. Calls for which `passing`
  /// returns true are neither recorded nor counted, and no plan of `Faults` affects them.
  package init(
    _ inner: any Storage, passing: @escaping @Sendable (String) -> Bool = { _ in false },
    fails: @escaping @Sendable () -> Bool = { false }
  ) {
    self.inner = inner
    passes = passing
    self.fails = fails
  }

  /// Whether a call is one of the 255 listings of pack directories after the first: they are all
  /// made in the same way, so a test in which each call fails can skip them.
  @Sendable package static func isFurtherPackDirectory(_ event: String) -> Bool {
    event.hasPrefix("list packs/") && event != "list packs/00"
  }

  /// The number of calls since `fail(at:failsRepeatedly:)` was last called.
  package var calls: Int { state.withLock(\.calls) }

  /// Whether a call has failed since then.
  package var hasFailed: Bool { state.withLock { state in state.calls >= state.failing ?? .max } }

  /// Makes the call `number` fail, counted from now, and with `failsRepeatedly` all later ones; nil
  /// makes none fail.
  package func fail(at number: Int?, failsRepeatedly: Bool = false) {
    state.withLock { ($0.calls, $0.failing, $0.failsRepeatedly) = (0, number, failsRepeatedly) }
  }

  fileprivate func call<Result>(
    _ event: String, _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    if passes(event) { return try Faults.inject(Faults.Plan(at: .max, number: 0), body) }
    state.withLock(\.action)?(event)
    let isDue = state.withLock { state in
      state.calls += 1
      state.events.append(event)
      guard let failing = state.failing else { return false }
      return state.calls == failing || (state.failsRepeatedly && state.calls > failing)
    }
    if isDue || fails() {
      throw StoreError(.system, "do", subject: event, reason: "the test says so")
    }
    if let error = state.withLock(\.failure)?(event) { throw error }
    return try body()
  }

  package var location: String { inner.location }
  package var canRename: Bool { inner.canRename }
  package var canCreateExclusively: Bool { inner.canCreateExclusively }

  package func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    try call("load \(path)") { () throws(StoreError) in try inner.load(path, limit: limit) }
  }

  package func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    try call("range \(path)") { () throws(StoreError) in
      try inner.load(path, offset: offset, count: count, into: &buffer)
    }
  }

  package func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    try call("list \(directory)") { () throws(StoreError) in try inner.list(directory) }
  }

  package func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    try call("objects \(directory)") { () throws(StoreError) in
      try inner.forEachObject(below: directory, body)
    }
  }

  package func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    try call("status \(path)") { () throws(StoreError) in try inner.status(path) }
  }

  package func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    try call("start") { () throws(StoreError) in
      WatchedWriter(self, try inner.startObject(in: directory))
    }
  }

  package func makeDirectories(_ names: [ByteString], in directory: ObjectPath) throws(StoreError) {
    try call("directories \(directory)") { () throws(StoreError) in
      try inner.makeDirectories(names, in: directory)
    }
  }

  package func touch(_ path: ObjectPath) throws(StoreError) {
    try call("touch \(path.name)") { () throws(StoreError) in try inner.touch(path) }
  }

  package func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try call("rename \(target)") { () throws(StoreError) in try inner.rename(path, to: target) }
  }

  package func create(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) -> Bool {
    try call("create \(path)") { () throws(StoreError) in try inner.create(bytes, as: path) }
  }

  package func remove(_ path: ObjectPath) throws(StoreError) {
    try call("remove \(path.name)") { () throws(StoreError) in try inner.remove(path) }
  }

  package func remove(_ paths: [ObjectPath]) throws(StoreError) {
    try call("remove \(paths.count) objects") { () throws(StoreError) in try inner.remove(paths) }
  }

  /// A storage on another host has no such call, so it is neither recorded nor counted.
  package func directoryIdentity() throws(StoreError) -> FileIdentity? {
    try inner.directoryIdentity()
  }

  package func space() throws(StoreError) -> VolumeSpace? {
    try call("space") { () throws(StoreError) in
      if let space = state.withLock(\.space) { return space }
      return try inner.space()
    }
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
    try storage.call("append") { () throws(StoreError) in try inner.append(bytes) }
  }

  func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError) {
    try storage.call("commit \(path)") { () throws(StoreError) in
      try inner.commit(as: path, digest: digest, isReadSoon: isReadSoon)
    }
  }

  func discard() { inner.discard() }
}
