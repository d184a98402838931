internal import Synchronization

/// Reads blobs whose packs are damaged or gone from any pack that has them. Safe to use from any
/// thread.
final class SalvageReader: Sendable {
  private let repository: Repository
  /// Created when it is needed: it loads the index again.
  private let reader = Mutex<RepositoryReader?>(nil)

  init(_ repository: Repository) { self.repository = repository }

  /// Returns the bytes of a blob, or nil if no pack has it intact.
  func read(_ blob: BlobID) throws(StoreError) -> [UInt8]? {
    do throws(StoreError) {
      return try reader.withLock { reader throws(StoreError) in
        if let reader { return try reader.readBlob(blob) }
        let new = try repository.beginReading()
        reader = new
        return try new.readBlob(blob)
      }
    } catch {
      guard error.kind == .damaged else { throw error }
      return nil
    }
  }
}
