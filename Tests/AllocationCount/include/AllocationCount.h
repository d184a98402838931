// Counts the allocations of the current thread: in a test program that links this library, malloc
// and related functions count before they allocate. Not under a sanitizer, which has its own
// functions.
#pragma once
#include <stdint.h>

// Whether allocations are counted.
int ac_is_counting(void);
// The number of allocations of the current thread.
uint64_t ac_allocations(void);
// The peak of the bytes allocated by the current thread since ac_begin_peak, relative to that time.
void ac_begin_peak(void);
int64_t ac_peak(void);
