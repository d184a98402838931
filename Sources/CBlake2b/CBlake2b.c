#include "CBlake2b.h"

#include <string.h>

#ifdef __x86_64__

// The initial values, and the order of words in each round (RFC 7693, sections 2.6 and 2.7).
static const uint64_t start[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
static const uint8_t order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

enum { block = 128, most_lanes = 8 };

// The state of all lanes. Element i of each row is lane i's, so the beginning of a row is a vector.
struct state {
  // The state words: h[w][i] is word w of lane i.
  uint64_t h[8][most_lanes];
  // The byte counter before the next block. The upper 64 of its 128 bits stay zero: no input in
  // memory is that long.
  uint64_t taken[most_lanes];
  // All ones for the last block of an input.
  uint64_t last[most_lanes];
  // The next blocks.
  const uint8_t *from[most_lanes];
};

// An input in a lane, and the number of its bytes processed.
struct lane {
  struct cb_input *input;
  size_t taken;
  // The last block, padded with zeros.
  uint8_t tail[block];
};

#define LANES 1
#define NAME alone
#define TARGET
#include "lanes.h"

#define LANES 4
#define NAME avx2_4
#define TARGET __attribute__((target("avx2")))
#include "lanes.h"

#define LANES 4
#define NAME avx512_4
#define TARGET __attribute__((target("avx512f,avx512vl")))
#include "lanes.h"

#define LANES 8
#define NAME avx512_8
#define TARGET __attribute__((target("avx512f,avx512vl")))
#include "lanes.h"

// Uses the widest instructions for all lanes; fewer live lanes are faster with narrower ones.
static void absorb(int lanes, struct state *state, size_t live, size_t blocks) {
  if (live == 1) return absorb_alone(state, live, blocks);
  if (lanes == 4) return absorb_avx2_4(state, live, blocks);
  if (live <= 4) return absorb_avx512_4(state, live, blocks);
  absorb_avx512_8(state, live, blocks);
}

// Also checks that the operating system saves the wide registers: both compilers' libraries read
// XCR0.
int cb_lanes(void) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return 8;
  return __builtin_cpu_supports("avx2") ? 4 : 0;
}

static size_t left(const struct lane *lane) { return lane->input->length - lane->taken; }

// Returns the number of blocks left before the last block of the input, if the input ends.
static size_t whole_blocks(const struct lane *lane) {
  size_t bytes = left(lane);
  return (bytes && lane->input->ends ? bytes - 1 : bytes) / block;
}

// Returns the last block of the input, copied so that nothing after the input is read.
static const uint8_t *last_block(struct lane *lane) {
  if (left(lane)) memcpy(lane->tail, lane->input->bytes + lane->taken, left(lane));
  return lane->tail;
}

// Processes inputs in order. An input that does not end consists of one or more whole blocks.
static void take(int lanes, struct cb_input *inputs, size_t count) {
  struct state state = {0};
  struct lane lane[most_lanes];
  size_t live = 0, next = 0;
  for (;;) {
    for (; live < (size_t)lanes && next < count; live++, next++) {
      lane[live] = (struct lane){.input = &inputs[next]};
      for (int w = 0; w < 8; w++) state.h[w][live] = inputs[next].state.h[w];
    }
    if (live == 0) return;

    // The number of blocks that all lanes have, or one block each if an input is at its end.
    size_t blocks = SIZE_MAX;
    for (size_t i = 0; i < live; i++)
      if (whole_blocks(&lane[i]) < blocks) blocks = whole_blocks(&lane[i]);
    if (blocks == 0) blocks = 1;
    for (size_t i = 0; i < live; i++) {
      const struct cb_input *input = lane[i].input;
      int ends = whole_blocks(&lane[i]) == 0;
      state.from[i] = ends ? last_block(&lane[i]) : input->bytes + lane[i].taken;
      // The last block of any size advances the counter to the length of the input.
      state.taken[i] = input->state.taken + (ends ? (uint64_t)input->length - block : lane[i].taken);
      state.last[i] = ends ? UINT64_MAX : 0;
    }
    absorb(lanes, &state, live, blocks);

    // The input of the last live lane moves to a finished lane, and the next input takes its place.
    for (size_t i = live; i-- > 0;) {
      struct cb_input *input = lane[i].input;
      lane[i].taken += block * blocks;
      if (!state.last[i] && (input->ends || left(&lane[i]))) continue;
      live--;
      for (int w = 0; w < 8; w++) input->state.h[w] = state.h[w][i];
      for (int w = 0; w < 8; w++) state.h[w][i] = state.h[w][live];
      lane[i] = lane[live];
    }
  }
}

static void begin(struct cb_state *state) {
  memcpy(state->h, start, sizeof start);
  state->h[0] ^= 0x01010000 ^ 32;
  state->taken = 0;
}

void cb_hash(int lanes, struct cb_input *inputs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    begin(&inputs[i].state);
    inputs[i].ends = 1;
  }
  take(lanes, inputs, count);
}

void cb_begin(struct cb_stream *stream) {
  begin(&stream->state);
  stream->held = 0;
}

// Adds whole blocks to streams: `bytes[i]`, which may be 0, to stream i.
static void take_blocks(
    int lanes, struct cb_stream *streams, const uint8_t **from, const size_t *bytes, size_t count) {
  struct cb_input inputs[most_lanes];
  size_t number = 0;
  for (size_t i = 0; i < count; i++)
    if (bytes[i])
      inputs[number++] = (struct cb_input){from[i], bytes[i], streams[i].state, 0};
  take(lanes, inputs, number);
  for (size_t i = count; i-- > 0;) {
    if (!bytes[i]) continue;
    streams[i].state = inputs[--number].state;
    streams[i].state.taken += bytes[i];
  }
}

// Moves bytes of a run to the tail of a stream, as far as there is room.
static void fill(struct cb_stream *stream, struct cb_run *run) {
  size_t bytes = block - stream->held < run->length ? block - stream->held : run->length;
  if (bytes == 0) return;
  memcpy(stream->tail + stream->held, run->bytes, bytes);
  stream->held += bytes;
  run->bytes += bytes;
  run->length -= bytes;
}

// Processes full tails first unless they may be the last block, then the blocks of the runs.
static void update(int lanes, struct cb_stream *streams, struct cb_run *runs, size_t count) {
  const uint8_t *from[most_lanes];
  size_t bytes[most_lanes];
  for (size_t i = 0; i < count; i++) {
    if (streams[i].held) fill(&streams[i], &runs[i]);
    from[i] = streams[i].tail;
    bytes[i] = streams[i].held == block && runs[i].length ? block : 0;
    if (bytes[i]) streams[i].held = 0;
  }
  take_blocks(lanes, streams, from, bytes, count);
  for (size_t i = 0; i < count; i++) {
    from[i] = runs[i].bytes;
    bytes[i] = runs[i].length ? (runs[i].length - 1) / block * block : 0;
    if (bytes[i]) runs[i].bytes += bytes[i];
    runs[i].length -= bytes[i];
  }
  take_blocks(lanes, streams, from, bytes, count);
  for (size_t i = 0; i < count; i++) fill(&streams[i], &runs[i]);
}

void cb_update(int lanes, struct cb_stream *streams, struct cb_run *runs, size_t count) {
  for (size_t at = 0; at < count; at += most_lanes)
    update(lanes, streams + at, runs + at, count - at < most_lanes ? count - at : most_lanes);
}

void cb_finish(struct cb_stream *stream) {
  struct cb_input input = {stream->tail, stream->held, stream->state, 1};
  take(1, &input, 1);
  stream->state = input.state;
}

#else
int cb_lanes(void) { return 0; }

void cb_hash(int lanes, struct cb_input *inputs, size_t count) {
  (void)lanes, (void)inputs, (void)count;
  __builtin_trap();
}

void cb_begin(struct cb_stream *stream) {
  (void)stream;
  __builtin_trap();
}

void cb_update(int lanes, struct cb_stream *streams, struct cb_run *runs, size_t count) {
  (void)lanes, (void)streams, (void)runs, (void)count;
  __builtin_trap();
}

void cb_finish(struct cb_stream *stream) {
  (void)stream;
  __builtin_trap();
}
#endif
