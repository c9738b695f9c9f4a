#define _GNU_SOURCE
#include "CPostgres.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

// From libpq-fe.h of version 5.
enum { RESULT_COMMAND_OK = 1, RESULT_TUPLES_OK = 2, ERRORS_VERBOSE = 2 };
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

static void load(void) {
    // The binary interface has had version 5 since 2006. The library is never unloaded.
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
#define LOAD(name, returned, parameters)                                                                               \
    pq.name = (__typeof__(pq.name))dlsym(library, "PQ" #name);                                                         \
    if (pq.name == NULL) return;
    FUNCTIONS(LOAD)
#undef LOAD
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
int cpostgres_socket(const cpostgres_connection *connection) { return pq.socket(connection); }
int cpostgres_backend(const cpostgres_connection *connection) { return pq.backendPID(connection); }
bool cpostgres_lacks_password(const cpostgres_connection *connection) {
    return pq.connectionNeedsPassword(connection) != 0;
}
bool cpostgres_uses_tls(cpostgres_connection *connection) { return pq.sslInUse(connection) != 0; }

bool cpostgres_send(cpostgres_connection *connection, const char *statement, int count, const uint32_t *types,
                    const char *const *values, const int *lengths) {
    static const int most = 16;
    int formats[16];
    if (count > most) return false;
    for (int index = 0; index < count; index++) formats[index] = 1;
    return pq.sendQueryParams(connection, statement, count, types, values, lengths, formats, 1) == 1;
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
    return status == RESULT_COMMAND_OK || status == RESULT_TUPLES_OK;
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

bool cpostgres_verifier(cpostgres_connection *connection, const char *password, const char *user, char *verifier,
                        size_t capacity) {
    char *made = pq.encryptPasswordConn(connection, password, user, "scram-sha-256");
    if (made == NULL) return false;
    bool fits = strlen(made) < capacity;
    if (fits) strcpy(verifier, made);
    pq.freemem(made);
    return fits;
}
