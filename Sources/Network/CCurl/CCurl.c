#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "CCurl.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// With the types of libcurl's own header: a wrapper with wrong types does not compile.
#define FUNCTIONS(EACH)                                                                                                \
    EACH(global_init)                                                                                                  \
    EACH(version_info)                                                                                                 \
    EACH(easy_init)                                                                                                    \
    EACH(easy_cleanup)                                                                                                 \
    EACH(easy_setopt)                                                                                                  \
    EACH(easy_getinfo)                                                                                                 \
    EACH(easy_strerror)                                                                                                \
    EACH(easy_pause)                                                                                                   \
    EACH(slist_append)                                                                                                 \
    EACH(slist_free_all)                                                                                               \
    EACH(multi_init)                                                                                                   \
    EACH(multi_cleanup)                                                                                                \
    EACH(multi_add_handle)                                                                                             \
    EACH(multi_remove_handle)                                                                                          \
    EACH(multi_perform)                                                                                                \
    EACH(multi_poll)                                                                                                   \
    EACH(multi_wakeup)                                                                                                 \
    EACH(multi_info_read)

static struct {
#define MEMBER(name) __typeof__(curl_##name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} curl;

bool ccurl_load(void) {
    // The binary interface has had version 4 since 2006. The library is never unloaded.
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return false;
#define LOAD(name)                                                                                                     \
    curl.name = (__typeof__(curl.name))dlsym(library, "curl_" #name);                                                  \
    if (curl.name == NULL) return false;
    FUNCTIONS(LOAD)
#undef LOAD
    ccurl_load_decoders();
    return curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

CURL *ccurl_easy_init(void) { return curl.easy_init(); }
void ccurl_easy_cleanup(CURL *easy) { curl.easy_cleanup(easy); }
CURLcode ccurl_easy_pause(CURL *easy, int paused) { return curl.easy_pause(easy, paused); }
const char *ccurl_easy_strerror(CURLcode code) { return curl.easy_strerror(code); }

const char *ccurl_authority_file(void) {
    const curl_version_info_data *version = curl.version_info(CURLVERSION_SEVENTH);
    // The member `cainfo` exists since the seventh version of the structure.
    return version != NULL && version->age >= CURLVERSION_SEVENTH ? version->cainfo : NULL;
}

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) { return curl.easy_setopt(easy, option, value); }
CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl.easy_setopt(easy, option, value);
}
CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl.easy_setopt(easy, option, value);
}
CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl.easy_setopt(easy, option, value);
}
CURLcode ccurl_set_blob(CURL *easy, CURLoption option, void *bytes, size_t count) {
    struct curl_blob blob = {.data = bytes, .len = count, .flags = CURL_BLOB_COPY};
    return curl.easy_setopt(easy, option, &blob);
}

static const struct in6_addr *six_of(const struct sockaddr *address) {
    return address->sa_family == AF_INET6 ? &((const struct sockaddr_in6 *)address)->sin6_addr : NULL;
}

// The four bytes of an IPv4 address, also of one that is mapped into IPv6 (::ffff:a.b.c.d); NULL for others.
static const unsigned char *four_of(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return (const unsigned char *)&((const struct sockaddr_in *)address)->sin_addr;
    const struct in6_addr *six = six_of(address);
    return six != NULL && IN6_IS_ADDR_V4MAPPED(six) ? &six->s6_addr[12] : NULL;
}

// Loopback, link-local and unspecified addresses.
static bool is_inside(const struct sockaddr *address) {
    const unsigned char *four = four_of(address);
    if (four != NULL) return four[0] == 0 || four[0] == 127 || (four[0] == 169 && four[1] == 254);
    const struct in6_addr *six = six_of(address);
    return six == NULL || IN6_IS_ADDR_LOOPBACK(six) || IN6_IS_ADDR_UNSPECIFIED(six) || IN6_IS_ADDR_LINKLOCAL(six);
}

// One of this machine's interfaces: a server that listens on all interfaces is reachable there as on loopback.
static bool is_own(const struct sockaddr *address) {
    const unsigned char *four = four_of(address);
    const struct in6_addr *six = six_of(address);
    struct ifaddrs *interfaces;
    // Where the interfaces cannot be listed, no address is known to be another machine's.
    if (getifaddrs(&interfaces) != 0) return true;
    bool found = false;
    for (struct ifaddrs *each = interfaces; each != NULL && !found; each = each->ifa_next) {
        if (each->ifa_addr == NULL) continue;
        if (four != NULL && each->ifa_addr->sa_family == AF_INET) {
            found = memcmp(four, four_of(each->ifa_addr), 4) == 0;
        } else if (four == NULL && six != NULL && each->ifa_addr->sa_family == AF_INET6) {
            found = memcmp(six, six_of(each->ifa_addr), sizeof *six) == 0;
        }
    }
    freeifaddrs(interfaces);
    return found;
}

// Private networks (RFC 1918), shared addresses of carriers (RFC 6598) and unique local addresses (RFC 4193).
static bool is_private(const struct sockaddr *address) {
    const unsigned char *four = four_of(address);
    if (four != NULL)
        return four[0] == 10 || (four[0] == 172 && (four[1] & 0xF0) == 16) || (four[0] == 192 && four[1] == 168) ||
               (four[0] == 100 && (four[1] & 0xC0) == 64);
    const struct in6_addr *six = six_of(address);
    return six == NULL || (six->s6_addr[0] & 0xFE) == 0xFC;
}

static int place_of(const char *text) {
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    const struct sockaddr *address;
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        address = (const struct sockaddr *)&four;
    } else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1) {
        address = (const struct sockaddr *)&six;
    } else {
        return ccurl_peer_unknown;
    }
    if (is_inside(address) || is_own(address)) return ccurl_peer_inside;
    return is_private(address) ? ccurl_peer_private : ccurl_peer_elsewhere;
}

int ccurl_peer(CURL *easy) {
    char *text = NULL;
    if (curl.easy_getinfo(easy, CURLINFO_PRIMARY_IP, &text) != CURLE_OK || text == NULL) return ccurl_peer_unknown;
    return place_of(text);
}

const char *ccurl_address(CURL *easy) {
    char *text = NULL;
    if (curl.easy_getinfo(easy, CURLINFO_PRIMARY_IP, &text) != CURLE_OK || text == NULL) return NULL;
    struct in6_addr six;
    struct in_addr four;
    if (inet_pton(AF_INET, text, &four) == 1) return text;
    // A link-local address is one only together with an interface.
    return inet_pton(AF_INET6, text, &six) == 1 && !IN6_IS_ADDR_LINKLOCAL(&six) ? text : NULL;
}

static curl_socket_t open_elsewhere(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)context;
    (void)purpose;
    if (is_inside(&address->addr) || is_own(&address->addr) || is_private(&address->addr)) return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

CURLcode ccurl_refuse_private(CURL *easy) {
    return curl.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_elsewhere);
}

static curl_socket_t open_outside(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)purpose;
    if (is_inside(&address->addr) || is_own(&address->addr)) {
        if (context != NULL) *(bool *)context = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

CURLcode ccurl_refuse_inside(CURL *easy) {
    return curl.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_outside);
}

static int is_outside(void *context, char *address, char *local, int port, int local_port) {
    (void)local, (void)port, (void)local_port;
    const int place = address == NULL ? ccurl_peer_unknown : place_of(address);
    if (place == ccurl_peer_elsewhere || place == ccurl_peer_private) return CURL_PREREQFUNC_OK;
    *(bool *)context = true;
    return CURL_PREREQFUNC_ABORT;
}

CURLcode ccurl_refuse_inside_and_kept(CURL *easy, bool *is_refused) {
    CURLcode set = ccurl_refuse_inside(easy);
    if (!set) set = curl.easy_setopt(easy, CURLOPT_OPENSOCKETDATA, is_refused);
    if (!set) set = curl.easy_setopt(easy, CURLOPT_PREREQFUNCTION, is_outside);
    return set ? set : curl.easy_setopt(easy, CURLOPT_PREREQDATA, is_refused);
}

static int is_in_time(void *context, char *address, char *local, int port, int local_port) {
    (void)address, (void)local, (void)port, (void)local_port;
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now)) return CURL_PREREQFUNC_ABORT;
    struct ccurl_sending *sending = context;
    if (now.tv_sec * INT64_C(1000000000) + now.tv_nsec > sending->end) return CURL_PREREQFUNC_ABORT;
    sending->has_begun = true;
    return CURL_PREREQFUNC_OK;
}

CURLcode ccurl_send_within(CURL *easy, int64_t nanoseconds, struct ccurl_sending *place) {
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now)) return CURLE_FAILED_INIT;
    place->has_begun = false;
    place->end = now.tv_sec * INT64_C(1000000000) + now.tv_nsec + nanoseconds;
    const CURLcode set = curl.easy_setopt(easy, CURLOPT_PREREQFUNCTION, is_in_time);
    return set ? set : curl.easy_setopt(easy, CURLOPT_PREREQDATA, place);
}

static int erase_sent(CURL *easy, curl_infotype type, char *bytes, size_t count, void *context) {
    (void)easy;
    // What libcurl says of an HTTP/2 request has its fields in it. Other words may be constants.
    const bool is_field = type == CURLINFO_TEXT && memmem(bytes, count, "authorization: ", 15) != NULL;
    if (type != CURLINFO_HEADER_OUT && !is_field) return 0;
    // The head of the request to a proxy has other fields.
    if (type == CURLINFO_HEADER_OUT && (count < 8 || memcmp(bytes, "CONNECT ", 8) != 0)) *(bool *)context = true;
    explicit_bzero(bytes, count);
    return 0;
}

CURLcode ccurl_erase_sent(CURL *easy, bool *is_sent) {
    CURLcode set = curl.easy_setopt(easy, CURLOPT_DEBUGFUNCTION, is_sent == NULL ? NULL : erase_sent);
    if (!set) set = curl.easy_setopt(easy, CURLOPT_DEBUGDATA, is_sent);
    return set ? set : curl.easy_setopt(easy, CURLOPT_VERBOSE, is_sent == NULL ? 0L : 1L);
}

CURLcode ccurl_set_data_callback(CURL *easy, CURLoption option, ccurl_data_callback callback) {
    return curl.easy_setopt(easy, option, callback);
}
CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) { return curl.easy_getinfo(easy, info, value); }

struct curl_slist *ccurl_slist_append(struct curl_slist *list, const char *text) {
    return curl.slist_append(list, text);
}
void ccurl_slist_free_all(struct curl_slist *list) { curl.slist_free_all(list); }

CURLM *ccurl_multi_init(void) { return curl.multi_init(); }
CURLMcode ccurl_multi_cleanup(CURLM *multi) { return curl.multi_cleanup(multi); }
CURLMcode ccurl_multi_add_handle(CURLM *multi, CURL *easy) { return curl.multi_add_handle(multi, easy); }
CURLMcode ccurl_multi_remove_handle(CURLM *multi, CURL *easy) { return curl.multi_remove_handle(multi, easy); }
CURLMcode ccurl_multi_perform(CURLM *multi, int *running) { return curl.multi_perform(multi, running); }
CURLMcode ccurl_multi_poll(CURLM *multi, int milliseconds) {
    return curl.multi_poll(multi, NULL, 0, milliseconds, NULL);
}
CURLMcode ccurl_multi_poll_with(CURLM *multi, struct curl_waitfd *others, unsigned count, int milliseconds) {
    return curl.multi_poll(multi, others, count, milliseconds, NULL);
}
CURLMcode ccurl_multi_wakeup(CURLM *multi) { return curl.multi_wakeup(multi); }
CURLMsg *ccurl_multi_info_read(CURLM *multi, int *left) { return curl.multi_info_read(multi, left); }
