internal import SystemIO

/// The folder of a program that is changing a repository: its unfinished objects lie in it, and it
/// tells whoever prunes that somebody is at work (docs/repository-format.md, "Leases").
///
/// Not for two threads at once. It is released when it goes out of use.
final class Lease {
  let storage: any Storage
  let path: ObjectPath
  private var lastTouch: Double
  private var isHeld = true

  /// `alive` is touched each minute; prune takes away what was still for an hour.
  static let touchInterval = 60.0

  /// Takes a lease.
  init(_ storage: any Storage) throws(StoreError) {
    let name = ByteString(Host.randomHex(bytes: 16))
    self.storage = storage
    path = RepositoryLayout.leases.appending(name)
    lastTouch = Host.monotonicSeconds()
    try storage.makeFolders([name], in: RepositoryLayout.leases)
    try touchAlive()
  }

  deinit { release() }

  /// Tells that work goes on, if the last time is a minute ago. Cheap: to be called often.
  func keepAlive() throws(StoreError) {
    guard Host.monotonicSeconds() - lastTouch >= Self.touchInterval else { return }
    try touchAlive()
  }

  private func touchAlive() throws(StoreError) {
    try explained { () throws(StoreError) in try storage.touch(path.appending("alive")) }
    lastTouch = Host.monotonicSeconds()
  }

  /// Notes that this writer has seen a condemned object, and so relies on none of its packs.
  func noteSeen(_ condemned: String) throws(StoreError) {
    try explained { () throws(StoreError) in
      try storage.touch(path.appending(ByteString("seen-" + condemned)))
    }
  }

  /// Runs a call that needs the lease; where the lease is gone, the error says that.
  func explained<Result>(
    _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    do {
      return try body()
    } catch {
      guard error.code == .missing, isHeld, try storage.status(path) == nil else { throw error }
      isHeld = false
      throw StoreError(
        .leaseLost, "finish the work in", storage.place,
        "its lease was taken away because it seemed dead for an hour",
        hint: "run the command again: what is stored already is used", cause: error.cause)
    }
  }

  /// Removes the folder with all that is unfinished in it. What cannot be removed is left to prune.
  func release() {
    guard isHeld else { return }
    isHeld = false
    for name in (try? storage.list(path)) ?? [] { try? storage.remove(path.appending(name)) }
    try? storage.remove(path)
  }
}
