// A load generator for HTTP/1.1 on a Unix socket: CLIENTS clients in one thread, each with one request on its way at
// any time, connecting anew for each request or keeping its connection. Every answer must be a 200 and whole; anything else
// is counted as an error, and the first one is shown.
//
//   load SOCKET PATH CLIENTS connect|keep SECONDS [MILLISECONDS]
//   load SOCKET ACCOUNT CLIENTS agent SECONDS
//
// "agent" asks oidc-agent for the account's token, connecting anew for each request: a JSON object, no HTTP. oidc-agent
// takes it unencrypted too, which costs less than its key exchange. One client may pause for so many milliseconds after each
// request.
//
// Prints one line: "requests N rate R p50 US p99 US errors N" (R per second, times in microseconds).
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { maxAnswer = 65536 };

struct client {
    int descriptor; // -1: not connected
    uint64_t startedAt;
    size_t received;
    char answer[maxAnswer];
};

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char request[2048];
static size_t requestLength;
static int keepsConnection, asksAgent, poll = -1;
static uint32_t *latencies;
static size_t latencyCount, latencyCapacity;
static size_t errors;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void note(uint64_t nanoseconds) {
    if (latencyCount == latencyCapacity) {
        latencyCapacity = latencyCapacity ? latencyCapacity * 2 : 1 << 20;
        latencies = realloc(latencies, latencyCapacity * sizeof *latencies);
        if (latencies == NULL) die("realloc");
    }
    latencies[latencyCount++] = nanoseconds > UINT32_MAX ? UINT32_MAX : (uint32_t)nanoseconds;
}

// Counts an error and lets go of the connection.
static void fail(struct client *client, const char *what) {
    if (errors++ == 0)
        fprintf(stderr, "load: first error: %s: %.*s\n", what, (int)strcspn(client->answer, "\r\n"), client->answer);
    if (client->descriptor >= 0) close(client->descriptor);
    client->descriptor = -1;
    // A server that refuses everything must not be asked in a busy loop for ever.
    if (errors > 10000) exit(1);
}

// Connects if need be and sends a request; the latency's clock starts before the connection.
static void start(struct client *client) {
    client->startedAt = now();
    client->received = 0;
    client->answer[0] = 0;
    if (client->descriptor < 0) {
        client->descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (client->descriptor < 0) die("socket");
        if (connect(client->descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
            strcpy(client->answer, strerror(errno));
            return fail(client, "connect");
        }
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
        if (poll >= 0 && epoll_ctl(poll, EPOLL_CTL_ADD, client->descriptor, &event) < 0) die("epoll_ctl");
    }
    if (send(client->descriptor, request, requestLength, MSG_NOSIGNAL) != (ssize_t)requestLength)
        fail(client, "send");
}

// oidc-agent's answer: one object without objects in it, and no byte after it.
static ssize_t agentAnswerLength(const struct client *client) {
    static const char success[] = "{\"status\":\"success\",\"access_token\":";
    if (client->received < sizeof success) return 0;
    if (memcmp(client->answer, success, sizeof success - 1) != 0) return -1;
    const char *end = memchr(client->answer, '}', client->received);
    return end == NULL ? 0 : end - client->answer + 1;
}

// The length of the whole answer, 0 while its head is not whole, -1 if it is not one we accept.
static ssize_t answerLength(const struct client *client) {
    if (asksAgent) return agentAnswerLength(client);
    const char *end = memmem(client->answer, client->received, "\r\n\r\n", 4);
    if (end == NULL) return client->received < 16384 ? 0 : -1;
    if (memcmp(client->answer, "HTTP/1.1 200 ", 13) != 0) return -1;
    for (const char *line = client->answer; line < end; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, "Content-Length:", 15) == 0)
            return (end - client->answer) + 4 + strtol(line + 15, NULL, 10);
    return -1;
}

// Reads what has come; true when an answer is whole (and noted) or the attempt has failed: time for the next.
static int advance(struct client *client) {
    size_t room = maxAnswer - 1 - client->received;
    ssize_t count = recv(client->descriptor, client->answer + client->received, room, poll >= 0 ? MSG_DONTWAIT : 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (count <= 0) return fail(client, "closed before a whole answer"), 1;
    client->received += (size_t)count;
    client->answer[client->received] = 0;
    ssize_t length = answerLength(client);
    if (length < 0 || length >= maxAnswer || (length > 0 && client->received > (size_t)length))
        return fail(client, "not the answer expected"), 1;
    if (length == 0 || client->received < (size_t)length) return 0;
    note(now() - client->startedAt);
    if (!keepsConnection) {
        close(client->descriptor);
        client->descriptor = -1;
    }
    return 1;
}

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    int isWhole = argc == 6 || argc == 7;
    long clients = isWhole ? atol(argv[3]) : 0;
    double seconds = isWhole ? atof(argv[5]) : 0;
    useconds_t pause = argc == 7 ? (useconds_t)atol(argv[6]) * 1000 : 0;
    if (clients < 1 || clients > 1000 || seconds <= 0 || strlen(argv[1]) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: load SOCKET PATH|ACCOUNT CLIENTS connect|keep|agent SECONDS [MILLISECONDS]\n");
        return 64;
    }
    strcpy(address.sun_path, argv[1]);
    keepsConnection = strcmp(argv[4], "keep") == 0;
    asksAgent = strcmp(argv[4], "agent") == 0;
    const char *last = keepsConnection ? "" : "Connection: close\r\n";
    requestLength =
        (size_t)(asksAgent
                     ? snprintf(request, sizeof request, "{\"request\":\"access_token\",\"account\":\"%s\"}", argv[2])
                     : snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: ringback\r\n%s\r\n", argv[2], last));
    if (requestLength >= sizeof request) return 64;
    // One client needs no epoll: it waits in recv, as a simple program would.
    if (clients > 1 && (poll = epoll_create1(EPOLL_CLOEXEC)) < 0) die("epoll_create1");
    struct client *all = calloc((size_t)clients, sizeof *all);
    if (all == NULL) die("calloc");

    uint64_t beganAt = now(), endsAt = beganAt + (uint64_t)(seconds * 1e9);
    for (long i = 0; i < clients; i++) {
        all[i].descriptor = -1;
        start(&all[i]);
    }
    struct epoll_event events[256];
    while (now() < endsAt) {
        if (poll < 0) {
            if (all->descriptor < 0 || advance(all)) {
                if (pause > 0) usleep(pause);
                start(all);
            }
            continue;
        }
        // After failures some clients have no connection: they begin again here, within a bound.
        if (errors > 0)
            for (long i = 0; i < clients; i++)
                if (all[i].descriptor < 0) start(&all[i]);
        int count = epoll_wait(poll, events, 256, 100);
        if (count < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < count; i++)
            if (advance(events[i].data.ptr)) start(events[i].data.ptr);
    }
    double elapsed = (double)(now() - beganAt) / 1e9;

    if (latencyCount > 0) qsort(latencies, latencyCount, sizeof *latencies, ascending);
    double p50 = latencyCount ? latencies[latencyCount / 2] / 1e3 : 0;
    double p99 = latencyCount ? latencies[latencyCount * 99 / 100] / 1e3 : 0;
    printf("requests %zu rate %.1f p50 %.2f p99 %.2f errors %zu\n", latencyCount, (double)latencyCount / elapsed, p50,
           p99, errors);
    return 0;
}
