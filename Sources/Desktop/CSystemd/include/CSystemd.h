// sd-bus for Swift: a wrapper for each function that is used, with fixed types where libsystemd's function is variadic
// or takes a void pointer. The library is loaded when the bus is first used, because most runs never use it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

/// Loads libsystemd. Returns false if it or one of its functions is missing. May be called from any thread, any number
/// of times; must be called before anything else of this file.
bool csystemd_load(void);

// A result below zero is a negated errno.

/// Begins to connect and does not wait. Without an address it connects to the user's or the system's bus, as the
/// environment names it.
int csystemd_open(const char *address, bool system, sd_bus **bus);
/// Closes the connection without sending pending messages, and frees it.
void csystemd_close(sd_bus *bus);
/// Above zero when the connection is established (the bus has responded to Hello).
int csystemd_is_ready(sd_bus *bus);
/// Processes one pending step. The result is above zero if there was one; `message` is set if a message arrived.
int csystemd_process(sd_bus *bus, sd_bus_message **message);
/// Waits until there is something to process, at most that many microseconds.
int csystemd_wait(sd_bus *bus, uint64_t microseconds);
/// The descriptor and events to poll for, and the deadline (CLOCK_MONOTONIC in microseconds, UINT64_MAX for none).
int csystemd_interest(sd_bus *bus, int *descriptor, int *events, uint64_t *deadline);
/// Sends the message and waits for its reply. If the other process returned an error, its name is written to `error`.
int csystemd_call(sd_bus *bus, sd_bus_message *message, uint64_t microseconds, char *error, size_t capacity,
                  sd_bus_message **answer);

int csystemd_message_call(sd_bus *bus, sd_bus_message **message, const char *destination, const char *path,
                          const char *interface, const char *member);
sd_bus_message *csystemd_message_unref(sd_bus_message *message);
/// Marks the message so that its memory is erased when it is freed. Without effect in libsystemd before version 246.
void csystemd_message_sensitive(sd_bus_message *message);
bool csystemd_message_is_signal(sd_bus_message *message, const char *interface, const char *member);
const char *csystemd_message_path(sd_bus_message *message);
/// The unique bus name of the message's sender.
const char *csystemd_message_sender(sd_bus_message *message);

/// Appends a string, an object path or a signature.
int csystemd_append_text(sd_bus_message *message, char type, const char *text);
int csystemd_append_bool(sd_bus_message *message, bool value);
int csystemd_append_number(sd_bus_message *message, uint32_t value);
int csystemd_append_signed(sd_bus_message *message, int32_t value);
int csystemd_append_byte(sd_bus_message *message, uint8_t value);
int csystemd_append_bytes(sd_bus_message *message, const void *bytes, size_t count);
int csystemd_open_container(sd_bus_message *message, char type, const char *contents);
int csystemd_close_container(sd_bus_message *message);

/// Returns zero at the end of the container. The text is valid as long as the message.
int csystemd_read_text(sd_bus_message *message, char type, const char **text);
int csystemd_read_bool(sd_bus_message *message, bool *value);
int csystemd_read_number(sd_bus_message *message, uint32_t *value);
int csystemd_read_bytes(sd_bus_message *message, const void **bytes, size_t *count);
int csystemd_enter_container(sd_bus_message *message, char type, const char *contents);
int csystemd_exit_container(sd_bus_message *message);
int csystemd_skip(sd_bus_message *message, const char *types);
