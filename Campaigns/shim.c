// Stands between ringbackd and the C library (LD_PRELOAD) and counts the calls that write: to files, to directories, to
// sockets. At the K-th since it was armed it kills the process, before the call or after it, or lets the call fail, or
// lets it write only half, or stops the process before the call, until the campaign lets it go on; or it drops syncs, as a
// program would that forgot them. What it is to do, and what it saw, is in a file that it shares with the campaign
// (RINGBACK_SHIM names it; see shim.py). A kill is the kernel's: no handler runs and nothing is flushed.
//
// The calls themselves are made by syscall(2), so nothing here depends on what it stands before.

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim_log.h"

// Makes the call or lets it fail; `done` is done once it succeeded. The call may look at `verdict` for its half.
#define GUARDED_THEN(look, call, done)                    \
    do {                                                  \
        struct verdict verdict = {COUNT, 0};              \
        if (!IS_ARMED) return call;                       \
        verdict = look;                                   \
        if (verdict.mode == FAIL) {                       \
            errno = (int)atomic_load(&control->error);    \
            return -1;                                    \
        }                                                 \
        __typeof__(call) result = call;                   \
        if (result >= 0) done;                            \
        after(verdict, result >= 0);                      \
        return result;                                    \
    } while (0)
#define GUARDED(look, call) GUARDED_THEN(look, call, (void)0)
// Where off_t has 64 bits, two names are one function.
#define SAME_AS(name) __attribute__((alias(name)))
#define FIRST(pieces, count) (count) > 0 ? (pieces)[0].iov_base : NULL, (count) > 0 ? (pieces)[0].iov_len : 0
#define HALF(verdict, size) ((verdict).mode == SHORT && (size) > 1 ? (size) / 2 : (size))

// The daemon starts itself again without what LD_PRELOAD names, unless the variable is gone.
__attribute__((constructor)) static void stay(void) { unsetenv("LD_PRELOAD"); }

// MARK: files

static int open_any(const char *name, int directory, const char *path, int flags, mode_t mode) {
    // Reading is no writing.
    if (!(flags & (O_CREAT | O_TRUNC)) && (flags & O_TMPFILE) != O_TMPFILE)
        return (int)syscall(SYS_openat, directory, path, flags, mode);
    GUARDED_THEN(look_at_path(name, directory, path), (int)syscall(SYS_openat, directory, path, flags, mode),
                 disk_hold(result));
}

#define MODE_ARGUMENT                                     \
    mode_t mode = 0;                                      \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list list;                                     \
        va_start(list, flags);                            \
        mode = va_arg(list, mode_t);                      \
        va_end(list);                                     \
    }
int open(const char *path, int flags, ...) { MODE_ARGUMENT return open_any("open", AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) SAME_AS("open");
int openat(int directory, const char *path, int flags, ...) {
    MODE_ARGUMENT return open_any("openat", directory, path, flags, mode);
}
int openat64(int directory, const char *path, int flags, ...) SAME_AS("openat");
int creat(const char *path, mode_t mode) {
    return open_any("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

ssize_t write(int file, const void *bytes, size_t size) {
    GUARDED(look_at_bytes("write", file, bytes, size), syscall(SYS_write, file, bytes, HALF(verdict, size)));
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
    GUARDED(look_at_file("pwrite", file), syscall(SYS_pwrite64, file, bytes, HALF(verdict, size), offset));
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off_t offset) SAME_AS("pwrite");

// Half of a vector is half of its first piece.
ssize_t writev(int file, const struct iovec *pieces, int count) {
    GUARDED(look_at_bytes("writev", file, FIRST(pieces, count)),
            verdict.mode == SHORT && count > 0 && pieces[0].iov_len > 1
                ? syscall(SYS_write, file, pieces[0].iov_base, pieces[0].iov_len / 2)
                : syscall(SYS_writev, file, pieces, count));
}
ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t offset) {
    GUARDED(look_at_file("pwritev", file), syscall(SYS_pwritev, file, pieces, count, offset, 0));
}
ssize_t pwritev64(int file, const struct iovec *pieces, int count, off_t offset) SAME_AS("pwritev");

static int sync_any(const char *name, long call, int file) {
    if (!IS_ARMED) return (int)syscall(call, file);
    struct stat status;
    unsigned swallowed = atomic_load(&control->swallow);
    if (swallowed && fstat(file, &status) == 0
        && swallowed & (S_ISDIR(status.st_mode) ? SWALLOW_DIRECTORIES : SWALLOW_FILES)) return 0;
    GUARDED_THEN(look_at_file(name, file), (int)syscall(call, file), disk_synced(file));
}
int fsync(int file) { return sync_any("fsync", SYS_fsync, file); }
int fdatasync(int file) { return sync_any("fdatasync", SYS_fdatasync, file); }
int syncfs(int file) { GUARDED(look_at_file("syncfs", file), (int)syscall(SYS_syncfs, file)); }
int ftruncate(int file, off_t size) {
    GUARDED(look_at_file("ftruncate", file), (int)syscall(SYS_ftruncate, file, size));
}
int ftruncate64(int file, off_t size) SAME_AS("ftruncate");
int fallocate(int file, int mode, off_t offset, off_t size) {
    GUARDED(look_at_file("fallocate", file), (int)syscall(SYS_fallocate, file, mode, offset, size));
}
int fallocate64(int file, int mode, off_t offset, off_t size) SAME_AS("fallocate");
// This one returns its error.
int posix_fallocate(int file, off_t offset, off_t size) {
    int saved = errno;
    int code = fallocate(file, 0, offset, size) == 0 ? 0 : errno;
    errno = saved;
    return code;
}
int posix_fallocate64(int file, off_t offset, off_t size) SAME_AS("posix_fallocate");
int fchmod(int file, mode_t mode) { GUARDED(look_at_file("fchmod", file), (int)syscall(SYS_fchmod, file, mode)); }

// MARK: directories

static int rename_any(const char *name, int from, const char *old, int to, const char *new, unsigned flags) {
    GUARDED(look_at_names(name, from, old, to, new), (int)syscall(SYS_renameat2, from, old, to, new, flags));
}
int rename(const char *old, const char *new) { return rename_any("rename", AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) {
    return rename_any("renameat", from, old, to, new, 0);
}
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return rename_any("renameat2", from, old, to, new, flags);
}
static int unlink_any(const char *name, int directory, const char *path, int flags) {
    GUARDED(look_at_path(name, directory, path), (int)syscall(SYS_unlinkat, directory, path, flags));
}
int unlink(const char *path) { return unlink_any("unlink", AT_FDCWD, path, 0); }
int unlinkat(int directory, const char *path, int flags) { return unlink_any("unlinkat", directory, path, flags); }
static int mkdir_any(const char *name, int directory, const char *path, mode_t mode) {
    GUARDED(look_at_path(name, directory, path), (int)syscall(SYS_mkdirat, directory, path, mode));
}
int mkdir(const char *path, mode_t mode) { return mkdir_any("mkdir", AT_FDCWD, path, mode); }
int mkdirat(int directory, const char *path, mode_t mode) { return mkdir_any("mkdirat", directory, path, mode); }
static int link_any(const char *name, int from, const char *old, int to, const char *new, int flags) {
    GUARDED(look_at_path(name, to, new), (int)syscall(SYS_linkat, from, old, to, new, flags));
}
int link(const char *old, const char *new) { return link_any("link", AT_FDCWD, old, AT_FDCWD, new, 0); }
int linkat(int from, const char *old, int to, const char *new, int flags) {
    return link_any("linkat", from, old, to, new, flags);
}
int chmod(const char *path, mode_t mode) {
    GUARDED(look_at_path("chmod", AT_FDCWD, path), (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode));
}

// MARK: sockets

ssize_t sendto(int file, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    GUARDED(look_at_bytes("send", file, bytes, size),
            syscall(SYS_sendto, file, bytes, HALF(verdict, size), flags, to, length));
}
ssize_t send(int file, const void *bytes, size_t size, int flags) { return sendto(file, bytes, size, flags, NULL, 0); }
ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    GUARDED(look_at_bytes("sendmsg", file, FIRST(message->msg_iov, message->msg_iovlen)), syscall(SYS_sendmsg, file, message, flags));
}
int sendmmsg(int file, struct mmsghdr *messages, unsigned count, int flags) {
    GUARDED(look_at_file("sendmmsg", file), (int)syscall(SYS_sendmmsg, file, messages, count, flags));
}
