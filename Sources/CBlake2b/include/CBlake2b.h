// BLAKE2b (RFC 7693) with 32 bytes of output and no key, of several inputs at once: each input has a
// lane of the processor's vectors. One input after the other leaves most of a vector unit idle; eight
// together take a quarter of the time (docs/decisions/0017-hashes-in-lanes.md).
#pragma once
#include <stddef.h>
#include <stdint.h>

// Which instructions are used.
enum cb_set { CB_ONE_BY_ONE = 0, CB_AVX2 = 1, CB_AVX512 = 2 };

// The best that this processor has.
int cb_best_set(void);

// Writes the digest of each of `count` inputs, `lengths[i]` bytes at `bytes + offsets[i]`, to
// `digests + 32 * i`. Inputs take lanes in their order: give the longest first. The set must be one
// that the processor has.
void cb_hash(int set, const uint8_t *bytes, const size_t *offsets, const size_t *lengths,
             size_t count, uint8_t *digests);
