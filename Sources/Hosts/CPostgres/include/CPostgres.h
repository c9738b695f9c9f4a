// libpq for Swift. Neither libpq nor its headers are needed to build or to start: the library is loaded when a database
// is configured. The types are declared as libpq 5 has them since PostgreSQL 10; its binary interface keeps them.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Loads libpq; from any thread, before anything else of this file. False if it or one of its functions is missing.
bool cpostgres_load(void);

/// A connection. It belongs to one thread at a time.
typedef struct pg_conn cpostgres_connection;
typedef struct pg_result cpostgres_result;

/// Begins to connect, with two arrays that end with NULL. Resolving the server's name may block. NULL without memory.
cpostgres_connection *cpostgres_start(const char *const *names, const char *const *values);
/// Continues to connect. Returns one of the numbers below.
int cpostgres_poll(cpostgres_connection *connection);
static const int cpostgres_poll_failed = 0;
static const int cpostgres_poll_reading = 1;
static const int cpostgres_poll_writing = 2;
static const int cpostgres_poll_ok = 3;
/// One of the numbers below, or another one. After a failure only `cpostgres_stage_failed`.
int cpostgres_stage(const cpostgres_connection *connection);
static const int cpostgres_stage_ready = 0;
static const int cpostgres_stage_failed = 1;
static const int cpostgres_stage_started = 2;
// The server is to say whether it lets the role in.
static const int cpostgres_stage_authenticating = 4;
static const int cpostgres_stage_tls = 7;
static const int cpostgres_stage_needed = 8;
/// It is being found out whether the server takes changes.
static const int cpostgres_stage_checking = 9;
static const int cpostgres_stage_checking_target = 12;
static const int cpostgres_stage_checking_standby = 13;
void cpostgres_finish(cpostgres_connection *connection);
/// The text of the last failure; never NULL. An error of the server has its SQLSTATE after the severity.
const char *cpostgres_error(const cpostgres_connection *connection);
int cpostgres_socket(const cpostgres_connection *connection);
/// Makes the descriptor a copy of another one. False if that failed.
bool cpostgres_replace(int descriptor, int other);
/// The number of the server's process, as it was told when the connection was made. A pooler tells another one.
int cpostgres_backend(const cpostgres_connection *connection);
/// True if the server asked for a password and there was none.
bool cpostgres_lacks_password(const cpostgres_connection *connection);
bool cpostgres_uses_tls(cpostgres_connection *connection);
/// Copies the rest of one TLS record, of which no function that reads takes more at once, and leaves it to be read.
/// Returns the number of bytes; 0 if no record is complete, -1 if there will be none or the library cannot tell.
int cpostgres_peek(cpostgres_connection *connection, uint8_t *buffer, int capacity);
/// How many bytes of a record were decrypted and not read.
int cpostgres_pending(cpostgres_connection *connection);

/// Sends a statement with parameters in binary format and asks for binary results, one for each row.
bool cpostgres_send(cpostgres_connection *connection, const char *statement, int count, const uint32_t *types,
                    const char *const *values, const int *lengths);
/// Sends several statements without parameters, which the server runs as one transaction.
bool cpostgres_send_script(cpostgres_connection *connection, const char *script);
/// Writes what is pending: 0 if nothing is left, 1 if something is, -1 after a failure.
int cpostgres_flush(cpostgres_connection *connection);
/// Reads what is there. False after a failure, also when the server has closed the connection.
bool cpostgres_consume(cpostgres_connection *connection);
/// True if `cpostgres_result_next` would wait.
bool cpostgres_is_busy(cpostgres_connection *connection);
cpostgres_result *cpostgres_result_next(cpostgres_connection *connection);

/// True for rows, and for a statement that returns none.
bool cpostgres_result_is_good(const cpostgres_result *result);
const char *cpostgres_result_state(const cpostgres_result *result);
const char *cpostgres_result_detail(const cpostgres_result *result);
int cpostgres_result_rows(const cpostgres_result *result);
int cpostgres_result_columns(const cpostgres_result *result);
/// The bytes of a value, valid until the result is freed; NULL for SQL's null.
const uint8_t *cpostgres_result_value(const cpostgres_result *result, int row, int column, int *count);
void cpostgres_result_free(cpostgres_result *result);

/// Takes the next notification that was read, and copies its payload, cut to the capacity. False if there is none.
bool cpostgres_notification(cpostgres_connection *connection, char *payload, size_t capacity);

/// The verifier that a server stores for a password (SCRAM-SHA-256, RFC 7677). False if it cannot be made or does not fit.
bool cpostgres_verifier(const char *password, char *verifier, size_t capacity);
