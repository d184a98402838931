internal import Synchronization
internal import SystemIO

/// The right to remove objects that others may be reading: `leases/prune`, which one program at a
/// time holds in addition to its own lease (docs/repository-format.md, "Removing objects").
///
/// Not thread-safe. The holder releases it with `release()`.
struct PruneLease {
  private let lease: Lease
  private let storage: RepositoryStorage

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
      guard try isAlone() else { return nil }
    } catch {
      // Another program took the directory away, after this one slept for an hour.
      if error.code == .missing { return nil }
      Lease.remove(Self.path, storage)
      throw error
    }
  }

  /// Whether no other program has created the directory again and put its file into it, after this
  /// one slept for an hour. If so, this one's file is removed.
  private func isAlone() throws(StoreError) -> Bool {
    let owners = try storage.list(Self.path).filter { $0.bytes.starts(with: "of-".utf8) }
    if owners == [owner.name] { return true }
    try? storage.remove(owner)
    return false
  }

  private static func make(_ storage: RepositoryStorage) throws(StoreError) -> Bool {
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
    guard let now = try lease.now(), try Lease.isExpired(path, at: now, storage) else {
      return false
    }
    let aside = RepositoryLayout.leases.appending(ByteString(Host.randomHex(bytes: 16)))
    do {
      try storage.rename(path, to: aside)
    } catch {
      guard error.code == .missing else { throw error }
      return false
    }
    let wasExpired = try Lease.isExpired(aside, at: now, storage)
    Lease.remove(aside, storage)
    return wasExpired
  }

  /// Updates the heartbeat if it is a minute old. Returns whether the right is still held, as far
  /// as is known. Cheap enough to call often.
  func keepAlive() throws(StoreError) -> Bool { try lease.touchIfDue() ? try isHeld() : true }

  /// Updates the heartbeat. Returns whether the right is still held.
  func isHeld() throws(StoreError) -> Bool {
    try lease.keepAlive()
    guard try storage.status(owner) != nil else { return false }
    do {
      try storage.touch(Self.alive)
      return true
    } catch {
      // Another program took the directory away at this moment.
      guard error.code == .missing else { throw error }
      return false
    }
  }

  /// Checks that the right is still held, before something is removed or replaced.
  ///
  /// - Throws: `leaseLost` if not, and failures of the storage.
  func requireHeld() throws(StoreError) {
    guard try isHeld() else { throw Self.lost(storage.location) }
  }

  /// Returns the error for a right that another program took over.
  static func lost(_ location: String) -> StoreError {
    StoreError(
      .leaseLost, "finish the work in", subject: location,
      reason: "the lease to remove objects expired: no heartbeat was written for an hour",
      hint: "run the command again")
  }

  /// Returns the error for a right that another program holds.
  static func locked(_ action: String, _ location: String) -> StoreError {
    StoreError(
      .busy, action, subject: location,
      reason: "another program is removing objects from it",
      hint: "try again after it has finished; 'sandboxctl leases' lists the programs")
  }

  /// Releases the right. If the directory cannot be removed, another program takes it over an hour
  /// later.
  func release() {
    let isOwn = try? storage.status(owner) != nil
    if isOwn == true { Lease.remove(Self.path, storage) }
  }
}

extension PruneLease {
  /// Keeps the right alive during long work on any thread.
  final class Heartbeat: Sendable {
    private let right: PruneLease
    private let last = Mutex(Host.monotonicSeconds())

    init(_ right: PruneLease) { self.right = right }

    /// Updates the heartbeat if it is half a minute old. Whether the right is still held is checked
    /// before each removal.
    func beat() {
      let now = Host.monotonicSeconds()
      let isDue = last.withLock { last in
        guard now - last >= Lease.touchInterval / 2 else { return false }
        last = now
        return true
      }
      if isDue { _ = try? right.isHeld() }
    }
  }
}
