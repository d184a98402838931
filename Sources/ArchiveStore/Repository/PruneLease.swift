internal import SystemIO

/// The right to remove objects that others may be reading: `leases/prune`, which one program at a
/// time has beside its own lease (docs/repository-format.md, "Removing objects").
///
/// For one thread. Whoever takes it gives it back by `release()`.
struct PruneLease {
  private let lease: Lease
  private let storage: any Storage

  static let path = RepositoryLayout.leases.appending("prune")
  private static let alive = path.appending("alive")

  /// An empty file that says whose the directory is.
  private var owner: ObjectPath { Self.path.appending(Self.owner(of: lease)) }
  private static func owner(of lease: Lease) -> ByteString {
    ByteString("of-\(lease.path.name)")
  }

  /// Takes it for who has a lease; nothing when another program has it. One whose holder gave no
  /// sign of life for an hour of the storage's clock is taken away from it.
  init?(_ lease: Lease) throws(StoreError) {
    self.lease = lease
    storage = lease.storage
    if try !Self.make(storage) {
      guard try Self.takeAway(for: lease), try Self.make(storage) else { return nil }
    }
    do throws(StoreError) {
      try storage.touch(Self.alive)
      try storage.touch(owner)
    } catch {
      Self.remove(Self.path, storage)
      throw error
    }
  }

  private static func make(_ storage: any Storage) throws(StoreError) -> Bool {
    do {
      try storage.makeDirectories([path.name], in: RepositoryLayout.leases)
      return true
    } catch {
      guard error.code == .notEmpty else { throw error }
      return false
    }
  }

  /// Takes the directory away from a holder that seems dead; false when it is alive, or another program
  /// was faster. The directory is renamed first, so that of two programs only one takes it, and looked
  /// at again, because what was renamed may be another's who took it in between.
  private static func takeAway(for lease: Lease) throws(StoreError) -> Bool {
    let storage = lease.storage
    try lease.touchAlive()
    guard let now = try storage.status(lease.path.appending("alive"))?.modified else {
      return false
    }
    guard try isStill(path, at: now, storage) else { return false }
    let aside = RepositoryLayout.leases.appending(ByteString(Host.randomHex(bytes: 16)))
    do {
      try storage.rename(path, to: aside)
    } catch {
      guard error.code == .missing else { throw error }
      return false
    }
    let wasStill = try isStill(aside, at: now, storage)
    remove(aside, storage)
    return wasStill
  }

  /// Whether a holder gave no sign of life for an hour. One that has left no sign at all, because it
  /// ended before it could, gets an hour from now.
  private static func isStill(
    _ directory: ObjectPath, at now: Timestamp, _ storage: any Storage
  ) throws(StoreError) -> Bool {
    let alive = directory.appending("alive")
    guard let last = try storage.status(alive)?.modified else {
      try? storage.touch(alive)
      return false
    }
    return now.since(last) > Lease.patience
  }

  /// Tells that work goes on, if the last time is a minute ago, and whether it may as far as is known.
  /// Cheap: to be called often.
  func keepAlive() throws(StoreError) -> Bool { try lease.touchIfDue() ? try isHeld() : true }

  /// Tells that work goes on, and whether it may: the directory may have been taken away.
  func isHeld() throws(StoreError) -> Bool {
    try lease.keepAlive()
    guard try storage.status(owner) != nil else { return false }
    try storage.touch(Self.alive)
    return true
  }

  /// Gives it back. What cannot be removed is taken away by another program, an hour later.
  func release() {
    let isOwn = try? storage.status(owner) != nil
    if isOwn == true { Self.remove(Self.path, storage) }
  }

  /// Who looks for the right gives a directory without `alive` one (`isStill`), so that it may not be empty
  /// any more when it is to go: then only this is removed again, for what else there may be by now is
  /// another's.
  private static func remove(_ directory: ObjectPath, _ storage: any Storage) {
    for name in (try? storage.list(directory)) ?? [] {
      try? storage.remove(directory.appending(name))
    }
    for _ in 1...attempts {
      if (try? storage.remove(directory)) != nil { return }
      if (try? storage.remove(directory.appending("alive"))) == nil { return }
    }
  }

  /// More often than programs look at one moment, and not for ever where a store is out of order.
  private static let attempts = 16
}
