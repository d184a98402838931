package import Codecs
internal import Synchronization
internal import SystemIO

/// The lease of a reader on another host that does not wait for it: it is taken while the reader
/// opens the index and reads a snapshot and its trees from earlier listings
/// (docs/repository-format.md, "Readers").
///
/// Once the lease is held, the index and the snapshots are listed again: what is in both listings
/// is as safe as if it had been listed for the first time now. The reader waits for that before it
/// reads data. That may be much later: the lease is kept alive meanwhile. If another program may
/// have taken it away nevertheless, what was listed under it is worthless, and the reader takes a
/// new one.
package final class EarlyLease: Sendable {
  /// A lease, and what was listed under it.
  struct Taken: Sendable {
    let lease: ReaderLease
    let indexes: [Digest]
    let snapshots: Set<Digest>
    /// The error for what another program may have removed earlier; nil unless an earlier lease has
    /// expired.
    var loss: StoreError?
  }

  private typealias Outcome = Result<Taken?, StoreError>

  private final class Box: Sendable {
    let outcome = Mutex<Outcome>(.success(nil))
  }

  private let box = Box()
  private let workers: Workers?
  private let storage: RepositoryStorage
  private let timing: LeaseHeartbeat.Timing

  /// Begins to take a lease.
  ///
  /// - Parameter storage: the storage of the repository without listings that were made ahead, so
  ///   that these are neither used nor dropped.
  package convenience init(_ repository: Repository, through storage: any Storage) {
    self.init(repository, through: storage, timing: LeaseHeartbeat.Timing())
  }

  init(
    _ repository: Repository, through storage: any Storage, timing: LeaseHeartbeat.Timing
  ) {
    let storage = RepositoryStorage(storage, cipher: repository.storage.cipher)
    (self.storage, self.timing) = (storage, timing)
    let box = box
    let take: @Sendable () -> Void = {
      let outcome = Self.take(in: storage, timing)
      box.outcome.withLock { $0 = outcome }
    }
    workers = try? Workers(count: 1, capacity: 1, name: "lease")
    if let workers { workers.submit(take) } else { take() }
  }

  deinit { workers?.finish() }

  /// Takes the lease, and lists what it protects. Without a lease, for example because nothing can
  /// be written, the reader relies on what it has listed.
  private static func take(
    in storage: RepositoryStorage, _ timing: LeaseHeartbeat.Timing
  ) -> Outcome {
    guard let lease = try? ReaderLease(storage, timing: timing) else { return .success(nil) }
    do throws(StoreError) {
      return .success(try list(storage, under: lease))
    } catch { return .failure(error) }
  }

  private static func list(
    _ storage: RepositoryStorage, under lease: ReaderLease
  ) throws(StoreError) -> Taken {
    let found = try storage.listAll([RepositoryLayout.indexes, RepositoryLayout.snapshots])
    let names = found.map { $0?.names ?? [] }
    return Taken(
      lease: lease,
      indexes: RepositoryListing.ids(.index, in: names[0], of: storage),
      snapshots: Set(RepositoryListing.ids(.snapshot, in: names[1], of: storage)))
  }

  /// Waits for the lease, and takes another one if it may have been taken away since. Returns nil
  /// if there is none.
  func finish() throws(StoreError) -> Taken? {
    workers?.finish()
    guard let taken = try box.outcome.withLock({ $0 }).get() else { return nil }
    if taken.lease.isCertain { return taken }
    var next = try Self.list(storage, under: try ReaderLease(storage, timing: timing))
    next.loss = ReaderLease.lost(storage.location)
    return next
  }
}

extension Repository {
  /// Begins to read while a lease is taken. What the reader has read of a snapshot may be used only
  /// after `RepositoryReader.requireKept(_:)` has returned.
  package func beginReading(
    cache: IndexCache?, early: EarlyLease
  ) throws(StoreError) -> RepositoryReader {
    let reader = try beginReading(cache: cache)
    reader.early = early
    return reader
  }
}

/// The end of a lease, which another thread waits for.
final class LeaseEnd: Sendable {
  private let workers: Workers?

  init(_ lease: ReaderLease) {
    workers = try? Workers(count: 1, capacity: 1, name: "lease")
    if let workers { workers.submit { lease.release() } } else { lease.release() }
  }

  deinit { workers?.finish() }
}

extension RepositoryReader {
  /// Declares that nothing more is read. The lease ends while the caller does something else, and
  /// at the latest with the reader.
  package func endReading() {
    early = nil
    if let lease { end = LeaseEnd(lease) }
    lease = nil
  }

  /// Waits for a lease that is taken alongside the first reads. Index objects that were replaced
  /// meanwhile are loaded again. Data is read only after that.
  func settleLease() throws(StoreError) {
    guard let early else { return }
    guard let taken = try early.finish() else {
      self.early = nil
      return
    }
    lease = taken.lease
    watch?.hold(taken.lease)
    try index.reload(listed: taken.indexes)
    (listedSnapshots, unkept) = (taken.snapshots, taken.loss)
    self.early = nil
  }

  /// Checks that the lease protects a snapshot that may have been found before the reader had the
  /// lease.
  ///
  /// - Throws: `busy` if another program has removed it meanwhile.
  package func requireKept(_ snapshot: Digest) throws(StoreError) {
    try settleLease()
    guard let listedSnapshots, !listedSnapshots.contains(snapshot) else {
      unkept = nil
      return
    }
    throw StoreError(
      .busy, "read", subject: "snapshot \(snapshot.hex.prefix(8))",
      reason: "another program has just removed it", hint: "run the command again")
  }
}
