#define _GNU_SOURCE
#include "CPostgres.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

// From libpq-fe.h of version 5.
enum { RESULT_COMMAND_OK = 1, RESULT_TUPLES_OK = 2, RESULT_SINGLE_TUPLE = 9, ERRORS_VERBOSE = 2 };
// From ssl.h.
enum { SSL_WANTS_READ = 2 };
enum { FIELD_STATE = 'C', FIELD_DETAIL = 'D' };
struct notification {
    char *channel;
    int backend;
    char *payload;
    struct notification *next;
};
typedef void (*notice_receiver)(void *context, const cpostgres_result *result);

// Each function of libpq that is used, with its type.
#define FUNCTIONS(EACH)                                                                                                \
    EACH(connectStartParams, cpostgres_connection *, (const char *const *, const char *const *, int))                  \
    EACH(connectPoll, int, (cpostgres_connection *))                                                                   \
    EACH(status, int, (const cpostgres_connection *))                                                                  \
    EACH(finish, void, (cpostgres_connection *))                                                                       \
    EACH(errorMessage, char *, (const cpostgres_connection *))                                                         \
    EACH(socket, int, (const cpostgres_connection *))                                                                  \
    EACH(backendPID, int, (const cpostgres_connection *))                                                              \
    EACH(connectionNeedsPassword, int, (const cpostgres_connection *))                                                 \
    EACH(sslInUse, int, (cpostgres_connection *))                                                                      \
    EACH(getssl, void *, (cpostgres_connection *))                                                                     \
    EACH(setSingleRowMode, int, (cpostgres_connection *))                                                              \
    EACH(setnonblocking, int, (cpostgres_connection *, int))                                                           \
    EACH(setErrorVerbosity, int, (cpostgres_connection *, int))                                                        \
    EACH(setNoticeReceiver, notice_receiver, (cpostgres_connection *, notice_receiver, void *))                        \
    EACH(sendQueryParams, int,                                                                                         \
         (cpostgres_connection *, const char *, int, const unsigned *, const char *const *, const int *, const int *,  \
          int))                                                                                                        \
    EACH(sendQuery, int, (cpostgres_connection *, const char *))                                                       \
    EACH(flush, int, (cpostgres_connection *))                                                                         \
    EACH(consumeInput, int, (cpostgres_connection *))                                                                  \
    EACH(isBusy, int, (cpostgres_connection *))                                                                        \
    EACH(getResult, cpostgres_result *, (cpostgres_connection *))                                                      \
    EACH(resultStatus, int, (const cpostgres_result *))                                                                \
    EACH(resultErrorField, char *, (const cpostgres_result *, int))                                                    \
    EACH(ntuples, int, (const cpostgres_result *))                                                                     \
    EACH(nfields, int, (const cpostgres_result *))                                                                     \
    EACH(getvalue, char *, (const cpostgres_result *, int, int))                                                       \
    EACH(getlength, int, (const cpostgres_result *, int, int))                                                         \
    EACH(getisnull, int, (const cpostgres_result *, int, int))                                                         \
    EACH(clear, void, (cpostgres_result *))                                                                            \
    EACH(notifies, struct notification *, (cpostgres_connection *))                                                    \
    EACH(freemem, void, (void *))                                                                                      \
    EACH(encryptPasswordConn, char *, (cpostgres_connection *, const char *, const char *, const char *))

static struct {
#define MEMBER(name, returned, parameters) returned(*name) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
    bool is_loaded;
} pq;

// OpenSSL's functions, from the library that libpq is linked with. They are missing where libpq was built without TLS.
static struct {
    int (*peek)(void *, void *, int);
    int (*pending)(const void *);
    int (*get_error)(const void *, int);
    void (*clear_errors)(void);
} tls;

static void load(void) {
    // The binary interface has had version 5 since 2006. The library is never unloaded.
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
#define LOAD(name, returned, parameters)                                                                               \
    pq.name = (__typeof__(pq.name))dlsym(library, "PQ" #name);                                                         \
    if (pq.name == NULL) return;
    FUNCTIONS(LOAD)
#undef LOAD
    tls.peek = (__typeof__(tls.peek))dlsym(library, "SSL_peek");
    tls.pending = (__typeof__(tls.pending))dlsym(library, "SSL_pending");
    tls.get_error = (__typeof__(tls.get_error))dlsym(library, "SSL_get_error");
    tls.clear_errors = (__typeof__(tls.clear_errors))dlsym(library, "ERR_clear_error");
    pq.is_loaded = true;
}

bool cpostgres_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return pq.is_loaded;
}

// Notices of the server would be printed on standard error.
static void ignore_notice(void *context, const cpostgres_result *result) {
    (void)context;
    (void)result;
}

cpostgres_connection *cpostgres_start(const char *const *names, const char *const *values) {
    // The last argument: the name of the database is no connection string.
    cpostgres_connection *connection = pq.connectStartParams(names, values, 0);
    if (connection == NULL) return NULL;
    pq.setNoticeReceiver(connection, ignore_notice, NULL);
    pq.setErrorVerbosity(connection, ERRORS_VERBOSE);
    return connection;
}
int cpostgres_poll(cpostgres_connection *connection) {
    int result = pq.connectPoll(connection);
    if (result == cpostgres_poll_ok && pq.setnonblocking(connection, 1) != 0) return cpostgres_poll_failed;
    return result;
}
int cpostgres_stage(const cpostgres_connection *connection) { return pq.status(connection); }
void cpostgres_finish(cpostgres_connection *connection) { pq.finish(connection); }
const char *cpostgres_error(const cpostgres_connection *connection) {
    const char *text = pq.errorMessage(connection);
    return text == NULL ? "" : text;
}
bool cpostgres_replace(int descriptor, int other) { return dup3(other, descriptor, O_CLOEXEC) >= 0; }
int cpostgres_socket(const cpostgres_connection *connection) { return pq.socket(connection); }
int cpostgres_backend(const cpostgres_connection *connection) { return pq.backendPID(connection); }
bool cpostgres_lacks_password(const cpostgres_connection *connection) {
    return pq.connectionNeedsPassword(connection) != 0;
}
bool cpostgres_uses_tls(cpostgres_connection *connection) { return pq.sslInUse(connection) != 0; }
int cpostgres_peek(cpostgres_connection *connection, uint8_t *buffer, int capacity) {
    void *ssl = pq.getssl(connection);
    if (ssl == NULL || !tls.peek || !tls.get_error || !tls.clear_errors) return -1;
    tls.clear_errors();
    int count = tls.peek(ssl, buffer, capacity);
    if (count > 0) return count;
    return tls.get_error(ssl, count) == SSL_WANTS_READ ? 0 : -1;
}
int cpostgres_pending(cpostgres_connection *connection) {
    void *ssl = pq.getssl(connection);
    return ssl == NULL || !tls.pending ? 0 : tls.pending(ssl);
}

bool cpostgres_send(cpostgres_connection *connection, const char *statement, int count, const uint32_t *types,
                    const char *const *values, const int *lengths) {
    static const int most = 16;
    int formats[16];
    if (count > most) return false;
    for (int index = 0; index < count; index++) formats[index] = 1;
    return pq.sendQueryParams(connection, statement, count, types, values, lengths, formats, 1) == 1 &&
           pq.setSingleRowMode(connection) == 1;
}
bool cpostgres_send_script(cpostgres_connection *connection, const char *script) {
    return pq.sendQuery(connection, script) == 1;
}
int cpostgres_flush(cpostgres_connection *connection) { return pq.flush(connection); }
bool cpostgres_consume(cpostgres_connection *connection) { return pq.consumeInput(connection) == 1; }
bool cpostgres_is_busy(cpostgres_connection *connection) { return pq.isBusy(connection) != 0; }
cpostgres_result *cpostgres_result_next(cpostgres_connection *connection) { return pq.getResult(connection); }

bool cpostgres_result_is_good(const cpostgres_result *result) {
    int status = pq.resultStatus(result);
    return status == RESULT_COMMAND_OK || status == RESULT_TUPLES_OK || status == RESULT_SINGLE_TUPLE;
}
const char *cpostgres_result_state(const cpostgres_result *result) {
    return pq.resultErrorField(result, FIELD_STATE);
}
const char *cpostgres_result_detail(const cpostgres_result *result) {
    return pq.resultErrorField(result, FIELD_DETAIL);
}
int cpostgres_result_rows(const cpostgres_result *result) { return pq.ntuples(result); }
int cpostgres_result_columns(const cpostgres_result *result) { return pq.nfields(result); }
const uint8_t *cpostgres_result_value(const cpostgres_result *result, int row, int column, int *count) {
    *count = 0;
    if (pq.getisnull(result, row, column) != 0) return NULL;
    *count = pq.getlength(result, row, column);
    return (const uint8_t *)pq.getvalue(result, row, column);
}
void cpostgres_result_free(cpostgres_result *result) { pq.clear(result); }

bool cpostgres_notification(cpostgres_connection *connection, char *payload, size_t capacity) {
    struct notification *notification = pq.notifies(connection);
    if (notification == NULL) return false;
    strncpy(payload, notification->payload, capacity - 1);
    payload[capacity - 1] = 0;
    pq.freemem(notification);
    return true;
}

bool cpostgres_verifier(const char *password, char *verifier, size_t capacity) {
    // From version 16 on, a server tells its connections how many iterations they are to use. This connection has none.
    static const char *const names[] = {"host", "passfile", NULL};
    static const char *const values[] = {"/dev/null/none", "/dev/null/none", NULL};
    cpostgres_connection *connection = pq.connectStartParams(names, values, 0);
    if (connection == NULL) return false;
    char *made = pq.encryptPasswordConn(connection, password, "", "scram-sha-256");
    bool fits = made != NULL && strlen(made) < capacity;
    if (fits) strcpy(verifier, made);
    if (made != NULL) pq.freemem(made);
    pq.finish(connection);
    return fits;
}
