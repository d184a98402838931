// The low-level interface of libfuse3, as Debian's -dev package installs it (3.14).
#pragma once
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
