internal import CLinux
internal import Glibc

/// A value protected by a lock that threads can wait on. Each change wakes all waiting threads.
@safe
final class ConditionLock<Value: Sendable>: @unchecked Sendable {
  // Unchecked: `value` is only accessed while `mutex` is locked.
  private let value: UnsafeMutablePointer<Value>
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  init(_ value: Value) {
    unsafe self.value = .allocate(capacity: 1)
    unsafe self.value.initialize(to: value)
    unsafe mutex = .allocate(capacity: 1)
    unsafe condition = .allocate(capacity: 1)
    unsafe pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    unsafe pthread_condattr_init(&attributes)
    unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    unsafe pthread_cond_init(condition, &attributes)
    unsafe pthread_condattr_destroy(&attributes)
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe pthread_cond_destroy(condition)
    unsafe value.deinitialize(count: 1)
    unsafe value.deallocate()
    unsafe mutex.deallocate()
    unsafe condition.deallocate()
  }

  /// Runs `body` with the lock held. `wait` releases the lock until another thread has changed the
  /// value.
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

  /// Runs `body` with the lock held and a deadline: `wait` returns false once `milliseconds` have
  /// passed since the call.
  func withLock<Result>(
    waitingAtMost milliseconds: Int,
    _ body: (_ value: UnsafeMutablePointer<Value>, _ wait: () -> Bool) -> Result
  ) -> Result {
    var end = timespec()
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &end)
    let nanoseconds = Int(end.tv_nsec) + milliseconds % 1000 * 1_000_000
    end.tv_sec += milliseconds / 1000 + nanoseconds / 1_000_000_000
    end.tv_nsec = nanoseconds % 1_000_000_000
    return unsafe withLock { value, _ in
      unsafe body(value) { unsafe pthread_cond_timedwait(condition, mutex, &end) == 0 }
    }
  }
}
