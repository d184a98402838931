// The header of libbz2, as Debian's -dev package installs it. The library is loaded when it is needed
// (CLoader.h).
#pragma once
#include <bzlib.h>
