// The header of libcurl, as Debian's -dev package installs it, and its functions.
//
// The library is loaded at the first request and not at the start of the program: with the 30 libraries
// that it needs it would take most of the time in which a command starts, and only repositories in
// object stores need it.
#pragma once
#include <curl/curl.h>
#include <dlfcn.h>

// Returns the library, or null if it cannot be loaded: dlerror(3) says why.
static inline void *sandboxctl_curl_library(void) {
  static void *loaded;
  void *library = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
  if (library) return library;
  // Two threads get the same handle.
  library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  __atomic_store_n(&loaded, library, __ATOMIC_RELEASE);
  return library;
}

// A function of the library, with its type. `sandboxctl_curl_start` has checked that there is one.
#define SANDBOXCTL_CURL(name) ((__typeof__(&name))dlsym(sandboxctl_curl_library(), #name))

// Loads and prepares the library, once for each process. Returns null, or the reason for a failure.
static inline const char *sandboxctl_curl_start(void) {
  static const char *const names[] = {
    "curl_global_init", "curl_easy_init", "curl_easy_cleanup", "curl_easy_reset",
    "curl_easy_perform", "curl_easy_strerror", "curl_easy_setopt", "curl_slist_append",
    "curl_slist_free_all",
  };
  void *library = sandboxctl_curl_library();
  if (!library) return dlerror();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!dlsym(library, names[i])) return dlerror();
  }
  CURLcode code = SANDBOXCTL_CURL(curl_global_init)(CURL_GLOBAL_ALL);
  return code == CURLE_OK ? NULL : SANDBOXCTL_CURL(curl_easy_strerror)(code);
}

static inline CURL *sandboxctl_curl_open(void) { return SANDBOXCTL_CURL(curl_easy_init)(); }

static inline void sandboxctl_curl_close(CURL *handle) {
  SANDBOXCTL_CURL(curl_easy_cleanup)(handle);
}

static inline void sandboxctl_curl_reset(CURL *handle) { SANDBOXCTL_CURL(curl_easy_reset)(handle); }

static inline CURLcode sandboxctl_curl_perform(CURL *handle) {
  return SANDBOXCTL_CURL(curl_easy_perform)(handle);
}

static inline const char *sandboxctl_curl_reason(CURLcode code) {
  return SANDBOXCTL_CURL(curl_easy_strerror)(code);
}

static inline struct curl_slist *sandboxctl_curl_append(
    struct curl_slist *list, const char *text) {
  return SANDBOXCTL_CURL(curl_slist_append)(list, text);
}

static inline void sandboxctl_curl_free(struct curl_slist *list) {
  SANDBOXCTL_CURL(curl_slist_free_all)(list);
}

// The options, by the type of their value: Swift does not import variadic functions.

static inline CURLcode sandboxctl_curl_set_long(CURL *handle, CURLoption option, long value) {
  return SANDBOXCTL_CURL(curl_easy_setopt)(handle, option, value);
}

static inline CURLcode sandboxctl_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
  return SANDBOXCTL_CURL(curl_easy_setopt)(handle, option, value);
}

static inline CURLcode sandboxctl_curl_set_string(CURL *handle, CURLoption option, const char *value) {
  return SANDBOXCTL_CURL(curl_easy_setopt)(handle, option, value);
}

static inline CURLcode sandboxctl_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
  return SANDBOXCTL_CURL(curl_easy_setopt)(handle, option, value);
}

static inline CURLcode sandboxctl_curl_set_callback(
    CURL *handle, CURLoption option, size_t (*value)(char *, size_t, size_t, void *)) {
  return SANDBOXCTL_CURL(curl_easy_setopt)(handle, option, value);
}

static inline CURLcode sandboxctl_curl_set_seek(
    CURL *handle, int (*value)(void *, curl_off_t, int)) {
  return SANDBOXCTL_CURL(curl_easy_setopt)(handle, CURLOPT_SEEKFUNCTION, value);
}

static inline CURLcode sandboxctl_curl_set_progress(
    CURL *handle, int (*value)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t)) {
  return SANDBOXCTL_CURL(curl_easy_setopt)(handle, CURLOPT_XFERINFOFUNCTION, value);
}

static inline CURLcode sandboxctl_curl_set_list(
    CURL *handle, CURLoption option, struct curl_slist *value) {
  return SANDBOXCTL_CURL(curl_easy_setopt)(handle, option, value);
}
