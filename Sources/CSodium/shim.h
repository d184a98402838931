// The headers of libsodium, as Debian's -dev package installs them.
#pragma once
#include <sodium.h>
