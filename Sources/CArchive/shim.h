// The headers of libarchive, as Debian's -dev package installs them.
#pragma once
#include <archive.h>
#include <archive_entry.h>
