/// The lease of a program that reads for a long time: packs that it may need stay until it ends
/// (docs/repository-format.md, "Readers").
///
/// Safe to use from any thread. It is released on deinitialization.
public final class ReaderLease: Sendable {
  private let lease: Lease

  /// Takes a lease. It must be taken before the index is read.
  ///
  /// - Throws: `StoreError` if the repository cannot be written to. A reader then works without a
  ///   lease.
  public init(_ repository: Repository) throws(StoreError) {
    lease = try Lease(repository.storage)
    do {
      try repository.storage.touch(lease.path.appending(Lease.readerSign))
    } catch {
      lease.release()
      throw error
    }
  }

  /// Updates the heartbeat if it is a minute old. Cheap enough to call for each frame.
  public func keepAlive() { try? lease.keepAlive() }

  /// Ends the lease.
  public func release() { lease.release() }
}
