// The floor: the least a server on a Unix socket can do for a request. One thread, epoll, no parsing beyond the blank
// line that ends a request, always the same answer of BYTES bytes, head included. Keep-alive; a request with
// "Connection: close" is the connection's last. What a real daemon is compared with, not an example of one.
//
//   floor SOCKET BYTES
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { maxDescriptors = 4096, maxRequest = 4096, maxEvents = 256 };

static char *answer;
static size_t answerLength;
// A request that came in pieces waits here, by descriptor.
static char *partial[maxDescriptors];
static size_t partialLength[maxDescriptors];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void makeAnswer(size_t bytes) {
    char head[256];
    const char *format = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
                         "Content-Length: %zu\r\n\r\n";
    // The length's own digits are part of the head: the second pass knows them.
    size_t body = bytes;
    for (int pass = 0; pass < 3; pass++) {
        int head_length = snprintf(head, sizeof head, format, body);
        body = bytes > (size_t)head_length ? bytes - (size_t)head_length : 0;
    }
    int head_length = snprintf(head, sizeof head, format, body);
    answerLength = (size_t)head_length + body;
    answer = malloc(answerLength);
    if (answer == NULL) die("malloc");
    memcpy(answer, head, (size_t)head_length);
    memset(answer + head_length, 'x', body);
}

static void forget(int descriptor) {
    free(partial[descriptor]);
    partial[descriptor] = NULL;
    partialLength[descriptor] = 0;
    close(descriptor);
}

// Answers every whole request in the buffer; returns how many bytes they took, or -1 when the connection is over.
static ssize_t answerAll(int descriptor, const char *bytes, size_t length) {
    size_t taken = 0;
    const char *end;
    while ((end = memmem(bytes + taken, length - taken, "\r\n\r\n", 4)) != NULL) {
        size_t request = (size_t)(end - (bytes + taken)) + 4;
        int last = memmem(bytes + taken, request, "\r\nConnection: close\r\n", 21) != NULL;
        taken += request;
        if (send(descriptor, answer, answerLength, MSG_NOSIGNAL) != (ssize_t)answerLength) return -1;
        if (last) return -1;
    }
    return (ssize_t)taken;
}

static void readable(int descriptor) {
    char buffer[maxRequest];
    size_t held = partialLength[descriptor];
    if (held > 0) memcpy(buffer, partial[descriptor], held);
    ssize_t count = recv(descriptor, buffer + held, sizeof buffer - held, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return forget(descriptor);
    size_t length = held + (size_t)count;
    ssize_t taken = answerAll(descriptor, buffer, length);
    if (taken < 0 || length - (size_t)taken == sizeof buffer) return forget(descriptor);
    partialLength[descriptor] = length - (size_t)taken;
    if (partialLength[descriptor] > 0) {
        if (partial[descriptor] == NULL) partial[descriptor] = malloc(maxRequest);
        if (partial[descriptor] == NULL) return forget(descriptor);
        memcpy(partial[descriptor], buffer + taken, partialLength[descriptor]);
    }
}

static int listenAt(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "floor: the socket's path is too long\n");
        exit(64);
    }
    strcpy(address.sun_path, path);
    unlink(path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0) die(path);
    if (listen(listener, 1024) < 0) die("listen");
    return listener;
}

int main(int argc, char **argv) {
    if (argc != 3 || atol(argv[2]) <= 0) {
        fprintf(stderr, "usage: floor SOCKET BYTES\n");
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    makeAnswer((size_t)atol(argv[2]));
    int listener = listenAt(argv[1]);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event) < 0) die("epoll");
    printf("ready %zu\n", answerLength);
    fflush(stdout);
    struct epoll_event events[maxEvents];
    for (;;) {
        int count = epoll_wait(poll, events, maxEvents, -1);
        if (count < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd != listener) {
                readable(events[i].data.fd);
                continue;
            }
            int descriptor;
            while ((descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
                event = (struct epoll_event){.events = EPOLLIN, .data.fd = descriptor};
                if (descriptor >= maxDescriptors || epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) < 0)
                    close(descriptor);
            }
        }
    }
}
