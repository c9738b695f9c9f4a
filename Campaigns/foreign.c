// A race between two users for one port, for foreign.py; needs root.
//
//   foreign PORT UID ROUNDS DELAY REQUEST...   the attacker against the server at the port
//   foreign control UID ROUNDS DELAY           the attacker against a server of our own, which judges as it may not be
//                                              judged: prints how many requests were taken for ours, by the addresses
//                                              alone, and how many while the connection is established before and after
//
// In a round, a process of UID connects from some port, sends a request, waits DELAY microseconds, and resets the
// connection; then a process of ours connects to the same place from the very same port, and says nothing.
#define _GNU_SOURCE
#include "CLinux.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    atomic_int sent, connected;
    atomic_long by_addresses, by_connection;
};

static struct shared *shared;
static const uint8_t loopback[4] = {127, 0, 0, 1};

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static struct sockaddr_in at(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

// A socket of this process' user that is bound to the port already; both users have one.
static int bound(int port) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    struct timeval bound = {.tv_sec = 2};
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    struct sockaddr_in address = at(port);
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0) fail("bind");
    return descriptor;
}

static void await_turn(atomic_int *turn, int value) {
    while (atomic_load(turn) < value) {
    }
}

static void reset(int descriptor) {
    struct linger linger = {.l_onoff = 1};
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(descriptor);
}

static int client_port(int round) { return 20000 + round % 8000; }

static void attack(int server, int rounds, int delay, char **requests, int count) {
    struct sockaddr_in address = at(server);
    for (int round = 0; round < rounds; round++) {
        int descriptor = bound(client_port(round));
        if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
        const char *request = requests[round % count];
        if (send(descriptor, request, strlen(request), MSG_NOSIGNAL) < 0) fail("send");
        // Some rounds leave at once, others a little later: which of them wins depends on the machine.
        if (round % 4 != 0) usleep(delay * (round % 4));
        reset(descriptor);
        atomic_store(&shared->sent, round + 1);
        await_turn(&shared->connected, round + 1);
    }
}

static void follow(int server, int rounds) {
    struct sockaddr_in address = at(server);
    for (int round = 0; round < rounds; round++) {
        int descriptor = bound(client_port(round));
        await_turn(&shared->sent, round + 1);
        if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0) usleep(2000);
        reset(descriptor);
        atomic_store(&shared->connected, round + 1);
    }
}

static int is_established(int descriptor) {
    struct tcp_info information = {0};
    socklen_t length = sizeof information;
    return getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &information, &length) == 0 &&
           information.tcpi_state == TCP_ESTABLISHED;
}

static void judge(int listener, uid_t ours) {
    for (;;) {
        struct sockaddr_in client;
        socklen_t length = sizeof client;
        int descriptor = accept(listener, (struct sockaddr *)&client, &length);
        char bytes[256];
        struct timeval bound = {.tv_usec = 1000};
        if (descriptor < 0) continue;
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
        if (recv(descriptor, bytes, sizeof bytes, 0) > 0) {
            // As long as a server of many connections takes from reading to judging.
            usleep(100);
            uid_t uid = ~0u;
            uint32_t inode = 0;
            int before = is_established(descriptor);
            struct sockaddr_in here;
            socklen_t size = sizeof here;
            getsockname(descriptor, (struct sockaddr *)&here, &size);
            int result = clinux_tcp_socket_owner(
                AF_INET, loopback, ntohs(client.sin_port), loopback, ntohs(here.sin_port), &uid, &inode);
            if (result == 0 && inode != 0 && uid == ours) {
                atomic_fetch_add(&shared->by_addresses, 1);
                if (before && is_established(descriptor)) atomic_fetch_add(&shared->by_connection, 1);
            }
        }
        close(descriptor);
    }
}

static pid_t start(void) {
    pid_t process = fork();
    if (process < 0) fail("fork");
    if (process == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return process;
}

int main(int count, char **words) {
    if (count < 5) return 2;
    int is_control = strcmp(words[1], "control") == 0, rounds = atoi(words[3]), delay = atoi(words[4]);
    char *own[] = {"GET / HTTP/1.1\r\n\r\n"};
    char **requests = is_control ? own : words + 5;
    int kinds = is_control ? 1 : count - 5, server = is_control ? 0 : atoi(words[1]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || kinds < 1) return 2;
    pid_t judging = 0;
    if (is_control) {
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in address = at(0);
        socklen_t length = sizeof address;
        if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 64) != 0) fail("listen");
        getsockname(listener, (struct sockaddr *)&address, &length);
        server = ntohs(address.sin_port);
        judging = start();
        if (judging == 0) judge(listener, getuid());
    }
    pid_t attacking = start();
    if (attacking == 0) {
        uid_t uid = (uid_t)atoi(words[2]);
        if (setgid(uid) != 0 || setuid(uid) != 0) fail("setuid");
        attack(server, rounds, delay, requests, kinds);
        exit(0);
    }
    pid_t following = start();
    if (following == 0) {
        follow(server, rounds);
        exit(0);
    }
    int first = 0, second = 0;
    waitpid(attacking, &first, 0);
    // Without the attacker nobody ends the other one's wait.
    if (first != 0) kill(following, SIGKILL);
    waitpid(following, &second, 0);
    if (judging) {
        usleep(50000);
        kill(judging, SIGKILL);
        waitpid(judging, NULL, 0);
    }
    printf("%ld %ld\n", atomic_load(&shared->by_addresses), atomic_load(&shared->by_connection));
    return first == 0 && second == 0 ? 0 : 1;
}
