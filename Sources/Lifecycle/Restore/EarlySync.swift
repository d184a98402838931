internal import Synchronization
internal import SystemIO

/// Has what threads write go to the disk while they write on, by a thread of its own: else the disk
/// stands idle beside them, and they beside the disk at the end.
///
/// It promises nothing: who wants all to be durable syncs the volume when all is written. Where that
/// work ends before, by an error or because it was interrupted, a sync that goes on ends by itself. For
/// any thread.
final class EarlySync: Sendable {
  /// So many bytes are written before the next time, as each writes what the file system keeps of the
  /// files, too, some of it again.
  static let portion = 64 << 20

  private let sync: @Sendable () throws(SystemError) -> Void
  private let thread: Workers
  private let written = Atomic<Int>(0)
  /// How much was written when the last sync began.
  private let begun = Atomic<Int>(0)
  private let isBusy = Atomic<Bool>(false)
  private let failure = Mutex<SystemError?>(nil)

  /// Begins to wait for bytes; `sync` runs on a thread of its own, once at a time.
  init(_ sync: @escaping @Sendable () throws(SystemError) -> Void) throws(SystemError) {
    self.sync = sync
    thread = try Workers(count: 1, capacity: 1, name: "sync")
  }

  /// Counts bytes that were written to files.
  func note(_ count: Int) {
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

  /// Waits for what it has begun.
  ///
  /// - Throws: The first failure: a later sync may say that all is well (`Descriptor.sync()`).
  func finish() throws(SystemError) {
    thread.finish()
    if let failure = failure.withLock({ $0 }) { throw failure }
  }
}
