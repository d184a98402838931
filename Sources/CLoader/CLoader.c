#include "CLoader.h"
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static void *load(struct ld_library *library) {
  void *handle = __atomic_load_n(&library->handle, __ATOMIC_ACQUIRE);
  if (handle) return handle;
  // Two threads get the same handle.
  handle = dlopen(library->file, RTLD_LAZY | RTLD_LOCAL);
  __atomic_store_n(&library->handle, handle, __ATOMIC_RELEASE);
  return handle;
}

const char *ld_fault(struct ld_library *library) { return load(library) ? NULL : dlerror(); }

void *ld_function(struct ld_library *library, const char *name) {
  void *handle = load(library);
  void *function = handle ? dlsym(handle, name) : NULL;
  if (function) return function;
  const char *reason = dlerror();
  fprintf(
      stderr,
      "sandboxctl: error: cannot load the library %s: %s\n"
      "sandboxctl: hint: install it again; Debian's package is %s\n",
      library->file, reason ? reason : "it lacks a function", library->package);
  // As after a kill: nothing that would need the library runs at the end.
  _exit(1);
}
