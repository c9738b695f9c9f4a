#define _GNU_SOURCE
#include "CSystemd.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

// The functions of libsystemd that are used, with the types of its own header: a wrapper with wrong types does not
// compile.
#define FUNCTIONS(EACH)                                                                                                \
    EACH(new)                                                                                                          \
    EACH(set_address)                                                                                                  \
    EACH(set_bus_client)                                                                                               \
    EACH(start)                                                                                                        \
    EACH(open_user)                                                                                                    \
    EACH(open_system)                                                                                                  \
    EACH(close_unref)                                                                                                  \
    EACH(is_ready)                                                                                                     \
    EACH(process)                                                                                                      \
    EACH(wait)                                                                                                         \
    EACH(get_fd)                                                                                                       \
    EACH(get_events)                                                                                                   \
    EACH(get_timeout)                                                                                                  \
    EACH(call)                                                                                                         \
    EACH(error_free)                                                                                                   \
    EACH(message_new_method_call)                                                                                      \
    EACH(message_unref)                                                                                                \
    EACH(message_is_signal)                                                                                            \
    EACH(message_get_path)                                                                                             \
    EACH(message_get_sender)                                                                                           \
    EACH(message_append_basic)                                                                                         \
    EACH(message_append_array)                                                                                         \
    EACH(message_open_container)                                                                                       \
    EACH(message_close_container)                                                                                      \
    EACH(message_read_basic)                                                                                           \
    EACH(message_read_array)                                                                                           \
    EACH(message_enter_container)                                                                                      \
    EACH(message_exit_container)                                                                                       \
    EACH(message_skip)

static struct {
#define MEMBER(name) __typeof__(sd_bus_##name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
    __typeof__(sd_bus_message_sensitive) *message_sensitive;
    bool is_loaded;
} bus_functions;

static void load(void) {
    // The binary interface has had version 0 since 2013. The library is never unloaded.
    void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
#define LOAD(name)                                                                                                     \
    bus_functions.name = (__typeof__(bus_functions.name))dlsym(library, "sd_bus_" #name);                              \
    if (bus_functions.name == NULL) return;
    FUNCTIONS(LOAD)
#undef LOAD
    bus_functions.message_sensitive =
        (__typeof__(bus_functions.message_sensitive))dlsym(library, "sd_bus_message_sensitive");
    bus_functions.is_loaded = true;
}

bool csystemd_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return bus_functions.is_loaded;
}

int csystemd_open(const char *address, bool system, sd_bus **bus) {
    if (address == NULL) return system ? bus_functions.open_system(bus) : bus_functions.open_user(bus);
    int result = bus_functions.new(bus);
    if (result < 0) return result;
    result = bus_functions.set_address(*bus, address);
    if (result >= 0) result = bus_functions.set_bus_client(*bus, true);
    if (result >= 0) result = bus_functions.start(*bus);
    if (result < 0) *bus = bus_functions.close_unref(*bus);
    return result;
}

void csystemd_close(sd_bus *bus) { bus_functions.close_unref(bus); }
int csystemd_is_ready(sd_bus *bus) { return bus_functions.is_ready(bus); }
int csystemd_process(sd_bus *bus, sd_bus_message **message) { return bus_functions.process(bus, message); }
int csystemd_wait(sd_bus *bus, uint64_t microseconds) { return bus_functions.wait(bus, microseconds); }

int csystemd_interest(sd_bus *bus, int *descriptor, int *events, uint64_t *deadline) {
    *descriptor = bus_functions.get_fd(bus);
    if (*descriptor < 0) return *descriptor;
    *events = bus_functions.get_events(bus);
    if (*events < 0) return *events;
    return bus_functions.get_timeout(bus, deadline);
}

int csystemd_call(sd_bus *bus, sd_bus_message *message, uint64_t microseconds, char *error, size_t capacity,
                  sd_bus_message **answer) {
    sd_bus_error refusal = SD_BUS_ERROR_NULL;
    int result = bus_functions.call(bus, message, microseconds, &refusal, answer);
    error[0] = 0;
    // Only the error's name is copied. Its message is arbitrary text of the other process.
    if (refusal.name != NULL) {
        strncpy(error, refusal.name, capacity - 1);
        error[capacity - 1] = 0;
    }
    bus_functions.error_free(&refusal);
    return result;
}

int csystemd_message_call(sd_bus *bus, sd_bus_message **message, const char *destination, const char *path,
                          const char *interface, const char *member) {
    return bus_functions.message_new_method_call(bus, message, destination, path, interface, member);
}

sd_bus_message *csystemd_message_unref(sd_bus_message *message) { return bus_functions.message_unref(message); }
void csystemd_message_sensitive(sd_bus_message *message) {
    if (bus_functions.message_sensitive != NULL) bus_functions.message_sensitive(message);
}
bool csystemd_message_is_signal(sd_bus_message *message, const char *interface, const char *member) {
    return bus_functions.message_is_signal(message, interface, member) > 0;
}
const char *csystemd_message_path(sd_bus_message *message) { return bus_functions.message_get_path(message); }
const char *csystemd_message_sender(sd_bus_message *message) { return bus_functions.message_get_sender(message); }

int csystemd_append_text(sd_bus_message *message, char type, const char *text) {
    return bus_functions.message_append_basic(message, type, text);
}
int csystemd_append_bool(sd_bus_message *message, bool value) {
    int wide = value;
    return bus_functions.message_append_basic(message, SD_BUS_TYPE_BOOLEAN, &wide);
}
int csystemd_append_number(sd_bus_message *message, uint32_t value) {
    return bus_functions.message_append_basic(message, SD_BUS_TYPE_UINT32, &value);
}
int csystemd_append_signed(sd_bus_message *message, int32_t value) {
    return bus_functions.message_append_basic(message, SD_BUS_TYPE_INT32, &value);
}
int csystemd_append_byte(sd_bus_message *message, uint8_t value) {
    return bus_functions.message_append_basic(message, SD_BUS_TYPE_BYTE, &value);
}
int csystemd_append_bytes(sd_bus_message *message, const void *bytes, size_t count) {
    return bus_functions.message_append_array(message, SD_BUS_TYPE_BYTE, bytes, count);
}
int csystemd_open_container(sd_bus_message *message, char type, const char *contents) {
    return bus_functions.message_open_container(message, type, contents);
}
int csystemd_close_container(sd_bus_message *message) { return bus_functions.message_close_container(message); }

int csystemd_read_text(sd_bus_message *message, char type, const char **text) {
    return bus_functions.message_read_basic(message, type, text);
}
int csystemd_read_bool(sd_bus_message *message, bool *value) {
    int wide = 0;
    int result = bus_functions.message_read_basic(message, SD_BUS_TYPE_BOOLEAN, &wide);
    *value = wide != 0;
    return result;
}
int csystemd_read_number(sd_bus_message *message, uint32_t *value) {
    return bus_functions.message_read_basic(message, SD_BUS_TYPE_UINT32, value);
}
int csystemd_read_bytes(sd_bus_message *message, const void **bytes, size_t *count) {
    return bus_functions.message_read_array(message, SD_BUS_TYPE_BYTE, bytes, count);
}
int csystemd_enter_container(sd_bus_message *message, char type, const char *contents) {
    return bus_functions.message_enter_container(message, type, contents);
}
int csystemd_exit_container(sd_bus_message *message) { return bus_functions.message_exit_container(message); }
int csystemd_skip(sd_bus_message *message, const char *types) { return bus_functions.message_skip(message, types); }
