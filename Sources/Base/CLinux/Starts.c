// Programs that are started between fork and exec: only async-signal-safe functions may be called there, since another thread
// may have held a lock at the fork.
#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/// Becomes the program, with all its signals as usual. Does not return. If that fails, the errno is written to `report`.
static void become(const char *path, char *const arguments[], char *const environment[], int output, const int *kept,
                   size_t count, int report) {
    // Neither may be 0, 1 or 2, which are replaced next: a caller without standard descriptors gets them for its pipes.
    if (report >= 0) report = fcntl(report, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDWR);
    output = fcntl(output < 0 ? null : output, F_DUPFD_CLOEXEC, 3);
    if (null >= 0 && output >= 0 && dup2(null, 0) >= 0 && dup2(output, 1) >= 0 && dup2(output, 2) >= 0) {
        // For descriptors that libraries opened: our own are close-on-exec.
        clinux_close_on_exec_from(3);
        for (size_t index = 0; index < count; index++) fcntl(kept[index], F_SETFD, 0);
        struct sigaction usual = {.sa_handler = SIG_DFL};
        for (int number = 1; number < NSIG; number++) sigaction(number, &usual, NULL);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(path, arguments, environment);
    }
    int code = errno;
    if (report >= 0) (void)!write(report, &code, sizeof code);
    _exit(127);
}

// What a child has written to a pipe that its exec closes: an errno, or 0 after the exec.
static int reported(int report) {
    int code = 0;
    ssize_t size;
    do size = read(report, &code, sizeof code);
    while (size < 0 && errno == EINTR);
    return size == sizeof code ? code : 0;
}

pid_t clinux_start_bound(const char *path, char *const arguments[], char *const environment[], int output,
                         const int *kept, size_t count) {
    pid_t parent = getpid();
    // Signals are blocked so that none of our handlers runs in the child.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        // The parent may have ended before that.
        if (getppid() != parent) _exit(127);
        setsid();
        become(path, arguments, environment, output, kept, count, -1);
    }
    int code = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return child < 0 ? -code : child;
}

int clinux_start_apart(const char *path, char *const arguments[], char *const environment[],
                       const char *const directories[], int output, const int *kept, size_t count) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) {
        setsid();
        umask(022);
        while (directories != NULL && *directories != NULL && chdir(*directories) != 0) directories++;
        pid_t program = fork();
        if (program == 0) become(path, arguments, environment, output, kept, count, ends[1]);
        int code = program < 0 ? errno : 0;
        if (code != 0) (void)!write(ends[1], &code, sizeof code);
        _exit(0);
    }
    int result = child < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (child > 0) {
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
        result = reported(ends[0]);
    }
    close(ends[0]);
    return result;
}

// As execvpe(3), which would give a file of an unknown format to /bin/sh. Returns if it fails.
static void seek(const char *name, const char *places, char *const arguments[], char *const environment[]) {
    size_t size = strlen(name) + 1;
    if (size == 1 || size > PATH_MAX || strchr(name, '/') != NULL) {
        execve(name, arguments, environment);
        return;
    }
    int code = ENOENT;
    for (const char *end;; places = end + 1) {
        end = strchrnul(places, ':');
        size_t length = (size_t)(end - places);
        char path[PATH_MAX];
        if (length + 1 + size <= sizeof path) {
            memcpy(path, places, length);
            path[length] = '/';
            // An empty place is the working directory.
            memcpy(path + length + (length > 0), name, size);
            execve(path, arguments, environment);
            switch (errno) {
            case EACCES: code = EACCES; break;
            case ENOENT: case ENOTDIR: case ESTALE: case ENODEV: case ETIMEDOUT: break;
            default: return;
            }
        }
        if (*end == 0) break;
    }
    errno = code;
}

int clinux_start_beside(pid_t *child, const char *name, char *const arguments[], char *const environment[],
                        const sigset_t *mask) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    const char *places = getenv("PATH");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *child = fork();
    int result = *child < 0 ? errno : 0;
    if (*child == 0) {
        struct sigaction action, usual = {.sa_handler = SIG_DFL};
        for (int number = 1; number < NSIG; number++)
            if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN) sigaction(number, &usual, NULL);
        sigprocmask(SIG_SETMASK, mask, NULL);
        seek(name, places == NULL ? "/bin:/usr/bin" : places, arguments, environment);
        int code = errno;
        (void)!write(ends[1], &code, sizeof code);
        _exit(127);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (*child > 0 && (result = reported(ends[0])) != 0)
        while (waitpid(*child, NULL, 0) < 0 && errno == EINTR) continue;
    close(ends[0]);
    return result;
}
