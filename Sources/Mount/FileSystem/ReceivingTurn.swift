internal import CFuse
internal import Synchronization

/// The turn to receive requests, which one thread has at a time.
///
/// It keeps its turn for requests that are answered from memory, so that a program that makes one
/// request after another does not wake a thread for each. Before it may wait, for storage or for
/// other threads, it passes the turn to another thread.
final class ReceivingTurn: @unchecked Sendable {
  // Unchecked: the library's lock is designed for use by several threads.
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  /// The thread that has the turn; 0 for none.
  private let holder = Atomic<UInt>(0)

  init() { pthread_mutex_init(lock, nil) }

  deinit {
    pthread_mutex_destroy(lock)
    lock.deallocate()
  }

  /// Waits for the turn, unless this thread has it.
  func take() {
    if isMine { return }
    pthread_mutex_lock(lock)
    holder.store(UInt(pthread_self()), ordering: .relaxed)
  }

  /// Passes the turn if this thread has it. To be called before anything that may wait.
  func pass() {
    guard isMine else { return }
    holder.store(0, ordering: .relaxed)
    pthread_mutex_unlock(lock)
  }

  /// Whether this thread has the turn.
  var isMine: Bool { holder.load(ordering: .relaxed) == UInt(pthread_self()) }
}
