// Processes blocks for LANES lanes at once by RFC 7693, section 3.2: lane i of each vector is the
// word of input i. Included once for each instruction set with LANES, NAME and TARGET defined.

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define WORDS PASTE(words, NAME)
#define MIX PASTE(mix, NAME)

typedef uint64_t WORDS __attribute__((vector_size(8 * LANES)));

#define TURN(x, bits) (((x) >> (bits)) | ((x) << (64 - (bits))))
TARGET __attribute__((always_inline)) static inline void MIX(
    WORDS *a, WORDS *b, WORDS *c, WORDS *d, WORDS x, WORDS y) {
  *a += *b + x;
  *d = TURN(*d ^ *a, 32);
  *c += *d;
  *b = TURN(*b ^ *c, 24);
  *a += *b + y;
  *d = TURN(*d ^ *a, 16);
  *c += *d;
  *b = TURN(*b ^ *c, 63);
}

// Processes `blocks` blocks of each lane. Lanes other than the `live` ones repeat the first lane.
TARGET static void PASTE(absorb, NAME)(struct state *state, size_t live, size_t blocks) {
  WORDS h[8], taken, last;
  for (int w = 0; w < 8; w++) memcpy(&h[w], state->h[w], sizeof h[w]);
  memcpy(&taken, state->taken, sizeof taken);
  memcpy(&last, state->last, sizeof last);
  const uint8_t *from[LANES];
  for (size_t i = 0; i < LANES; i++) from[i] = state->from[i < live ? i : 0];
  for (; blocks > 0; blocks--) {
    WORDS m[16], v[16];
    for (int w = 0; w < 16; w++) {
      uint64_t row[LANES];
      for (int i = 0; i < LANES; i++) memcpy(&row[i], from[i] + 8 * w, 8);
      memcpy(&m[w], row, sizeof row);
    }
    for (int i = 0; i < LANES; i++) from[i] += block;
    taken += block;
    for (int w = 0; w < 8; w++) {
      v[w] = h[w];
      v[8 + w] = (WORDS){0} + start[w];
    }
    v[12] ^= taken;
    v[14] ^= last;
#pragma clang loop unroll(full)
    for (int round = 0; round < 12; round++) {
      const uint8_t *s = order[round % 10];
      MIX(&v[0], &v[4], &v[8], &v[12], m[s[0]], m[s[1]]);
      MIX(&v[1], &v[5], &v[9], &v[13], m[s[2]], m[s[3]]);
      MIX(&v[2], &v[6], &v[10], &v[14], m[s[4]], m[s[5]]);
      MIX(&v[3], &v[7], &v[11], &v[15], m[s[6]], m[s[7]]);
      MIX(&v[0], &v[5], &v[10], &v[15], m[s[8]], m[s[9]]);
      MIX(&v[1], &v[6], &v[11], &v[12], m[s[10]], m[s[11]]);
      MIX(&v[2], &v[7], &v[8], &v[13], m[s[12]], m[s[13]]);
      MIX(&v[3], &v[4], &v[9], &v[14], m[s[14]], m[s[15]]);
    }
    for (int w = 0; w < 8; w++) h[w] ^= v[w] ^ v[8 + w];
  }
  for (int w = 0; w < 8; w++) memcpy(state->h[w], &h[w], sizeof h[w]);
}

#undef PASTE_
#undef PASTE
#undef WORDS
#undef MIX
#undef TURN
#undef LANES
#undef NAME
#undef TARGET
