// The header of libcurl, as Debian's -dev package installs it, and what Swift cannot call of it. The
// library is loaded at the first request (CLoader.h): with the 30 libraries that it needs it would take
// most of the time in which a command starts, and only repositories in object stores need it.
#pragma once
#include <curl/curl.h>

// Loads and prepares the library, once for each process. Returns null, or the reason for a failure.
const char *sandboxctl_curl_start(void);

// The options, by the type of their value: Swift does not import variadic functions.

CURLcode sandboxctl_curl_set_long(CURL *handle, CURLoption option, long value);
CURLcode sandboxctl_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value);
CURLcode sandboxctl_curl_set_string(CURL *handle, CURLoption option, const char *value);
CURLcode sandboxctl_curl_set_pointer(CURL *handle, CURLoption option, void *value);
CURLcode sandboxctl_curl_set_callback(
    CURL *handle, CURLoption option, size_t (*value)(char *, size_t, size_t, void *));
CURLcode sandboxctl_curl_set_seek(CURL *handle, int (*value)(void *, curl_off_t, int));
CURLcode sandboxctl_curl_set_progress(
    CURL *handle, int (*value)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t));
CURLcode sandboxctl_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value);

// Stores the descriptor of each new connection of a handle in `socket`, which must live as long as the
// handle.
CURLcode sandboxctl_curl_set_socket(CURL *handle, int *socket);

// Acknowledges at once what a TCP connection has received (TCP_QUICKACK, tcp(7)).
void sandboxctl_curl_acknowledge(int socket);
