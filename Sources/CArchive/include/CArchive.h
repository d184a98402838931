// The headers of libarchive, as Debian's -dev package installs them. The library is loaded when it is
// needed (CLoader.h).
#pragma once
#include <archive.h>
#include <archive_entry.h>
