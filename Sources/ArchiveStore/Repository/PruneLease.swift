internal import Codecs
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

  /// The beginning of the name of a file that names a lease as the owner.
  static let ownerPrefix = "of-"

  /// Returns the name of the file that names a lease as the owner.
  static func owner(of lease: ByteString) -> ByteString { ByteString("\(ownerPrefix)\(lease)") }

  /// Returns the name of the lease that such a file names, or nil if it is not that of a lease.
  static func lease(of owner: ByteString) -> ByteString? {
    let name = owner.bytes.dropFirst(ownerPrefix.utf8.count)
    let digits = "0123456789abcdef".utf8
    guard name.count == 32, name.allSatisfy(digits.contains) else { return nil }
    return ByteString(Array(name))
  }

  /// Takes the right for the holder of a lease. Returns nil if another program has it. A right
  /// whose holder wrote no heartbeat for an hour of the storage's clock is taken over, and so is
  /// that of a process of this host that has ended (docs/repository-format.md, "Removing objects").
  init?(_ lease: Lease) throws(StoreError) {
    self.lease = lease
    storage = lease.storage
    guard try storage.leases.takeRight(lease) else { return nil }
  }

  /// Takes the right for the holder of a lease.
  ///
  /// - Parameter action: the words after "cannot", before the location of the repository.
  /// - Throws: `busy` if another program has the right; failures of the storage.
  init(_ lease: Lease, for action: String) throws(StoreError) {
    guard let right = try PruneLease(lease) else { throw Self.locked(action, lease.storage) }
    self = right
  }

  /// Updates the heartbeat if it is a minute old. Returns whether the right is still held, as far
  /// as is known. Cheap enough to call often.
  func keepAlive() throws(StoreError) -> Bool { try lease.touchIfDue() ? try isHeld() : true }

  /// Updates the heartbeat. Returns whether the right is still held.
  func isHeld() throws(StoreError) -> Bool {
    try lease.keepAlive()
    return try storage.leases.holdsRight(lease)
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

  /// Returns the error for a right that another program holds. It names the program, if it is still
  /// there and recorded its name.
  static func locked(_ action: String, _ storage: RepositoryStorage) -> StoreError {
    let holder = (try? LeaseStatus.all(storage))?.first(where: \.removesObjects)
    let hasEnded = holder?.presence == .ended
    let reason =
      hasEnded
      ? "a program that was removing objects from it, or changing its keys, has ended without "
        + "releasing its lease"
      : "another program is removing objects from it, or changing its keys"
    return StoreError(
      .busy, action, subject: storage.location, reason: reason + (holder?.words ?? ""),
      hint: hint(for: holder, canRename: storage.canRename))
  }

  private static func hint(for holder: LeaseStatus?, canRename: Bool) -> String {
    let wait = "try again after it has finished"
    let list = "'sandboxctl leases' lists the programs"
    guard let holder, let heartbeat = holder.heartbeat else {
      return "\(wait), or an hour later if it was killed; \(list)"
    }
    switch holder.presence {
    case .running: return "\(wait); \(list)"
    case .unknown:
      let end = heartbeat.wholeSecond(after: Lease.patience)
      return "\(wait); if it was killed, its lease ends at \(end.rfc3339) (\(list))"
    case .ended:
      // With rename it is taken over at once, unless its lease may not be removed.
      if canRename { return "run the command again, as the user of that program" }
      let end = heartbeat.wholeSecond(after: LeaseStatus.settlingTime)
      return "try again after \(end.rfc3339): until then a request of it may be on its way"
    }
  }

  /// Returns the error for a program that lost the right and may not have noticed it yet.
  static func sleeping(_ action: String, _ location: String) -> StoreError {
    StoreError(
      .busy, action, subject: location,
      reason: "a program that was removing objects from it has ended without cleaning up, or is "
        + "suspended",
      hint: "try again a day after it was started")
  }

  /// Releases the right. If that fails, another program takes it over an hour later.
  func release() { storage.leases.releaseRight(lease) }
}

extension Timestamp {
  /// Returns the whole second after this time and a duration in seconds.
  fileprivate func wholeSecond(after duration: Double) -> Timestamp {
    Timestamp(seconds: seconds + Int64(duration) + 1, nanoseconds: 0)
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
