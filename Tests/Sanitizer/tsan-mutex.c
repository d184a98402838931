// Annotates Swift's Mutex for the thread sanitizer (make tsan).
//
// An uncontended Mutex of the module Synchronization is locked by an atomic operation in the
// caller's code, which the sanitizer sees. A contended one is locked in the library, which is built
// without the sanitizer: each value under such a Mutex would be reported as a race. This library,
// preloaded, annotates the slow paths: after locking and before unlocking.
//
// The function names belong to Synchronization's ABI (swift/stdlib/public/Synchronization/Mutex);
// self is passed as its address in the context register.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

// Missing in programs without the sanitizer, for example those that tests start.
extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool try_lock_slow(SELF) __asm__(TRY_LOCK);
SWIFT void unlock_slow(SELF) __asm__(UNLOCK);

typedef SWIFT void (*lock_function)(uint32_t thread, SELF);
typedef SWIFT bool (*try_lock_function)(SELF);
typedef SWIFT void (*unlock_function)(SELF);

SWIFT void lock_slow(uint32_t thread, SELF) {
  ((lock_function)dlsym(RTLD_NEXT, LOCK))(thread, self);
  if (__tsan_acquire) __tsan_acquire(self);
}

SWIFT bool try_lock_slow(SELF) {
  bool is_taken = ((try_lock_function)dlsym(RTLD_NEXT, TRY_LOCK))(self);
  if (is_taken && __tsan_acquire) __tsan_acquire(self);
  return is_taken;
}

SWIFT void unlock_slow(SELF) {
  if (__tsan_release) __tsan_release(self);
  ((unlock_function)dlsym(RTLD_NEXT, UNLOCK))(self);
}
