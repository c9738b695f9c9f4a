// Stands between ringbackd and the C library (LD_PRELOAD) and moves the time since boot: what expires by it, expires when
// the campaign says so and not before, without anybody waiting. To the daemon each step is a suspend of the machine. The
// wall's clock stays, since people and providers go by it, unless RINGBACK_WALL has seconds by which it is wrong.
// RINGBACK_BOOT has seconds by which the time since boot is another one than this machine's.
//
// The seconds that are added are in a file that it shares with the campaign; RINGBACK_CLOCK names it.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// `asked`: how often the time since boot was asked for; a shim that is not in the way sees nothing.
static struct shared {
    _Atomic int64_t seconds;
    _Atomic int64_t asked;
} *shared;
static int64_t wall, boot;

__attribute__((constructor)) static void attach(void) {
    // The daemon starts itself again without what LD_PRELOAD names, unless the variable is gone.
    unsetenv("LD_PRELOAD");
    const char *seconds = getenv("RINGBACK_WALL");
    if (seconds) wall = atoll(seconds);
    const char *since = getenv("RINGBACK_BOOT");
    if (since) boot = atoll(since);
    const char *path = getenv("RINGBACK_CLOCK");
    if (!path) return;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED) shared = memory;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_BOOTTIME && shared) {
        time->tv_sec += atomic_load(&shared->seconds) + boot;
        atomic_fetch_add(&shared->asked, 1);
    }
    if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += wall;
    return result;
}
