#include "CBzip2.h"
#include <CLoader.h>

static struct ld_library library = {.file = "libbz2.so.1", .package = "libbz2-1.0"};

#define FORWARD(...) LD_FORWARD(&library, __VA_ARGS__)

FORWARD(int, BZ2_bzDecompress, bz_stream *)
FORWARD(int, BZ2_bzDecompressEnd, bz_stream *)
FORWARD(int, BZ2_bzDecompressInit, bz_stream *, int, int)
