internal import Synchronization
internal import SystemIO

/// The lease of a program that reads for a long time: packs that it may need stay until it ends
/// (docs/repository-format.md, "Readers").
///
/// A thread keeps it alive. If another program took it away nevertheless, because the host was
/// suspended or did not reach the store for an hour, the thread takes a new one, which protects the
/// data that still exists. Data that is missing from then on may have been removed by that program,
/// and does not count as damage (`explain(_:)`).
///
/// Safe to use from any thread. It is released on deinitialization.
public final class ReaderLease: Sendable {
  private let lease: Lease
  private let heartbeat: LeaseHeartbeat
  private let losses: Losses

  /// The name of the lease's directory.
  var name: ByteString { lease.path.name }

  /// Whether everything that was listed under the lease has been protected without a gap, as far as
  /// this host can know without asking the store.
  var isCertain: Bool { lease.isCertain }

  /// Takes a lease. It must be taken before the index is read.
  ///
  /// - Throws: `StoreError` if the repository cannot be written to. A reader then works without a
  ///   lease.
  public convenience init(_ repository: Repository) throws(StoreError) {
    try self.init(repository.storage)
  }

  init(
    _ storage: RepositoryStorage, timing: LeaseHeartbeat.Timing = LeaseHeartbeat.Timing()
  ) throws(StoreError) {
    let lease = try Lease(storage, with: [Lease.readerSign], clock: timing.clock)
    let losses = Losses(lease, clock: timing.clock)
    (self.lease, self.losses) = (lease, losses)
    heartbeat = try LeaseHeartbeat(milliseconds: timing.milliseconds) { losses.beat() }
  }

  /// Takes a lease if the repository can be written to and has the directory of leases: a program
  /// that only reads does not create it.
  ///
  /// - Returns: nil without a lease. A pack that is removed meanwhile is then lost to the reader.
  public static func ifPossible(_ repository: Repository) -> ReaderLease? {
    guard repository.storage.leases.mayTakeReaderLease() else { return nil }
    return try? ReaderLease(repository)
  }

  /// Returns the error to report for a missing object: `leaseLost` if another program took the
  /// lease away before, since it may have removed the object then; otherwise the given error.
  func explain(_ error: StoreError) -> StoreError {
    guard error.code == .missing, losses.hasOccurred() else { return error }
    return Self.lost(lease.storage.location)
  }

  /// Checks that missing data was not removed after another program took the lease away.
  ///
  /// - Throws: `leaseLost` if it may have been.
  func requireKept() throws(StoreError) {
    if losses.hasOccurred() { throw Self.lost(lease.storage.location) }
  }

  /// Returns the error for an object that another program may have removed after it took a lease
  /// away.
  static func lost(_ location: String) -> StoreError {
    StoreError(
      .leaseLost, "finish reading", subject: location,
      reason: "its lease expired, since no heartbeat was written for an hour, and another program "
        + "has removed objects",
      hint: "run the command again")
  }

  /// Ends the lease.
  public func release() {
    heartbeat.finish()
    lease.release()
  }

  deinit { release() }
}

extension ReaderLease {
  /// Detects that a lease was lost, and replaces it.
  private final class Losses: Sendable {
    private let lease: Lease
    private let clock: @Sendable () -> Double
    private let state = Mutex(State())

    private struct State {
      var hasOccurred = false
      /// The time at which the lease was last seen in the store.
      var lastSeen: Double?
    }

    init(_ lease: Lease, clock: @escaping @Sendable () -> Double) {
      (self.lease, self.clock) = (lease, clock)
    }

    /// Updates the heartbeat if it is due. If the lease is gone, takes a new one; if that fails,
    /// the next heartbeat tries again.
    func beat() {
      do throws(StoreError) {
        guard try lease.touchIfDue() else { return }
      } catch {
        guard error.code == .leaseLost else { return }
      }
      // In a store without rename, only a request shows if the lease was alive at the heartbeat.
      guard (try? lease.isTaken()) == true else { return }
      state.withLock { $0.hasOccurred = true }
      try? lease.renew(with: [Lease.readerSign])
    }

    /// Whether another program has taken the lease away. Asks the store at most once in the
    /// interval of the heartbeat: many objects may be missing.
    func hasOccurred() -> Bool {
      let now = clock()
      let known = state.withLock { state -> Bool? in
        if state.hasOccurred { return true }
        guard let seen = state.lastSeen else { return nil }
        return now - seen < Lease.touchInterval ? false : nil
      }
      if let known { return known }
      guard let isTaken = try? lease.isTaken() else { return false }
      return state.withLock { state in
        if isTaken { state.hasOccurred = true } else { state.lastSeen = now }
        return state.hasOccurred
      }
    }
  }
}
