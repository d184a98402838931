// Counts what the running thread allocates: in a test program that links this, malloc and its kin
// count before they do their work. Not under a sanitizer, which brings its own.
#pragma once
#include <stdint.h>

// Whether allocations are counted at all.
int ac_is_counting(void);
// How many allocations the running thread has made.
uint64_t ac_allocations(void);
// The most bytes that the running thread held at once since ac_begin_peak, above what it held then.
void ac_begin_peak(void);
int64_t ac_peak(void);
