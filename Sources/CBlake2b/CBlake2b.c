#include "CBlake2b.h"

#include <string.h>

// The initial values, and the order of the words in each round (RFC 7693, sections 2.6 and 2.7).
static const uint64_t start[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
static const uint8_t order[12][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                      {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                      {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                      {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                      {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                      {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                      {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                      {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                      {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                      {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
                                      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                      {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3}};

enum { most_lanes = 8 };

// An input that is being hashed.
struct lane {
  uint64_t h[8];
  // Bytes taken in, and how many each block adds.
  uint64_t done, step;
  // All ones for the block that ends the input.
  uint64_t last;
  // What is left of the input, and where blocks are read now: there, or in `tail`.
  const uint8_t *at, *from;
  size_t rest, number;
  uint8_t tail[128];
};

#define LANES 1
#define NAME one
#define TARGET
#include "lanes.h"

#if defined(__x86_64__) && defined(__clang__)
#define LANES 4
#define NAME avx2
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

int cb_best_set(void) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return CB_AVX512;
  return __builtin_cpu_supports("avx2") ? CB_AVX2 : CB_ONE_BY_ONE;
}

static size_t width(int set) { return set == CB_AVX512 ? 8 : set == CB_AVX2 ? 4 : 1; }

static void absorb(int set, struct lane *lanes, size_t live, size_t blocks) {
  if (live == 1) return absorb_one(lanes, live, blocks);
  if (set == CB_AVX2) return absorb_avx2(lanes, live, blocks);
  if (live <= 4) return absorb_avx512_4(lanes, live, blocks);
  absorb_avx512_8(lanes, live, blocks);
}
#else
int cb_best_set(void) { return CB_ONE_BY_ONE; }

static size_t width(int set) { return 1 + 0 * (size_t)set; }

static void absorb(int set, struct lane *lanes, size_t live, size_t blocks) {
  (void)set;
  absorb_one(lanes, live, blocks);
}
#endif

static void begin(struct lane *lane, const uint8_t *bytes, size_t length, size_t number) {
  memcpy(lane->h, start, sizeof start);
  lane->h[0] ^= 0x01010000 ^ 32;
  lane->done = lane->last = 0;
  lane->at = bytes;
  lane->rest = length;
  lane->number = number;
}

// How many blocks come before the one that ends an input.
static size_t whole_blocks(const struct lane *lane) { return lane->rest ? (lane->rest - 1) / 128 : 0; }

// Sets up what each lane reads of `blocks` blocks. The block that ends an input is filled up with
// zeros beside it; lanes that are not at their end take one block as well then.
static void prepare(struct lane *lane) {
  lane->from = lane->at;
  lane->step = 128;
  if (whole_blocks(lane) > 0) return;
  memset(lane->tail, 0, sizeof lane->tail);
  if (lane->rest) memcpy(lane->tail, lane->at, lane->rest);
  lane->from = lane->tail;
  lane->step = lane->rest;
  lane->last = ~(uint64_t)0;
}

void cb_hash(int set, const uint8_t *bytes, const size_t *offsets, const size_t *lengths,
             size_t count, uint8_t *digests) {
  struct lane lanes[most_lanes];
  size_t live = 0, next = 0;
  for (;;) {
    for (; live < width(set) && next < count; next++)
      begin(&lanes[live++], bytes + offsets[next], lengths[next], next);
    if (live == 0) return;
    size_t blocks = SIZE_MAX;
    for (size_t i = 0; i < live; i++)
      if (whole_blocks(&lanes[i]) < blocks) blocks = whole_blocks(&lanes[i]);
    if (blocks == 0) {
      blocks = 1;
      for (size_t i = 0; i < live; i++) prepare(&lanes[i]);
    } else {
      for (size_t i = 0; i < live; i++) lanes[i].from = lanes[i].at, lanes[i].step = 128;
    }
    absorb(set, lanes, live, blocks);
    for (size_t i = live; i-- > 0;) {
      if (lanes[i].last) {
        // The words are stored with their lowest byte first, as the processors here have them.
        memcpy(digests + 32 * lanes[i].number, lanes[i].h, 32);
        if (i != --live) lanes[i] = lanes[live];
      } else {
        lanes[i].at += 128 * blocks;
        lanes[i].rest -= 128 * blocks;
      }
    }
  }
}
