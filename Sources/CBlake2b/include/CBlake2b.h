// BLAKE2b (RFC 7693) with 32 bytes of output and no key, of several inputs at once: each input has a
// lane of the processor's vectors. One input after the other leaves most of a vector unit idle; eight
// together take a quarter of the time (docs/decisions/0017-hashes-in-lanes.md).
#pragma once
#include <stddef.h>
#include <stdint.h>

// An input, of any length; without bytes it needs no address. The digest is four words, of which each
// gives its lowest byte first.
struct cb_input {
  const uint8_t *bytes;
  size_t length;
  uint64_t digest[4];
};

// How many lanes this processor has: 8 (AVX-512), 4 (AVX2), or 0: it cannot use what follows.
int cb_lanes(void);

// Sets the digest of each of `count` inputs. They take lanes in their order: give the longest first.
// `lanes` is 8 or 4, and at most what the processor has.
void cb_hash(int lanes, struct cb_input *inputs, size_t count);
