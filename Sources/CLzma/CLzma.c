#include "CLzma.h"
#include <CLoader.h>

static struct ld_library library = {.file = "liblzma.so.5", .package = "liblzma5"};

#define FORWARD(...) LD_FORWARD(&library, __VA_ARGS__)

FORWARD(lzma_ret, lzma_alone_decoder, lzma_stream *, uint64_t)
FORWARD(lzma_ret, lzma_code, lzma_stream *, lzma_action)
FORWARD(uint32_t, lzma_crc32, const uint8_t *, size_t, uint32_t)
FORWARD(void, lzma_end, lzma_stream *)
FORWARD(lzma_ret, lzma_stream_decoder, lzma_stream *, uint64_t, uint32_t)
