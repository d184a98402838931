internal import SystemIO

/// The lease of a program that reads for a long time: packs that it may need stay until it ends
/// (docs/repository-format.md, "Readers").
///
/// Safe to use from any thread. It is released on deinitialization.
public final class ReaderLease: Sendable {
  private let lease: Lease

  /// The name of the lease's directory.
  var name: ByteString { lease.path.name }

  /// Takes a lease. It must be taken before the index is read.
  ///
  /// - Throws: `StoreError` if the repository cannot be written to. A reader then works without a
  ///   lease.
  public convenience init(_ repository: Repository) throws(StoreError) {
    try self.init(repository.storage)
  }

  init(_ storage: RepositoryStorage) throws(StoreError) {
    lease = try Lease(storage, with: [Lease.readerSign])
  }

  /// Takes a lease if the repository can be written to and has the directory of leases: a program
  /// that only reads does not create it.
  ///
  /// - Returns: nil without a lease. A pack that is removed meanwhile is then lost to the reader.
  public static func ifPossible(_ repository: Repository) -> ReaderLease? {
    guard repository.storage.leases.mayTakeReaderLease() else { return nil }
    return try? ReaderLease(repository)
  }

  /// Updates the heartbeat if it is a minute old. Cheap enough to call for each frame.
  public func keepAlive() { try? lease.keepAlive() }

  /// Ends the lease.
  public func release() { lease.release() }
}
