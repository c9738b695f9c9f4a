// The shim's log, and what it decides about each call: shared with the campaign through one file (see shim.py).

enum mode { COUNT, KILL_BEFORE, KILL_AFTER, FAIL, SHORT, STOP };
enum { RECORDS = 2048, RECORD = 256, HEAD = 12 };
enum { SWALLOW_FILES = 1, SWALLOW_DIRECTORIES = 2 };

// Offsets are known to shim.py.
struct control {
    atomic_uint armed, mode, target, error;
    // 0: only what is below `prefix`; 1: everything.
    atomic_uint scope;
    // The failure stays until disarmed: a disk that is full stays full.
    atomic_uint sticky;
    atomic_uint count, fired, pid;
    // Syncs that are not made, and the time of this log: one tick with each beginning and each success.
    atomic_uint swallow, clock;
    uint32_t reserved[5];
    char prefix[224];
    // Where disk.h keeps what was synced; empty: nowhere.
    char mirror[224];
    struct record {
        uint8_t isBelowPrefix;
        // `end` is 0 if the call did not succeed, or did not come back.
        uint32_t begin;
        atomic_uint end;
        char text[RECORD - HEAD];
    } records[RECORDS];
};

static struct control *control;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("RINGBACK_SHIM");
    if (!path) return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (file < 0) return;
    void *place = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    // The helper is another process, and keeps nothing.
    if (place == MAP_FAILED) return;
    control = place;
    atomic_store(&control->pid, (unsigned)getpid());
    unsetenv("RINGBACK_SHIM");
}

static int is_below_prefix(const char *path) {
    size_t length = strlen(control->prefix);
    return length > 0 && strncmp(path, control->prefix, length) == 0;
}

static void path_of(int file, char *text, size_t size) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, text, size - 1);
    text[length < 0 ? 0 : length] = 0;
}

#include "disk.h"

// What is to be done about one call.
struct verdict {
    enum mode mode;
    unsigned number;
};

static struct verdict decide(const char *name, const char *path) {
    struct verdict calm = {COUNT, 0};
    int isBelow = is_below_prefix(path);
    if (!isBelow && atomic_load(&control->scope) == 0) return calm;
    unsigned number = atomic_fetch_add(&control->count, 1) + 1;
    unsigned target = atomic_load(&control->target);
    int isDue = target > 0 && (number == target || (number > target && atomic_load(&control->sticky)));
    if (number <= RECORDS) {
        struct record *record = &control->records[number - 1];
        record->isBelowPrefix = (uint8_t)isBelow;
        record->begin = atomic_fetch_add(&control->clock, 1) + 1;
        snprintf(record->text, sizeof record->text, "%s %s", name, isBelow ? path + strlen(control->prefix) : path);
    }
    calm.number = number;
    if (!isDue) return calm;
    atomic_store(&control->fired, 1);
    return (struct verdict){(enum mode)atomic_load(&control->mode), number};
}

static void die(void) {
    // No copy of what was synced is left half.
    disk_lock();
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static struct verdict look(const char *name, const char *path) {
    int saved = errno;
    struct verdict verdict = decide(name, path);
    if (verdict.mode == KILL_BEFORE) die();
    // To this thread, so that it makes the call only after SIGCONT. The others stop too.
    if (verdict.mode == STOP) syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGSTOP);
    errno = saved;
    return verdict;
}

static struct verdict look_at_file(const char *name, int file) {
    char path[4096];
    int saved = errno;
    path_of(file, path, sizeof path);
    errno = saved;
    return look(name, path);
}

// Of a socket: the family, the ports or the server's path, and the first words of what is said, as far as a "?".
static void socket_of(int file, const char *bytes, size_t size, char *text, size_t room) {
    struct sockaddr_storage ours = {0}, theirs = {0};
    socklen_t oursSize = sizeof ours, theirsSize = sizeof theirs;
    char said[48];
    size_t length = 0;
    for (int words = 0; bytes && length < size && length < sizeof said - 1; length++) {
        char c = bytes[length];
        if (c == '?' || c < ' ' || c > '~' || (c == ' ' && ++words == 2)) break;
        said[length] = c;
    }
    said[length] = 0;
    getsockname(file, (struct sockaddr *)&ours, &oursSize);
    getpeername(file, (struct sockaddr *)&theirs, &theirsSize);
    if (ours.ss_family == AF_INET || ours.ss_family == AF_INET6)
        snprintf(text, room, "tcp:%u %s", ntohs(((struct sockaddr_in *)&theirs)->sin_port), said);
    else if (ours.ss_family == AF_UNIX && ((struct sockaddr_un *)&ours)->sun_path[0])
        snprintf(text, room, "api %s", said);
}

static struct verdict look_at_bytes(const char *name, int file, const void *bytes, size_t size) {
    char path[4096];
    int saved = errno;
    path_of(file, path, sizeof path);
    if (strncmp(path, "socket:", 7) == 0) socket_of(file, bytes, size, path, sizeof path);
    errno = saved;
    return look(name, path);
}

static struct verdict look_at_path(const char *name, int directory, const char *path) {
    char whole[8192];
    if (!path) path = "";
    if (path[0] == '/' || directory == AT_FDCWD) return look(name, path);
    char base[4096];
    int saved = errno;
    path_of(directory, base, sizeof base);
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    errno = saved;
    return look(name, whole);
}

#define IS_ARMED (control && atomic_load_explicit(&control->armed, memory_order_acquire))
static void after(struct verdict verdict, int isDone) {
    if (isDone && verdict.number > 0 && verdict.number <= RECORDS)
        atomic_store(&control->records[verdict.number - 1].end, atomic_fetch_add(&control->clock, 1) + 1);
    if (verdict.mode == KILL_AFTER) die();
}
// A rename's record names the new place, then " < " and the old name without its directory.
static struct verdict look_at_names(const char *name, int from, const char *old, int to, const char *new) {
    char both[64 + 4096];
    const char *slash = strrchr(old, '/');
    struct verdict verdict = look_at_path(name, to, new);
    (void)from;
    if (verdict.number > 0 && verdict.number <= RECORDS) {
        struct record *record = &control->records[verdict.number - 1];
        snprintf(both, sizeof both, "%s < %s", record->text, slash ? slash + 1 : old);
        snprintf(record->text, sizeof record->text, "%.*s", (int)sizeof record->text - 1, both);
    }
    return verdict;
}
