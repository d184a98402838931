// Takes blocks in for LANES lanes at once, word for word as RFC 7693, section 3.2, has it: lane i of
// each vector is the word of input i. Included once for each set of instructions: LANES, NAME, TARGET.

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define WORDS PASTE(words, NAME)
#define LOOSE PASTE(loose, NAME)
#define MIX PASTE(mix, NAME)
#define LOAD PASTE(load, NAME)
#define INLINE TARGET __attribute__((always_inline)) static inline

#if LANES == 1
typedef uint64_t WORDS;
#else
typedef uint64_t WORDS __attribute__((vector_size(8 * LANES)));
// A vector as it lies in memory, at any place.
typedef uint64_t LOOSE __attribute__((vector_size(8 * LANES), aligned(1), may_alias));
#endif

#define TURN(x, bits) (((x) >> (bits)) | ((x) << (64 - (bits))))
INLINE void MIX(WORDS *a, WORDS *b, WORDS *c, WORDS *d, WORDS x, WORDS y) {
  *a += *b + x;
  *d = TURN(*d ^ *a, 32);
  *c += *d;
  *b = TURN(*b ^ *c, 24);
  *a += *b + y;
  *d = TURN(*d ^ *a, 16);
  *c += *d;
  *b = TURN(*b ^ *c, 63);
}

// Loads a block of each lane and turns it round: `m[w]` gets the lanes' words number w. `__builtin_
// shufflevector` numbers the first vector's words from 0, the second's from LANES.
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#if LANES == 1
INLINE void LOAD(const struct lane *lanes, size_t at, WORDS *m) {
  memcpy(m, lanes[0].from + at, 128);
}
#elif LANES == 4
INLINE void LOAD(const struct lane *lanes, size_t at, WORDS *m) {
  for (int part = 0; part < 4; part++) {
    WORDS r[4], t[4];
    for (int i = 0; i < 4; i++) r[i] = *(const LOOSE *)(lanes[i].from + at + 32 * part);
    for (int i = 0; i < 4; i += 2) {
      t[i] = PICK(r[i], r[i + 1], 0, 4, 2, 6);
      t[i + 1] = PICK(r[i], r[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
      m[4 * part + i] = PICK(t[i], t[2 + i], 0, 1, 4, 5);
      m[4 * part + 2 + i] = PICK(t[i], t[2 + i], 2, 3, 6, 7);
    }
  }
}
#else
INLINE void LOAD(const struct lane *lanes, size_t at, WORDS *m) {
  for (int part = 0; part < 2; part++) {
    WORDS r[8], t[8], u[8];
    for (int i = 0; i < 8; i++) r[i] = *(const LOOSE *)(lanes[i].from + at + 64 * part);
    for (int i = 0; i < 8; i += 2) {
      t[i] = PICK(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
      t[i + 1] = PICK(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int i = 0; i < 8; i += 4) {
      for (int k = 0; k < 2; k++) {
        u[i + k] = PICK(t[i + k], t[i + 2 + k], 0, 1, 8, 9, 4, 5, 12, 13);
        u[i + 2 + k] = PICK(t[i + k], t[i + 2 + k], 2, 3, 10, 11, 6, 7, 14, 15);
      }
    }
    for (int k = 0; k < 4; k++) {
      m[8 * part + k] = PICK(u[k], u[4 + k], 0, 1, 2, 3, 8, 9, 10, 11);
      m[8 * part + 4 + k] = PICK(u[k], u[4 + k], 4, 5, 6, 7, 12, 13, 14, 15);
    }
  }
}
#endif

// Takes `blocks` blocks of each lane in; a lane that is not among the `live` ones reads what the
// first does, for nothing.
TARGET static void PASTE(absorb, NAME)(struct lane *lanes, size_t live, size_t blocks) {
  struct lane padded[LANES];
  for (size_t i = 0; i < LANES; i++) padded[i] = lanes[i < live ? i : 0];
  union {
    uint64_t lane[LANES];
    WORDS words;
  } h[8], done, step, last;
  for (size_t i = 0; i < LANES; i++) {
    for (int w = 0; w < 8; w++) h[w].lane[i] = padded[i].h[w];
    done.lane[i] = padded[i].done;
    step.lane[i] = padded[i].step;
    last.lane[i] = padded[i].last;
  }
  for (size_t block = 0; block < blocks; block++) {
    WORDS m[16], v[16], zero = {0};
    LOAD(padded, 128 * block, m);
    done.words += step.words;
    for (int w = 0; w < 8; w++) {
      v[w] = h[w].words;
      v[8 + w] = zero + start[w];
    }
    v[12] ^= done.words;
    v[14] ^= last.words;
#pragma clang loop unroll(full)
    for (int round = 0; round < 12; round++) {
      const uint8_t *s = order[round];
      MIX(&v[0], &v[4], &v[8], &v[12], m[s[0]], m[s[1]]);
      MIX(&v[1], &v[5], &v[9], &v[13], m[s[2]], m[s[3]]);
      MIX(&v[2], &v[6], &v[10], &v[14], m[s[4]], m[s[5]]);
      MIX(&v[3], &v[7], &v[11], &v[15], m[s[6]], m[s[7]]);
      MIX(&v[0], &v[5], &v[10], &v[15], m[s[8]], m[s[9]]);
      MIX(&v[1], &v[6], &v[11], &v[12], m[s[10]], m[s[11]]);
      MIX(&v[2], &v[7], &v[8], &v[13], m[s[12]], m[s[13]]);
      MIX(&v[3], &v[4], &v[9], &v[14], m[s[14]], m[s[15]]);
    }
    for (int w = 0; w < 8; w++) h[w].words ^= v[w] ^ v[8 + w];
  }
  for (size_t i = 0; i < live; i++) {
    for (int w = 0; w < 8; w++) lanes[i].h[w] = h[w].lane[i];
    lanes[i].done = done.lane[i];
  }
}

#undef PASTE_
#undef PASTE
#undef WORDS
#undef LOOSE
#undef MIX
#undef LOAD
#undef INLINE
#undef TURN
#undef PICK
#undef LANES
#undef NAME
#undef TARGET
