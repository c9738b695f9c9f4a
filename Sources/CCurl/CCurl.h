// libcurl's setters and getters are variadic, which Swift cannot call: one typed door per argument type.
#pragma once
#include <curl/curl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

// libcurl copies codes, verifiers, tokens and client secrets through many small buffers and frees them as they are.
// With an allocator of ours every block it gives back is zeroed first.
static inline void ccurl_erasing_free(void *block) {
    if (block == NULL) return;
    explicit_bzero(block, malloc_usable_size(block));
    free(block);
}
static inline void *ccurl_erasing_realloc(void *block, size_t size) {
    if (block == NULL) return malloc(size);
    size_t old = malloc_usable_size(block);
    if (size != 0 && size <= old && size >= old / 2) return block;
    void *moved = size == 0 ? NULL : malloc(size);
    if (moved == NULL && size != 0) return NULL;
    if (moved != NULL) memcpy(moved, block, old < size ? old : size);
    ccurl_erasing_free(block);
    return moved;
}
static inline CURLcode ccurl_global_init_erasing(void) {
    return curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, ccurl_erasing_free, ccurl_erasing_realloc, strdup, calloc);
}

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_blob(CURL *easy, CURLoption option, void *bytes, size_t count) {
    struct curl_blob blob = {.data = bytes, .len = count, .flags = CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, &blob);
}
typedef size_t (*ccurl_data_callback)(char *bytes, size_t size, size_t count, void *context);
static inline CURLcode ccurl_set_data_callback(CURL *easy, CURLoption option, ccurl_data_callback callback) {
    return curl_easy_setopt(easy, option, callback);
}
static inline CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
// The union member of a finished transfer, which Swift cannot name.
static inline CURLcode ccurl_message_result(const CURLMsg *message) { return message->data.result; }
