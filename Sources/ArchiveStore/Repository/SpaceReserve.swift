internal import Codecs
internal import SystemIO

/// The file `reserve`, whose space a prune uses on a full volume (docs/repository-format.md,
/// "Layout").
struct SpaceReserve {
  private let storage: RepositoryStorage

  init(_ storage: RepositoryStorage) { self.storage = storage }

  /// Runs a step again, after freeing the reserve, if the volume is full. Another thread may have
  /// freed it meanwhile.
  func whenFull<Result>(
    _ step: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    do {
      return try step()
    } catch {
      guard error.cause?.isFull == true else { throw error }
      try free()
      return try step()
    }
  }

  /// Frees the reserve. Returns false if it does not exist.
  @discardableResult
  func free() throws(StoreError) -> Bool {
    guard try storage.status(RepositoryLayout.reserve) != nil else { return false }
    do { try storage.remove(RepositoryLayout.reserve) } catch {
      // Another thread was faster.
      guard error.code == .missing else { throw error }
    }
    return true
  }

  /// Recreates the reserve if it is missing. If that fails, for example because the volume has no
  /// room, the next prune tries again.
  func restore(by lease: Lease) {
    do throws(StoreError) {
      guard try storage.status(RepositoryLayout.reserve) == nil else { return }
      let bytes = [UInt8](repeating: 0, count: RepositoryLayout.reserveSize)
      try lease.save(bytes, as: RepositoryLayout.reserve)
    } catch {}
  }
}
