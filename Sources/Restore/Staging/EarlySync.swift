internal import Synchronization
internal import SystemIO

/// Syncs written data on a thread of its own while other threads keep writing, so that neither the
/// disk idles during the writes nor the threads during the final sync.
///
/// It guarantees nothing: a caller that needs durability syncs the volume after the last write. If
/// the work ends early because of an error or an interruption, a sync in progress ends by itself.
/// Safe to use from any thread.
final class EarlySync: Sendable {
  /// The number of bytes written between two syncs: each sync also writes file system metadata,
  /// some of it repeatedly.
  static let portion = 64 << 20

  private let sync: @Sendable () throws(SystemError) -> Void
  private let thread: Workers
  private let written = Atomic<Int>(0)
  /// The number of bytes written when the last sync began.
  private let begun = Atomic<Int>(0)
  private let isBusy = Atomic<Bool>(false)
  private let failure = Mutex<SystemError?>(nil)

  /// Starts the sync thread, which calls `sync` one call at a time.
  init(_ sync: @escaping @Sendable () throws(SystemError) -> Void) throws(SystemError) {
    self.sync = sync
    thread = try Workers(count: 1, capacity: 1, name: "sync")
  }

  /// Counts bytes written to files, and starts a sync if enough have accumulated.
  func record(_ count: Int) {
    let total = written.add(count, ordering: .relaxed).newValue
    guard total - begun.load(ordering: .relaxed) >= Self.portion,
      !isBusy.exchange(true, ordering: .acquiring)
    else { return }
    begun.store(total, ordering: .relaxed)
    thread.submit { [self] in
      do throws(SystemError) {
        try sync()
      } catch {
        failure.withLock { $0 = $0 ?? error }
      }
      isBusy.store(false, ordering: .releasing)
    }
  }

  /// Waits for the sync in progress.
  ///
  /// - Throws: The first failure, because a later sync may report success (`Descriptor.sync()`).
  func finish() throws(SystemError) {
    thread.finish()
    if let failure = failure.withLock({ $0 }) { throw failure }
  }
}
