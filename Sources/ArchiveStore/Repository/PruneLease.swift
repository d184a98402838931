internal import SystemIO

/// The right to remove objects that others may be reading: `leases/prune`, which one program at a
/// time holds in addition to its own lease (docs/repository-format.md, "Removing objects").
///
/// Not thread-safe. The holder releases it with `release()`.
struct PruneLease {
  private let lease: Lease
  private let storage: any Storage

  static let path = RepositoryLayout.leases.appending("prune")
  private static let alive = path.appending("alive")

  /// The empty file that names the owner of the directory.
  private var owner: ObjectPath { Self.path.appending(Self.owner(of: lease.path.name)) }

  /// Returns the name of the file that names a lease as the owner.
  static func owner(of lease: ByteString) -> ByteString { ByteString("of-\(lease)") }

  /// Takes the right for the holder of a lease. Returns nil if another program has it. A right
  /// whose holder wrote no heartbeat for an hour of the storage's clock is taken over.
  init?(_ lease: Lease) throws(StoreError) {
    self.lease = lease
    storage = lease.storage
    if try !Self.make(storage) {
      guard try Self.removeStale(for: lease), try Self.make(storage) else { return nil }
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

  /// Removes the directory of a holder that seems dead. Returns false if it is alive, or if another
  /// program was faster. The directory is renamed first, so that only one of two programs takes it,
  /// and checked again, because another program may have taken the right in between.
  private static func removeStale(for lease: Lease) throws(StoreError) -> Bool {
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

  /// Whether a holder wrote no heartbeat for an hour. If there is no heartbeat file, because the
  /// holder ended before it wrote one, the hour starts now.
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

  /// Updates the heartbeat if it is a minute old. Returns whether the right is still held, as far
  /// as is known. Cheap enough to call often.
  func keepAlive() throws(StoreError) -> Bool { try lease.touchIfDue() ? try isHeld() : true }

  /// Updates the heartbeat. Returns whether the right is still held.
  func isHeld() throws(StoreError) -> Bool {
    try lease.keepAlive()
    guard try storage.status(owner) != nil else { return false }
    try storage.touch(Self.alive)
    return true
  }

  /// Returns the error for a right that another program took over.
  static func lost(_ place: String) -> StoreError {
    StoreError(
      .leaseLost, "finish the work in", subject: place,
      reason: "the lease to remove objects expired: no heartbeat was written for an hour",
      hint: "run the command again")
  }

  /// Returns the error for a right that another program holds.
  static func taken(_ action: String, _ place: String) -> StoreError {
    StoreError(
      .busy, action, subject: place,
      reason: "another program is removing objects from it",
      hint: "try again after it has finished; 'sandboxctl leases' lists the programs")
  }

  /// Releases the right. If the directory cannot be removed, another program takes it over an hour
  /// later.
  func release() {
    let isOwn = try? storage.status(owner) != nil
    if isOwn == true { Self.remove(Self.path, storage) }
  }

  /// Removes the directory. A program that looks for the right creates `alive` in a directory
  /// without one (`isStill`), so the directory may not be empty when it is removed. Then only
  /// `alive` is removed again, because any other file belongs to another program.
  private static func remove(_ directory: ObjectPath, _ storage: any Storage) {
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
}
