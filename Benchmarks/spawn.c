// Times programs from the outside, with posix_spawn and nothing in between.
//
//   spawn alternate N A... -- B...       runs A and B in turn, N times each, to their end; both must end with status 0.
//                                        Prints "a US b US ratio R" (medians, microseconds). The file SPAWN_INPUT, if the
//                                        variable is set, is their standard input.
//   spawn ready N SOCKET PATH CMD...     starts CMD N times, each time until SOCKET answers GET PATH with 200, then
//                                        ends it with SIGTERM. Prints "median US min US max US stop US" (stop: the median
//                                        time from SIGTERM to the end).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { maxRounds = 100000 };

extern char **environ;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static pid_t begin(char **argv) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const char *input = getenv("SPAWN_INPUT");
    posix_spawn_file_actions_addopen(&actions, 0, input ? input : "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        fprintf(stderr, "spawn: %s: %s\n", argv[0], strerror(error));
        exit(1);
    }
    return pid;
}

// Runs to the end; nanoseconds.
static uint64_t run(char **argv) {
    uint64_t startedAt = now();
    pid_t pid = begin(argv);
    int status;
    struct rusage usage;
    if (wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "spawn: %s did not end with status 0\n", argv[0]);
        exit(1);
    }
    return now() - startedAt;
}

static int ascending(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

// Sorts, too.
static double median(uint64_t *values, long count) {
    qsort(values, (size_t)count, sizeof *values, ascending);
    return (double)(values[(count - 1) / 2] + values[count / 2]) / 2e3;
}

static int answers(const char *path, const char *target) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char buffer[1024];
    int length = snprintf(buffer, sizeof buffer,
                          "GET %s HTTP/1.1\r\nHost: ringback\r\nConnection: close\r\n\r\n", target);
    int good = descriptor >= 0 && connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0 &&
               send(descriptor, buffer, (size_t)length, MSG_NOSIGNAL) == length &&
               recv(descriptor, buffer, 13, MSG_WAITALL) == 13 && memcmp(buffer, "HTTP/1.1 200 ", 13) == 0;
    if (descriptor >= 0) close(descriptor);
    return good;
}

static int alternate(long rounds, char **first) {
    char **second = first;
    while (*second != NULL && strcmp(*second, "--") != 0) second++;
    if (*second == NULL || second == first || second[1] == NULL) return 64;
    *second++ = NULL;
    static uint64_t a[maxRounds], b[maxRounds];
    run(first), run(second); // warm
    for (long i = 0; i < rounds; i++) {
        a[i] = run(first);
        b[i] = run(second);
    }
    double left = median(a, rounds), right = median(b, rounds);
    printf("a %.1f b %.1f ratio %.3f\n", left, right, right > 0 ? left / right : 0);
    return 0;
}

static int ready(long rounds, char **arguments) {
    char *path = arguments[0], *target = arguments[1], **command = arguments + 2;
    static uint64_t times[maxRounds], stops[maxRounds];
    for (long i = -1; i < rounds; i++) { // the first one warms the page cache
        uint64_t startedAt = now();
        pid_t pid = begin(command);
        const struct timespec pause = {.tv_nsec = 100000};
        int status;
        while (!answers(path, target)) {
            if (now() - startedAt > 10000000000u || waitpid(pid, &status, WNOHANG) == pid) {
                fprintf(stderr, "spawn: %s ended, or did not answer within 10 s\n", command[0]);
                kill(pid, SIGKILL);
                return 1;
            }
            nanosleep(&pause, NULL);
        }
        uint64_t readyAt = now();
        kill(pid, SIGTERM);
        if (waitpid(pid, &status, 0) != pid) return 1;
        if (i < 0) continue;
        times[i] = readyAt - startedAt;
        stops[i] = now() - readyAt;
    }
    double middle = median(times, rounds);
    printf("median %.1f min %.1f max %.1f stop %.1f\n", middle, (double)times[0] / 1e3, (double)times[rounds - 1] / 1e3,
           median(stops, rounds));
    return 0;
}

int main(int argc, char **argv) {
    long rounds = argc > 2 ? atol(argv[2]) : 0;
    int status = 64;
    if (argc > 5 && rounds > 0 && rounds <= maxRounds) {
        if (strcmp(argv[1], "alternate") == 0) status = alternate(rounds, argv + 3);
        if (strcmp(argv[1], "ready") == 0) status = ready(rounds, argv + 3);
    }
    if (status == 64) fprintf(stderr, "usage: spawn alternate N A... -- B... | spawn ready N SOCKET PATH CMD...\n");
    return status;
}
