// sd-bus as Swift can call it: a door for each function that is used, typed where libsystemd's own is variadic or takes a
// pointer to anything. It is loaded when the bus is first asked for, not when the program starts: most runs never ask.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

/// Loads libsystemd; false if there is none, or one that lacks something. Any thread, any number of times; to be called
/// before anything else of this file.
bool csystemd_load(void);

// Results below zero are negated errnos.

/// Begins to connect, without waiting. Without an address: where the environment says the user's, or the system's, bus
/// is.
int csystemd_open(const char *address, bool system, sd_bus **bus);
/// Closes without sending what waits, and gives the connection up.
void csystemd_close(sd_bus *bus);
/// Above zero when the bus has said hello.
int csystemd_is_ready(sd_bus *bus);
/// Does one step of what there is to do: above zero if there was something, with a message if one came.
int csystemd_process(sd_bus *bus, sd_bus_message **message);
/// Waits until there is something to do, for so many microseconds at most.
int csystemd_wait(sd_bus *bus, uint64_t microseconds);
/// What to poll for, and until when (CLOCK_MONOTONIC in microseconds, UINT64_MAX for no bound).
int csystemd_interest(sd_bus *bus, int *descriptor, int *events, uint64_t *deadline);
/// Sends the message and waits for its answer. If the other side refused, the name of its error is written.
int csystemd_call(sd_bus *bus, sd_bus_message *message, uint64_t microseconds, char *error, size_t capacity,
                  sd_bus_message **answer);

int csystemd_message_call(sd_bus *bus, sd_bus_message **message, const char *destination, const char *path,
                          const char *interface, const char *member);
sd_bus_message *csystemd_message_unref(sd_bus_message *message);
/// The message's memory is erased when it goes. Nothing where libsystemd is older than 246.
void csystemd_message_sensitive(sd_bus_message *message);
bool csystemd_message_is_signal(sd_bus_message *message, const char *interface, const char *member);
const char *csystemd_message_path(sd_bus_message *message);
/// The unique name of the connection that it came from.
const char *csystemd_message_sender(sd_bus_message *message);

/// A string, an object path or a signature.
int csystemd_append_text(sd_bus_message *message, char type, const char *text);
int csystemd_append_bool(sd_bus_message *message, bool value);
int csystemd_append_number(sd_bus_message *message, uint32_t value);
int csystemd_append_signed(sd_bus_message *message, int32_t value);
int csystemd_append_byte(sd_bus_message *message, uint8_t value);
int csystemd_append_bytes(sd_bus_message *message, const void *bytes, size_t count);
int csystemd_open_container(sd_bus_message *message, char type, const char *contents);
int csystemd_close_container(sd_bus_message *message);

/// Zero at the end of the container. The text lives as long as the message.
int csystemd_read_text(sd_bus_message *message, char type, const char **text);
int csystemd_read_bool(sd_bus_message *message, bool *value);
int csystemd_read_number(sd_bus_message *message, uint32_t *value);
int csystemd_read_bytes(sd_bus_message *message, const void **bytes, size_t *count);
int csystemd_enter_container(sd_bus_message *message, char type, const char *contents);
int csystemd_exit_container(sd_bus_message *message);
int csystemd_skip(sd_bus_message *message, const char *types);
