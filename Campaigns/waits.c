// How long servers on Unix sockets take to respond while the machine is busy: one request on a new connection each time, to
// the servers in turn, with 5 ms between two. A program of its own, so that no interpreter's time is in the figures.
//
//   waits SECONDS SOCKET PATH [SOCKET PATH]...
//
// Prints a line for each server: "requests N p50 US p99 US errors N" (microseconds). A response is whole when the server
// closes the connection.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { mostServers = 4, mostTimes = 1 << 20, between = 5000000 };

static uint32_t *times[mostServers];
static size_t counts[mostServers], errors[mostServers];

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// True if the server responded with a 200.
static int ask(const char *place, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(place) >= sizeof address.sun_path) return 0;
    strcpy(address.sun_path, place);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return 0;
    char text[2048];
    int length =
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: ringback\r\nConnection: close\r\n\r\n", path);
    int isRight = connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0 &&
                  send(descriptor, text, (size_t)length, MSG_NOSIGNAL) == length;
    char answer[65536];
    size_t received = 0;
    while (isRight) {
        ssize_t count = recv(descriptor, answer + received, sizeof answer - received, 0);
        if (count < 0) isRight = 0;
        if (count <= 0) break;
        received += (size_t)count;
    }
    close(descriptor);
    return isRight && received > 12 && memcmp(answer, "HTTP/1.1 200", 12) == 0;
}

static int compare(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    int servers = (argc - 2) / 2;
    double seconds = argc >= 4 ? atof(argv[1]) : 0;
    if (argc % 2 != 0 || servers < 1 || servers > mostServers || seconds <= 0) {
        fprintf(stderr, "usage: waits SECONDS SOCKET PATH [SOCKET PATH]...\n");
        return 64;
    }
    for (int each = 0; each < servers; each++) {
        times[each] = malloc(mostTimes * sizeof(uint32_t));
        if (times[each] == NULL) return 71;
    }
    uint64_t end = now() + (uint64_t)(seconds * 1e9);
    while (now() < end) {
        for (int each = 0; each < servers; each++) {
            struct timespec wait = {.tv_nsec = between};
            nanosleep(&wait, NULL);
            uint64_t start = now();
            int isRight = ask(argv[2 + 2 * each], argv[3 + 2 * each]);
            uint64_t taken = (now() - start) / 1000;
            if (!isRight) errors[each]++;
            else if (counts[each] < mostTimes) times[each][counts[each]++] = taken > UINT32_MAX ? UINT32_MAX : (uint32_t)taken;
        }
    }
    for (int each = 0; each < servers; each++) {
        size_t count = counts[each];
        qsort(times[each], count, sizeof(uint32_t), compare);
        printf("requests %zu p50 %u p99 %u errors %zu\n", count, count ? times[each][count / 2] : 0,
               count ? times[each][count - 1 - count / 100] : 0, errors[each]);
    }
    return 0;
}
