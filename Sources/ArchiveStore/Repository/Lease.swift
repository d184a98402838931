internal import Codecs
internal import Synchronization
internal import SystemIO

/// The directory of a program that is changing a repository. It holds the program's unfinished
/// objects, and shows a prune that the program is active (docs/repository-format.md, "Leases").
///
/// Safe to use from any thread. It is released on deinitialization.
final class Lease: Sendable {
  let storage: any Storage
  let path: ObjectPath
  private let state: Mutex<State>
  private let clock: @Sendable () -> Double

  private struct State {
    var lastTouch: Double
    var isHeld = true
    /// Whether a thread found that another program removed the lease.
    var isLost = false
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
    _ storage: any Storage, clock: @escaping @Sendable () -> Double = Host.monotonicSeconds
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
    try storage.touch(path.appending(LeaseStatus.Owner.sign))
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
  func noteSeen(_ condemned: String) throws(StoreError) {
    try explained { () throws(StoreError) in
      try storage.touch(path.appending(ByteString("seen-" + condemned)))
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
  func remove(index id: Digest) throws(StoreError) { try remove(RepositoryLayout.index(id)) }

  /// Removes an object through the lease. An object that is already gone is ignored.
  func remove(_ object: ObjectPath) throws(StoreError) {
    let aside = ByteString("removed-\(object.name)")
    if let path = try take(object, as: aside) { try storage.remove(path) }
  }

  /// Moves an object into the lease's directory, from where it is removed at the latest with the
  /// lease. Returns its new path, or nil if the object is already gone. If the lease was removed,
  /// the object stays, because another program may own one of the same name by then.
  func take(_ object: ObjectPath, as name: ByteString) throws(StoreError) -> ObjectPath? {
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
  func explained<Result>(
    _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    do {
      return try body()
    } catch {
      guard error.code == .missing, try isTakenAway() else { throw error }
      throw StoreError(
        .leaseLost, "finish the work in", subject: storage.place,
        reason: "its lease expired: no heartbeat was written for an hour",
        hint: "run the command again: data stored so far is reused", cause: error.cause)
    }
  }

  /// Whether another program removed the lease. The result is shared by all threads.
  private func isTakenAway() throws(StoreError) -> Bool {
    let (isHeld, isLost) = state.withLock { ($0.isHeld, $0.isLost) }
    if isLost { return true }
    guard isHeld, try storage.status(path) == nil else { return false }
    state.withLock { ($0.isHeld, $0.isLost) = (false, true) }
    return true
  }

  /// Removes the directory with all unfinished objects. Anything that cannot be removed is left to
  /// prune.
  func release() {
    let wasHeld = state.withLock { state in
      defer { state.isHeld = false }
      return state.isHeld
    }
    guard wasHeld else { return }
    for name in (try? storage.list(path)) ?? [] { try? storage.remove(path.appending(name)) }
    try? storage.remove(path)
  }
}
