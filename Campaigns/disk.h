// The disk as a power cut would leave it: nothing but what was synced. With each fsync of a kept file its content is
// copied to the mirror (file-INODE), with each of a directory its names (dir-INODE, lines "INODE NAME"); syncs.py makes
// the kept files anew from that. Harder than real disks are, which may keep more, and in any order.
//
// An inode's number is its name here, and must not be given to a new file: what is made stays open.

#include <dirent.h>
#include <sched.h>

static atomic_flag diskIsBusy = ATOMIC_FLAG_INIT;

static void disk_lock(void) {
    while (atomic_flag_test_and_set(&diskIsBusy)) sched_yield();
}
static void disk_unlock(void) { atomic_flag_clear(&diskIsBusy); }

static int disk_is_modelled(int file) {
    char path[4096];
    if (control->mirror[0] == 0) return 0;
    path_of(file, path, sizeof path);
    return is_below_prefix(path);
}

// Keeps the inode of a file that was made.
static void disk_hold(int file) {
    if (file >= 0 && disk_is_modelled(file)) fcntl(file, F_DUPFD_CLOEXEC, 200);
}

static void disk_put(int to, const char *bytes, long size) {
    while (size > 0) {
        long written = syscall(SYS_write, to, bytes, size);
        if (written <= 0) return;
        bytes += written;
        size -= written;
    }
}

static void disk_copy_names(int directory, int to) {
    int copy = (int)syscall(SYS_openat, directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (!stream) return;
    for (struct dirent *entry; (entry = readdir(stream));) {
        struct stat status;
        char line[512];
        if (entry->d_name[0] == '.' || fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        int length = snprintf(line, sizeof line, "%lu %s\n", (unsigned long)status.st_ino, entry->d_name);
        disk_put(to, line, length);
    }
    closedir(stream);
}

static void disk_copy_content(int file, int to) {
    char bytes[65536], path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int copy = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    for (long count; copy >= 0 && (count = syscall(SYS_read, copy, bytes, sizeof bytes)) > 0;)
        disk_put(to, bytes, count);
    if (copy >= 0) syscall(SYS_close, copy);
}

// What the descriptor names is durable now.
static void disk_synced(int file) {
    struct stat status;
    char path[512];
    int saved = errno;
    if (disk_is_modelled(file) && fstat(file, &status) == 0) {
        int isDirectory = S_ISDIR(status.st_mode);
        const char *kind = isDirectory ? "dir" : "file";
        snprintf(path, sizeof path, "%s/%s-%lu", control->mirror, kind, (unsigned long)status.st_ino);
        disk_lock();
        int to = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (to >= 0) {
            if (isDirectory) disk_copy_names(file, to);
            else disk_copy_content(file, to);
            syscall(SYS_close, to);
        }
        disk_unlock();
    }
    errno = saved;
}
