internal import ArchiveStore
internal import Synchronization
internal import SystemIO

/// Listings of directories that a reader needs first, made at once while it waits for other
/// answers.
///
/// Each is used once: a reader that lists again wants to see additions. None is used after a change
/// by this program: a writer, or a reader with a lease, relies on what it sees after its lease was
/// put. A reader whose lease is taken meanwhile (`EarlyLease`) lists again itself. None is used
/// later than `maximumAge`.
final class ListingsAhead: Sendable {
  /// The maximum age of a listing that is used, in seconds.
  private static let maximumAge = 30.0

  private typealias Objects = [(path: ObjectPath, status: ObjectStatus)]
  private typealias Pending = BoundedQueue<Result<Objects, StoreError>>

  private let pending = Mutex<[ObjectPath: Pending]>([:])
  private let begun = Host.bootSeconds()

  /// Begins to list directories, with a thread for each. Without threads nothing is listed.
  ///
  /// - Parameter connections: the number of additional connections that are opened, each by a small
  ///   request whose answer is not needed, so that a reader that needs them soon does not wait for
  ///   their handshakes.
  init(_ directories: [ObjectPath], of base: any Storage, connecting connections: Int = 0) {
    let count = directories.count + connections
    guard !directories.isEmpty,
      let workers = try? Workers(count: count, capacity: count, name: "list")
    else { return }
    for directory in directories {
      let result = Pending(capacity: 1)
      pending.withLock { $0[directory] = result }
      workers.submit { result.enqueue(Self.objects(below: directory, of: base)) }
    }
    let settings = ObjectPath.root.appending("repository.json")
    for _ in 0..<connections { workers.submit { _ = try? base.status(settings) } }
  }

  private static func objects(
    below directory: ObjectPath, of base: any Storage
  ) -> Result<Objects, StoreError> {
    var objects: Objects = []
    do throws(StoreError) {
      try base.forEachObject(below: directory) { path, status in objects.append((path, status)) }
    } catch { return .failure(error) }
    return .success(objects)
  }

  /// Returns the objects below a directory, waiting for them; nil if they were not requested, or
  /// cannot be used.
  func take(
    _ directory: ObjectPath
  ) throws(StoreError) -> [(path: ObjectPath, status: ObjectStatus)]? {
    guard let result = pending.withLock({ $0.removeValue(forKey: directory) }),
      Host.bootSeconds() - begun < Self.maximumAge, let found = result.dequeue()
    else { return nil }
    return try found.get()
  }

  /// Drops all listings.
  func drop() { pending.withLock { $0 = [:] } }
}
