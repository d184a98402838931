// Tells the thread sanitizer of Swift's Mutex (make tsan).
//
// A Mutex of the module Synchronization that nobody else wants is taken by an atomic operation in the code
// of whoever takes it, which the sanitizer sees. One that has to be waited for is taken in the library,
// which is built without it: each value under such a Mutex would be reported as a race. This library, loaded
// before, says after the slow way in, and before the slow way out, what that does.
//
// The functions' names are those of Synchronization's ABI (swift/stdlib/public/Synchronization/Mutex); self
// comes as its address in the context register.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

// Not there in programs without the sanitizer, as in those that tests start.
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
