// The header of zlib, as Debian's -dev package installs it.
#pragma once
#include <zlib.h>
