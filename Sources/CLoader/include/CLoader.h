// Shared libraries that are loaded when one of their functions is called for the first time.
//
// Most commands need none of them, and the system's linker would spend on them two fifths of the time
// in which the program starts: libarchive alone brings eight others.
//
// A module of such a library defines the functions that the program calls, under their own names, as
// calls of those of the library: LD_FORWARD. The compiler compares them with the library's header.
// They are hidden, so that the library never finds them in place of its own.
#pragma once

// A shared library: the name of its file, and of the Debian package that has it.
struct ld_library {
  const char *file, *package;
  void *handle;
};

// Returns null if the library is loaded or can be, otherwise the reason why not, which stays valid.
const char *ld_fault(struct ld_library *library);

// Returns a function of a library, which is loaded for it. If there is none, the program ends with
// status 1 and an error that names the library, its package and the reason.
void *ld_function(struct ld_library *library, const char *name);

// A function of a library, with its type. It is looked up once: two threads get the same.
#define LD_FUNCTION(library, name)                                                                 \
  ({                                                                                               \
    static __typeof__(&name) ld_kept;                                                              \
    __typeof__(&name) ld_found = __atomic_load_n(&ld_kept, __ATOMIC_ACQUIRE);                      \
    if (!ld_found) {                                                                               \
      ld_found = (__typeof__(&name))ld_function(library, #name);                                   \
      __atomic_store_n(&ld_kept, ld_found, __ATOMIC_RELEASE);                                      \
    }                                                                                              \
    ld_found;                                                                                      \
  })

// Defines a function of a library: LD_FORWARD(library, result, name, type of each parameter...).
#define LD_FORWARD(library, result, name, ...)                                                     \
  LD_COUNTED(__VA_ARGS__, LD_8, LD_7, LD_6, LD_5, LD_4, LD_3, LD_2, LD_1)                          \
  (library, result, name, __VA_ARGS__)
#define LD_COUNTED(a, b, c, d, e, f, g, h, found, ...) found

// The same without parameters.
#define LD_FORWARD_PLAIN(library, result, name)                                                    \
  LD_HIDDEN result name(void) { return LD_FUNCTION(library, name)(); }

#define LD_HIDDEN __attribute__((visibility("hidden")))
#define LD_OF(type, name) __typeof__(type) name
#define LD_1(l, r, n, A) LD_HIDDEN r n(LD_OF(A, a)) { return LD_FUNCTION(l, n)(a); }
#define LD_2(l, r, n, A, B)                                                                        \
  LD_HIDDEN r n(LD_OF(A, a), LD_OF(B, b)) { return LD_FUNCTION(l, n)(a, b); }
#define LD_3(l, r, n, A, B, C)                                                                     \
  LD_HIDDEN r n(LD_OF(A, a), LD_OF(B, b), LD_OF(C, c)) { return LD_FUNCTION(l, n)(a, b, c); }
#define LD_4(l, r, n, A, B, C, D)                                                                  \
  LD_HIDDEN r n(LD_OF(A, a), LD_OF(B, b), LD_OF(C, c), LD_OF(D, d)) {                              \
    return LD_FUNCTION(l, n)(a, b, c, d);                                                          \
  }
#define LD_5(l, r, n, A, B, C, D, E)                                                               \
  LD_HIDDEN r n(LD_OF(A, a), LD_OF(B, b), LD_OF(C, c), LD_OF(D, d), LD_OF(E, e)) {                 \
    return LD_FUNCTION(l, n)(a, b, c, d, e);                                                       \
  }
#define LD_6(l, r, n, A, B, C, D, E, F)                                                            \
  LD_HIDDEN r n(LD_OF(A, a), LD_OF(B, b), LD_OF(C, c), LD_OF(D, d), LD_OF(E, e), LD_OF(F, f)) {    \
    return LD_FUNCTION(l, n)(a, b, c, d, e, f);                                                    \
  }
#define LD_7(l, r, n, A, B, C, D, E, F, G)                                                         \
  LD_HIDDEN r n(                                                                                   \
      LD_OF(A, a), LD_OF(B, b), LD_OF(C, c), LD_OF(D, d), LD_OF(E, e), LD_OF(F, f),                \
      LD_OF(G, g)) {                                                                               \
    return LD_FUNCTION(l, n)(a, b, c, d, e, f, g);                                                 \
  }
#define LD_8(l, r, n, A, B, C, D, E, F, G, H)                                                      \
  LD_HIDDEN r n(                                                                                   \
      LD_OF(A, a), LD_OF(B, b), LD_OF(C, c), LD_OF(D, d), LD_OF(E, e), LD_OF(F, f), LD_OF(G, g),   \
      LD_OF(H, h)) {                                                                               \
    return LD_FUNCTION(l, n)(a, b, c, d, e, f, g, h);                                              \
  }
