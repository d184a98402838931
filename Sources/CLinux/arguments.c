#include "CLinux.h"

// The arguments as the C library passes them to constructors. Swift's runtime reads them from
// /proc/self/maps, which a chroot may lack and a security policy may deny: it has none then.
static int argument_count;
static char **argument_list;

__attribute__((constructor)) static void save_arguments(int count, char **list) {
  argument_count = count;
  argument_list = list;
}

const char *cl_argument(int index) {
  return index >= 0 && index < argument_count ? argument_list[index] : NULL;
}
