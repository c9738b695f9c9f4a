// libcurl for Swift, which cannot call variadic functions: one wrapper for each argument type. The library is loaded
// when it is first needed: with about thirty libraries that it needs it takes longer to load than the daemon takes to
// be ready.
#pragma once
#include <stdint.h>
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

/// Loads libcurl with an allocator that zeroes memory before it is freed: libcurl copies codes, verifiers, tokens and
/// client secrets into many small buffers. False if libcurl or one of its functions is missing. Call it once, before
/// anything else of this file.
bool ccurl_load(void);

CURL *ccurl_easy_init(void);
void ccurl_easy_cleanup(CURL *easy);
const char *ccurl_easy_strerror(CURLcode code);
/// Which directions of a transfer are paused from now on; one that is not goes on at once.
CURLcode ccurl_easy_pause(CURL *easy, int paused);
static const int ccurl_pause_receiving = CURLPAUSE_RECV;
static const int ccurl_pause_sending = CURLPAUSE_SEND;
/// What a data callback returns to pause its direction.
static const size_t ccurl_paused = CURL_WRITEFUNC_PAUSE;
_Static_assert(CURL_WRITEFUNC_PAUSE == CURL_READFUNC_PAUSE, "one number pauses both directions");
/// The file of certificate authorities that libcurl was built with, or NULL.
const char *ccurl_authority_file(void);

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value);
CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value);
CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value);
CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value);
CURLcode ccurl_set_blob(CURL *easy, CURLoption option, void *bytes, size_t count);
typedef size_t (*ccurl_data_callback)(char *bytes, size_t size, size_t count, void *context);
CURLcode ccurl_set_data_callback(CURL *easy, CURLoption option, ccurl_data_callback callback);
/// Macros of libcurl, which Swift does not import.
static const long ccurl_auth_basic = CURLAUTH_BASIC;
static const long ccurl_header_separate = CURLHEADER_SEPARATE;
/// The transfer connects to no loopback or link-local address and to none of this machine's own.
CURLcode ccurl_refuse_inside(CURL *easy);
/// Also sends nothing over a kept connection to such an address. `is_refused` becomes true when an address was refused,
/// and must outlive the transfer.
CURLcode ccurl_refuse_inside_and_kept(CURL *easy, bool *is_refused);
/// Like ``ccurl_refuse_inside``, and to no address of a private network.
CURLcode ccurl_refuse_private(CURL *easy);
/// Until when a request may be sent, by the time since boot in nanoseconds.
struct ccurl_sending {
    int64_t end;
    bool has_begun;
};
/// The request is not sent when so much time has passed, suspended time included.
CURLcode ccurl_send_within(CURL *easy, int64_t nanoseconds, struct ccurl_sending *place);
/// Of the server of the last transfer, or NULL; valid as long as the handle. With a proxy it is the proxy's.
const char *ccurl_address(CURL *easy);
/// From now on the head of each request is zeroed where it was sent from: libcurl keeps that buffer. `is_sent` becomes
/// true with the first head that a server got, and must outlive the transfer; NULL ends both.
CURLcode ccurl_erase_sent(CURL *easy, bool *is_sent);
/// Of the server of the last transfer, one of the numbers below. With a proxy it is the proxy's.
int ccurl_peer(CURL *easy);
static const int ccurl_peer_unknown = 0;
static const int ccurl_peer_elsewhere = 1;
static const int ccurl_peer_private = 2;
static const int ccurl_peer_inside = 3;
CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value);

/// Content codings (RFC 9110 section 8.4.1). `deflate` is zlib's format; many servers send it without zlib's header.
static const int ccurl_gzip = 0;
static const int ccurl_zlib = 1;
static const int ccurl_deflate = 2;
static const int ccurl_brotli = 3;
static const int ccurl_zstd = 4;
/// True if libcurl was built with a library that decodes this.
bool ccurl_decodes(int coding);
struct ccurl_decoder;
/// NULL if there is no such library or no memory.
struct ccurl_decoder *ccurl_decoder_new(int coding);
void ccurl_decoder_free(struct ccurl_decoder *decoder);
static const int ccurl_decoding_goes_on = 0;
static const int ccurl_decoding_ended = 1;
static const int ccurl_decoding_failed = 2;
/// The counts are how many bytes there are and how much room there is; afterwards how many were read and written. If
/// none were written, more input is needed.
int ccurl_decode(struct ccurl_decoder *decoder, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count);
/// Called by `ccurl_load`.
void ccurl_load_decoders(void);

struct curl_slist *ccurl_slist_append(struct curl_slist *list, const char *text);
void ccurl_slist_free_all(struct curl_slist *list);

CURLM *ccurl_multi_init(void);
CURLMcode ccurl_multi_cleanup(CURLM *multi);
CURLMcode ccurl_multi_add_handle(CURLM *multi, CURL *easy);
CURLMcode ccurl_multi_remove_handle(CURLM *multi, CURL *easy);
CURLMcode ccurl_multi_perform(CURLM *multi, int *running);
CURLMcode ccurl_multi_poll(CURLM *multi, int milliseconds);
/// The same, and until one of the other descriptors is ready (CURL_WAIT_POLLIN, CURL_WAIT_POLLOUT).
CURLMcode ccurl_multi_poll_with(CURLM *multi, struct curl_waitfd *others, unsigned count, int milliseconds);
CURLMcode ccurl_multi_wakeup(CURLM *multi);
CURLMsg *ccurl_multi_info_read(CURLM *multi, int *left);
/// A member of a union, which Swift cannot access.
static inline CURLcode ccurl_message_result(const CURLMsg *message) { return message->data.result; }
