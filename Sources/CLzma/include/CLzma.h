// The header of liblzma, as Debian's -dev package installs it. The library is loaded when it is needed
// (CLoader.h).
#pragma once
#include <lzma.h>
