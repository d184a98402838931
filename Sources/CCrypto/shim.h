// The headers of OpenSSL's libcrypto, as Debian's -dev package installs them.
#pragma once
#include <openssl/evp.h>
