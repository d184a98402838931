// The headers of libzstd, as Debian's -dev package installs them.
#pragma once
#include <zstd.h>
#include <zstd_errors.h>
