public import Codecs
internal import Synchronization
internal import SystemIO

/// Compares stored snapshots with their ids, on several threads. The bytes are hashed and not
/// decoded: data decoded earlier from bytes with the same hash is still valid.
final class SnapshotVerification: Sendable {
  private let storage: RepositoryStorage
  private let ids: [SnapshotID]
  private let next = Atomic<Int>(0)
  private let failed = Mutex<Set<SnapshotID>>([])

  /// The number of snapshots that a thread takes at a time.
  private static let batch = 64

  init(_ ids: [SnapshotID], in storage: RepositoryStorage) {
    (self.ids, self.storage) = (ids, storage)
  }

  /// Returns the snapshots that do not match their ids, or that cannot be read.
  func run(threads: Int) -> Set<SnapshotID> {
    let count = min(threads, ids.count / Self.batch)
    if count > 1, let workers = try? Workers(count: count, capacity: count, name: "snapshots") {
      for _ in 0..<count { workers.submit { self.work() } }
      workers.finish()
    }
    // Without other threads this one reads all of them, otherwise none.
    work()
    return failed.withLock { $0 }
  }

  private func work() {
    while true {
      let start = next.add(Self.batch, ordering: .relaxed).oldValue
      guard start < ids.count else { return }
      for id in ids[start..<min(start + Self.batch, ids.count)] where !isIntact(id) {
        failed.withLock { _ = $0.insert(id) }
      }
    }
  }

  private func isIntact(_ id: SnapshotID) -> Bool {
    let path = storage.layout.snapshot(id)
    let limit = storage.storedLimit(of: FormatLimit.snapshot)
    do throws(StoreError) {
      _ = try storage.loadStored(id, at: path, limit: limit)
      return true
    } catch { return false }
  }
}

extension Repository {
  /// Returns the snapshots among `ids` whose bytes do not match their ids, or that cannot be read.
  /// Each is read and hashed, but not decoded.
  ///
  /// - Parameter threads: the number of threads, at least 1; few snapshots are read on this thread.
  public func unverified(among ids: [SnapshotID], threads: Int) -> Set<SnapshotID> {
    SnapshotVerification(ids, in: storage).run(threads: threads)
  }
}
