#include "CCrypto.h"
#include <CLoader.h>

static struct ld_library library = {.file = "libcrypto.so.3", .package = "libssl3"};

#define FORWARD(...) LD_FORWARD(&library, __VA_ARGS__)
#define FORWARD_PLAIN(...) LD_FORWARD_PLAIN(&library, __VA_ARGS__)

FORWARD(int, EVP_CIPHER_CTX_ctrl, EVP_CIPHER_CTX *, int, int, void *)
FORWARD(void, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX *)
FORWARD_PLAIN(EVP_CIPHER_CTX *, EVP_CIPHER_CTX_new)
FORWARD(void, EVP_CIPHER_CTX_set_flags, EVP_CIPHER_CTX *, int)
FORWARD(int, EVP_CIPHER_CTX_set_padding, EVP_CIPHER_CTX *, int)
FORWARD(EVP_CIPHER *, EVP_CIPHER_fetch, OSSL_LIB_CTX *, const char *, const char *)
FORWARD(int, EVP_CipherFinal_ex, EVP_CIPHER_CTX *, unsigned char *, int *)
FORWARD(
    int, EVP_CipherInit_ex, EVP_CIPHER_CTX *, const EVP_CIPHER *, ENGINE *, const unsigned char *,
    const unsigned char *, int)
FORWARD(
    int, EVP_CipherInit_ex2, EVP_CIPHER_CTX *, const EVP_CIPHER *, const unsigned char *,
    const unsigned char *, int, const OSSL_PARAM *)
FORWARD(int, EVP_CipherUpdate, EVP_CIPHER_CTX *, unsigned char *, int *, const unsigned char *, int)
FORWARD(int, EVP_DigestFinal_ex, EVP_MD_CTX *, unsigned char *, unsigned int *)
FORWARD(int, EVP_DigestInit_ex, EVP_MD_CTX *, const EVP_MD *, ENGINE *)
FORWARD(int, EVP_DigestUpdate, EVP_MD_CTX *, const void *, size_t)
FORWARD(void, EVP_MD_CTX_free, EVP_MD_CTX *)
FORWARD_PLAIN(EVP_MD_CTX *, EVP_MD_CTX_new)
FORWARD_PLAIN(const EVP_CIPHER *, EVP_aes_256_cbc)
FORWARD_PLAIN(const EVP_CIPHER *, EVP_aes_256_wrap)
FORWARD_PLAIN(const EVP_MD *, EVP_md5)
FORWARD_PLAIN(const EVP_MD *, EVP_sha1)
FORWARD_PLAIN(const EVP_MD *, EVP_sha256)
FORWARD_PLAIN(const EVP_MD *, EVP_sha3_384)
FORWARD_PLAIN(OSSL_LIB_CTX *, OSSL_LIB_CTX_new)
FORWARD(
    int, PKCS5_PBKDF2_HMAC, const char *, int, const unsigned char *, int, int, const EVP_MD *, int,
    unsigned char *)
