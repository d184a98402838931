internal import Codecs
internal import Synchronization
internal import SystemIO

/// The directory of a program that is changing a repository. It holds the program's unfinished
/// objects, and shows a prune that the program is active (docs/repository-format.md, "Leases").
///
/// Safe to use from any thread. It is released on deinitialization.
final class Lease: Sendable {
  let storage: RepositoryStorage
  let path: ObjectPath
  private let state: Mutex<State>
  private let clock: @Sendable () -> Double

  private struct State {
    var lastTouch: Double
    var isHeld = true
    /// Whether a thread found that another program removed the lease.
    var isLost = false
    /// Whether the directory stays after the release.
    var isLeft = false
  }

  /// The interval in seconds at which `alive` is touched, and the age in seconds at which prune
  /// removes a lease.
  static let touchInterval = 60.0
  static let patience = 3600.0

  /// Takes a lease. Creates the directory of leases if it is missing, because copy tools omit it
  /// when it is empty.
  ///
  /// - Parameter clock: the seconds of a monotonic clock.
  init(
    _ storage: RepositoryStorage, clock: @escaping @Sendable () -> Double = Host.monotonicSeconds
  ) throws(StoreError) {
    self.clock = clock
    let name = ByteString(Host.randomHex(bytes: 16))
    self.storage = storage
    path = RepositoryLayout.leases.appending(name)
    state = Mutex(State(lastTouch: clock()))
    do throws(StoreError) {
      try storage.makeDirectories([name], in: RepositoryLayout.leases)
    } catch {
      guard error.code == .missing else { throw error }
      try storage.makeMissing([RepositoryLayout.leases.name], in: .root)
      try storage.makeDirectories([name], in: RepositoryLayout.leases)
    }
    try touchAlive()
    try explained { () throws(StoreError) in
      try storage.touch(path.appending(LeaseStatus.Owner.sign))
    }
  }

  deinit { release() }

  /// Updates the heartbeat if it is a minute old. Cheap enough to call often.
  func keepAlive() throws(StoreError) { _ = try touchIfDue() }

  /// Updates the heartbeat if it is a minute old. Returns whether it was.
  func touchIfDue() throws(StoreError) -> Bool {
    let now = clock()
    let isDue = state.withLock { state in
      guard now - state.lastTouch >= Self.touchInterval else { return false }
      state.lastTouch = now
      return true
    }
    if isDue { try touchAlive() }
    return isDue
  }

  /// Updates the heartbeat now.
  func touchAlive() throws(StoreError) {
    try explained { () throws(StoreError) in try storage.touch(path.appending("alive")) }
  }

  /// Records that this writer has seen a condemned object and relies on none of its packs.
  func recordSeen(_ condemned: Digest) throws(StoreError) {
    try explained { () throws(StoreError) in
      try storage.touch(path.appending(ByteString("seen-" + condemned.hex)))
    }
  }

  /// The empty file in the lease of a program that stores nothing.
  static let readerSign: ByteString = "reader"

  /// Whether a name in a lease's directory is a signal to other programs, not an unfinished object.
  static func isSign(_ name: ByteString) -> Bool {
    name == "alive" || name == readerSign || name.bytes.starts(with: "seen-".utf8)
      || name.bytes.starts(with: "of-".utf8) || name.bytes.starts(with: "by-".utf8)
  }

  /// Saves an object through the lease's directory.
  func save(_ bytes: [UInt8], as object: ObjectPath) throws(StoreError) {
    try explained { () throws(StoreError) in try storage.save(bytes, as: object, by: path) }
  }

  /// Removes an index object through the lease.
  func remove(index id: Digest) throws(StoreError) { try remove(storage.layout.index(id)) }

  /// Removes an object through the lease. An object that is already gone is ignored.
  func remove(_ object: ObjectPath) throws(StoreError) {
    let aside = ByteString("removed-\(object.name)")
    guard let path = try claim(object, as: aside) else { return }
    try explained { () throws(StoreError) in try storage.remove(path) }
  }

  /// Moves an object into the lease's directory, from where it is removed at the latest with the
  /// lease. Returns its new path, or nil if the object is already gone. If the lease was removed,
  /// the object stays, because another program may own one of the same name by then.
  func claim(_ object: ObjectPath, as name: ByteString) throws(StoreError) -> ObjectPath? {
    let aside = path.appending(name)
    do {
      try explained { () throws(StoreError) in try storage.rename(object, to: aside) }
    } catch {
      guard error.code == .missing else { throw error }
      return nil
    }
    return aside
  }

  /// Makes a call that needs the lease. If the lease is gone, the error says so.
  func explained<Result: ~Copyable>(
    _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    do {
      return try body()
    } catch {
      guard error.code == .missing, try isRemoved() else { throw error }
      throw StoreError(
        .leaseLost, "finish the work in", subject: storage.location,
        reason: "its lease expired: no heartbeat was written for an hour",
        hint: "run the command again: data stored so far is reused", cause: error.cause)
    }
  }

  /// Whether another program removed the lease. The result is shared by all threads.
  private func isRemoved() throws(StoreError) -> Bool {
    let (isHeld, isLost) = state.withLock { ($0.isHeld, $0.isLost) }
    if isLost { return true }
    guard isHeld, try storage.status(path) == nil else { return false }
    state.withLock { ($0.isHeld, $0.isLost) = (false, true) }
    return true
  }

  /// Removes the directory with all unfinished objects. Anything that cannot be removed is left to
  /// prune.
  func release() {
    let isRemoved = state.withLock { state in
      defer { state.isHeld = false }
      return state.isHeld && !state.isLeft
    }
    if isRemoved { Self.remove(path, storage) }
  }

  /// Lets the directory stay after the release, so that no prune removes packs until it expires.
  func retain(_ isLeft: Bool = true) { state.withLock { $0.isLeft = isLeft } }
}

// MARK: - Directories of other programs

extension Lease {
  /// Removes the directory of a lease, or that of the right to remove objects, as far as possible.
  ///
  /// A program that looks for dead leases creates `alive` in a directory without one
  /// (`isExpired`), so the directory may not be empty when it is removed. Then only `alive` is
  /// removed again, because any other file belongs to another program.
  static func remove(_ directory: ObjectPath, _ storage: RepositoryStorage) {
    for name in (try? storage.list(directory)) ?? [] {
      try? storage.remove(directory.appending(name))
    }
    for _ in 1...attempts {
      if (try? storage.remove(directory)) != nil { return }
      if (try? storage.remove(directory.appending("alive"))) == nil { return }
    }
  }

  /// The number of attempts: more than the programs that look at the same time, but bounded if the
  /// storage is faulty.
  private static let attempts = 16

  /// Whether a directory had no heartbeat for an hour before a time of the storage's clock. If there
  /// is no heartbeat, because the program ended before its first one, or if it is more than an hour
  /// later, because the clock was set back, the hour starts now.
  static func isExpired(
    _ directory: ObjectPath, at now: Timestamp, _ storage: RepositoryStorage
  ) throws(StoreError) -> Bool {
    let alive = directory.appending("alive")
    guard let last = try storage.status(alive)?.modified, last.since(now) <= patience else {
      try? storage.touch(alive)
      return false
    }
    return now.since(last) > patience
  }

  /// Removes leases of other programs without a heartbeat for an hour of the storage's clock. A
  /// lease is renamed first: its program can then commit and remove nothing more, even if it
  /// continues at this moment.
  func removeExpiredOthers() throws(StoreError) {
    guard let now = try now() else { return }
    for other in try LeaseStatus.all(storage) where other.name != path.name {
      let path = RepositoryLayout.leases.appending(other.name)
      guard try Self.isExpired(path, at: now, storage) else { continue }
      let aside = RepositoryLayout.leases.appending(ByteString(Host.randomHex(bytes: 16)))
      do {
        try storage.rename(path, to: aside)
      } catch {
        guard error.code == .missing else { throw error }
        continue
      }
      Self.remove(aside, storage)
    }
  }

  /// The current time by the storage's clock: that of a heartbeat that is written now. Returns nil
  /// if the lease was removed meanwhile.
  func now() throws(StoreError) -> Timestamp? {
    try touchAlive()
    return try storage.status(path.appending("alive"))?.modified
  }
}
