internal import Codecs
internal import Synchronization
internal import SystemIO

/// The directory of a program that is changing a repository: its unfinished objects lie in it, and it
/// tells whoever prunes that somebody is at work (docs/repository-format.md, "Leases").
///
/// For any thread. It is released when it goes out of use.
final class Lease: Sendable {
  let storage: any Storage
  let path: ObjectPath
  private let state: Mutex<State>
  private let clock: @Sendable () -> Double

  private struct State {
    var lastTouch: Double
    var isHeld = true
    /// Whether a thread found it taken away.
    var isLost = false
  }

  /// `alive` is touched each minute; prune takes away what was still for an hour.
  static let touchInterval = 60.0
  static let patience = 3600.0

  /// Takes a lease; the directory of leases, which copies leave out as it is empty, is made where it is
  /// missing.
  ///
  /// - Parameter clock: seconds since any moment, which never go back.
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
  }

  deinit { release() }

  /// Tells that work goes on, if the last time is a minute ago. Cheap: to be called often.
  func keepAlive() throws(StoreError) { _ = try touchIfDue() }

  /// The same; whether the last time was a minute ago.
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

  /// Tells that work goes on, now.
  func touchAlive() throws(StoreError) {
    try explained { () throws(StoreError) in try storage.touch(path.appending("alive")) }
  }

  /// Notes that this writer has seen a condemned object, and so relies on none of its packs.
  func noteSeen(_ condemned: String) throws(StoreError) {
    try explained { () throws(StoreError) in
      try storage.touch(path.appending(ByteString("seen-" + condemned)))
    }
  }

  /// Whether a name in a lease's directory is of a sign to others, and no unfinished object's.
  static func isSign(_ name: ByteString) -> Bool {
    name == "alive" || name == "reader" || name.bytes.starts(with: "seen-".utf8)
      || name.bytes.starts(with: "of-".utf8)
  }

  /// Saves an object by way of the lease's directory.
  func save(_ bytes: [UInt8], as object: ObjectPath) throws(StoreError) {
    try explained { () throws(StoreError) in try storage.save(bytes, as: object, by: path) }
  }

  /// Removes an index object by way of the lease, so that nothing is removed once that was taken away:
  /// what has the same name by then may be another program's. One that is gone already is no matter.
  func remove(index id: Digest) throws(StoreError) {
    let aside = path.appending(ByteString("replaced-\(id.hex)"))
    do {
      try explained { () throws(StoreError) in
        try storage.rename(RepositoryLayout.index(id), to: aside)
      }
    } catch {
      guard error.code == .missing else { throw error }
      return
    }
    try storage.remove(aside)
  }

  /// Runs a call that needs the lease; where the lease is gone, the error says that.
  func explained<Result>(
    _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    do {
      return try body()
    } catch {
      guard error.code == .missing, try isTakenAway() else { throw error }
      throw StoreError(
        .leaseLost, "finish the work in", storage.place,
        "its lease was taken away because it seemed dead for an hour",
        hint: "run the command again: what is stored already is used", cause: error.cause)
    }
  }

  /// Whether somebody has taken the lease away: known to all threads once one has seen it.
  private func isTakenAway() throws(StoreError) -> Bool {
    let (isHeld, isLost) = state.withLock { ($0.isHeld, $0.isLost) }
    if isLost { return true }
    guard isHeld, try storage.status(path) == nil else { return false }
    state.withLock { ($0.isHeld, $0.isLost) = (false, true) }
    return true
  }

  /// Removes the directory with all that is unfinished in it. What cannot be removed is left to prune.
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
