// The headers of OpenSSL's libcrypto, as Debian's -dev package installs them. The library is loaded
// when it is needed (CLoader.h).
#pragma once
#include <openssl/evp.h>
