internal import Glibc

/// A value under a lock, with waiting for its change. Every change wakes all who wait.
@safe
final class ConditionLock<Value: Sendable>: @unchecked Sendable {
  // Unchecked: `value` is only touched between lock and unlock of `mutex`.
  private let value: UnsafeMutablePointer<Value>
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  init(_ value: Value) {
    unsafe self.value = .allocate(capacity: 1)
    unsafe self.value.initialize(to: value)
    unsafe mutex = .allocate(capacity: 1)
    unsafe condition = .allocate(capacity: 1)
    unsafe pthread_mutex_init(mutex, nil)
    unsafe pthread_cond_init(condition, nil)
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe pthread_cond_destroy(condition)
    unsafe value.deinitialize(count: 1)
    unsafe value.deallocate()
    unsafe mutex.deallocate()
    unsafe condition.deallocate()
  }

  /// Runs `body` with the lock held; `wait`, called in it, lets others in until one of them leaves.
  func withLock<Result>(
    _ body: (_ value: UnsafeMutablePointer<Value>, _ wait: () -> Void) -> Result
  ) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer {
      unsafe pthread_cond_broadcast(condition)
      unsafe pthread_mutex_unlock(mutex)
    }
    return unsafe body(value) { unsafe pthread_cond_wait(condition, mutex) }
  }
}
