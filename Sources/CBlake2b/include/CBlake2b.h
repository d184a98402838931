// BLAKE2b (RFC 7693) with 32 bytes of output and no key, for several inputs at once: each input has
// a lane of the vector unit. A single input leaves most of a vector unit idle; hashing eight inputs
// together takes a quarter of the time (docs/decisions/0017-hashes-in-lanes.md).
#pragma once
#include <stddef.h>
#include <stdint.h>

// The state after the bytes processed. At the end, the first four words in little-endian order are
// the digest.
struct cb_state {
  uint64_t h[8];
  // The number of bytes processed before the current ones.
  uint64_t taken;
};

// An input of any length; an empty one needs no address.
struct cb_input {
  const uint8_t *bytes;
  size_t length;
  struct cb_state state;
  // Whether its last block is the last of the hash.
  int ends;
};

// An input in several runs. A block that may be the last is kept, because that one is processed
// differently.
struct cb_stream {
  struct cb_state state;
  uint8_t tail[128];
  size_t held;
};

// Bytes to add to a stream; an empty run needs no address.
struct cb_run {
  const uint8_t *bytes;
  size_t length;
};

// Returns the number of lanes of this processor: 8 (AVX-512), 4 (AVX2), or 0 if the functions below
// cannot be used. Their `lanes` is 8 or 4 and at most this number.
int cb_lanes(void);

// Sets the state of each of `count` inputs to its digest, regardless of its previous value. Inputs
// take lanes in order: pass the longest first.
void cb_hash(int lanes, struct cb_input *inputs, size_t count);

// Initializes a stream of no bytes.
void cb_begin(struct cb_stream *stream);

// Adds run i to stream i, of `count`. The runs are modified.
void cb_update(int lanes, struct cb_stream *streams, struct cb_run *runs, size_t count);

// Sets the stream's state to the digest. The stream must not be updated afterwards.
void cb_finish(struct cb_stream *stream);
