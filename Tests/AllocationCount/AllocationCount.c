#include "AllocationCount.h"
#include <errno.h>
#include <malloc.h>
#include <stddef.h>

static __thread uint64_t allocations;
static __thread int64_t held, highest;

uint64_t ac_allocations(void) { return allocations; }
void ac_begin_peak(void) { held = highest = 0; }
int64_t ac_peak(void) { return highest; }

#if defined(__GLIBC__) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
// The C library's own functions under their internal names.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

int ac_is_counting(void) { return 1; }

static void *counted(void *made) {
  if (!made) return made;
  allocations += 1;
  held += (int64_t)malloc_usable_size(made);
  if (held > highest) highest = held;
  return made;
}

static void released(void *old) {
  if (old) held -= (int64_t)malloc_usable_size(old);
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }
void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) {
  return counted(__libc_memalign(alignment, size));
}
int posix_memalign(void **out, size_t alignment, size_t size) {
  void *made = counted(__libc_memalign(alignment, size));
  if (!made) return ENOMEM;
  *out = made;
  return 0;
}
void *realloc(void *old, size_t size) {
  released(old);
  return counted(__libc_realloc(old, size));
}
void free(void *old) {
  released(old);
  __libc_free(old);
}
#else
int ac_is_counting(void) { return 0; }
#endif
