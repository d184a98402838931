// BLAKE2b (RFC 7693) with 32 bytes of output and no key, of several inputs at once: each input has a
// lane of the processor's vectors. One input after the other leaves most of a vector unit idle; eight
// together take a quarter of the time (docs/decisions/0017-hashes-in-lanes.md).
#pragma once
#include <stddef.h>
#include <stdint.h>

// What the bytes taken in have come to. The digest is, in the end, the first four words, of which each
// gives its lowest byte first.
struct cb_state {
  uint64_t h[8];
  // How many bytes came before those in hand.
  uint64_t taken;
};

// An input, of any length; without bytes it needs no address.
struct cb_input {
  const uint8_t *bytes;
  size_t length;
  struct cb_state state;
  // Whether its last block is the hash's.
  int ends;
};

// An input that comes run by run. What may be its last block is kept, for that is taken in otherwise.
struct cb_stream {
  struct cb_state state;
  uint8_t tail[128];
  size_t held;
};

// Bytes that a stream is to take in; none need no address.
struct cb_run {
  const uint8_t *bytes;
  size_t length;
};

// How many lanes this processor has: 8 (AVX-512), 4 (AVX2), or 0: it cannot use what follows. There
// `lanes` is 8 or 4, and at most what the processor has.
int cb_lanes(void);

// Sets the state of each of `count` inputs to its digest, whatever it was. They take lanes in their
// order: give the longest first.
void cb_hash(int lanes, struct cb_input *inputs, size_t count);

// Makes a stream one of no bytes yet.
void cb_begin(struct cb_stream *stream);

// Takes run number i into stream number i, of `count`. The runs are as good as gone then.
void cb_update(int lanes, struct cb_stream *streams, struct cb_run *runs, size_t count);

// Sets the stream's state to the digest; it takes nothing more.
void cb_finish(struct cb_stream *stream);
