#include "CCurl.h"
#include <CLoader.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static struct ld_library library = {.file = "libcurl.so.4", .package = "libcurl4"};

#define FORWARD(...) LD_FORWARD(&library, __VA_ARGS__)

LD_FORWARD_PLAIN(&library, CURL *, curl_easy_init)
FORWARD(void, curl_easy_cleanup, CURL *)
FORWARD(CURLcode, curl_easy_perform, CURL *)
FORWARD(void, curl_easy_reset, CURL *)
FORWARD(const char *, curl_easy_strerror, CURLcode)
FORWARD(CURLcode, curl_global_init, long)
FORWARD(struct curl_slist *, curl_slist_append, struct curl_slist *, const char *)
FORWARD(void, curl_slist_free_all, struct curl_slist *)

const char *sandboxctl_curl_start(void) {
  const char *fault = ld_fault(&library);
  if (fault) return fault;
  CURLcode code = curl_global_init(CURL_GLOBAL_ALL);
  return code == CURLE_OK ? NULL : curl_easy_strerror(code);
}

#define SET(...) return LD_FUNCTION(&library, curl_easy_setopt)(__VA_ARGS__)

CURLcode sandboxctl_curl_set_long(CURL *handle, CURLoption option, long value) {
  SET(handle, option, value);
}

CURLcode sandboxctl_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
  SET(handle, option, value);
}

CURLcode sandboxctl_curl_set_string(CURL *handle, CURLoption option, const char *value) {
  SET(handle, option, value);
}

CURLcode sandboxctl_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
  SET(handle, option, value);
}

CURLcode sandboxctl_curl_set_callback(
    CURL *handle, CURLoption option, size_t (*value)(char *, size_t, size_t, void *)) {
  SET(handle, option, value);
}

CURLcode sandboxctl_curl_set_seek(CURL *handle, int (*value)(void *, curl_off_t, int)) {
  SET(handle, CURLOPT_SEEKFUNCTION, value);
}

CURLcode sandboxctl_curl_set_progress(
    CURL *handle, int (*value)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t)) {
  SET(handle, CURLOPT_XFERINFOFUNCTION, value);
}

CURLcode sandboxctl_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
  SET(handle, option, value);
}

static int note_socket(void *place, curl_socket_t socket, curlsocktype purpose) {
  (void)purpose;
  *(int *)place = socket;
  return CURL_SOCKOPT_OK;
}

CURLcode sandboxctl_curl_set_socket(CURL *handle, int *socket) {
  CURLcode code = LD_FUNCTION(&library, curl_easy_setopt)(handle, CURLOPT_SOCKOPTDATA, socket);
  if (code != CURLE_OK) return code;
  SET(handle, CURLOPT_SOCKOPTFUNCTION, note_socket);
}

void sandboxctl_curl_acknowledge(int socket) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}
