#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

// A release is linked with an object that defines it anew (Scripts/release).
__attribute__((weak)) const char ringback_commit[] = "development";

const char *clinux_commit(void) { return ringback_commit; }

int clinux_peer_credentials(int socket, pid_t *pid, uid_t *uid, gid_t *gid) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return errno;
    if (length != sizeof credentials) return EPROTO;
    *pid = credentials.pid;
    *uid = credentials.uid;
    *gid = credentials.gid;
    return 0;
}

int clinux_accept(int listener) {
    int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return descriptor < 0 ? -errno : descriptor;
}

int clinux_refuse_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno; }

void clinux_name_thread(const char *name) { prctl(PR_SET_NAME, name); }

void clinux_give_way(void) { sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}); }

int clinux_die_with_parent(int signal) { return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) == 0 ? 0 : errno; }

// Queries the one socket whose local end is the client's address and whose remote end is ours.
static int ask_sock_diag(int netlink, int family, const uint8_t *client_address, uint16_t client_port,
                         const uint8_t *server_address, uint16_t server_port) {
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } message;
    memset(&message, 0, sizeof message);
    message.header.nlmsg_len = sizeof message;
    message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    message.header.nlmsg_flags = NLM_F_REQUEST;
    message.request.sdiag_family = (uint8_t)family;
    message.request.sdiag_protocol = IPPROTO_TCP;
    message.request.idiag_states = ~0u;
    message.request.id.idiag_sport = htons(client_port);
    message.request.id.idiag_dport = htons(server_port);
    message.request.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
    message.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    size_t length = family == AF_INET ? 4 : 16;
    memcpy(message.request.id.idiag_src, client_address, length);
    memcpy(message.request.id.idiag_dst, server_address, length);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t sent = sendto(netlink, &message, sizeof message, 0, (struct sockaddr *)&kernel, sizeof kernel);
    return sent == (ssize_t)sizeof message ? 0 : (sent < 0 ? errno : EIO);
}

int clinux_tcp_socket_owner(int family, const uint8_t *client_address, uint16_t client_port,
                            const uint8_t *server_address, uint16_t server_port, uid_t *uid, uint32_t *inode) {
    if (family != AF_INET && family != AF_INET6) return EAFNOSUPPORT;
    int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (netlink < 0) return errno;
    struct timeval bound = {.tv_sec = 1};
    setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    int result = ask_sock_diag(netlink, family, client_address, client_port, server_address, server_port);
    if (result == 0) {
        union {
            struct nlmsghdr header;
            char bytes[8192];
        } answer;
        ssize_t count = recv(netlink, &answer, sizeof answer, 0);
        if (count < 0) {
            result = errno;
        } else if (!NLMSG_OK(&answer.header, (size_t)count)) {
            result = EPROTO;
        } else if (answer.header.nlmsg_type == NLMSG_ERROR) {
            const struct nlmsgerr *error = NLMSG_DATA(&answer.header);
            result = error->error != 0 ? -error->error : EPROTO;
        } else if (answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg))) {
            result = EPROTO;
        } else {
            const struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
            // If there is no such connection, the kernel may report a socket that listens on the client's port, so the
            // ports are compared. A socket that is still connecting did not send the request: it has reused the
            // address.
            if (found->id.idiag_sport != htons(client_port) || found->id.idiag_dport != htons(server_port) ||
                (server_port != 0 && found->idiag_state != TCP_ESTABLISHED)) {
                result = ENOENT;
            } else {
                *uid = found->idiag_uid;
                *inode = found->idiag_inode;
            }
        }
    }
    close(netlink);
    return result;
}

int clinux_open_network_news(void) {
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (netlink < 0) return -errno;
    struct sockaddr_nl here = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE,
    };
    if (bind(netlink, (struct sockaddr *)&here, sizeof here) != 0) {
        int code = errno;
        close(netlink);
        return -code;
    }
    return netlink;
}

int clinux_read_network_news(int descriptor) {
    int news = 0;
    for (;;) {
        union {
            struct nlmsghdr header;
            char bytes[16384];
        } message;
        struct sockaddr_nl sender = {0};
        socklen_t length = sizeof sender;
        ssize_t count =
            recvfrom(descriptor, &message, sizeof message, MSG_DONTWAIT, (struct sockaddr *)&sender, &length);
        if (count < 0) {
            if (errno == EINTR) continue;
            if (errno == ENOBUFS) {
                news++;
                continue;
            }
            return news;
        }
        if (count == 0) return news;
        // Only messages of the kernel count. Another process could send forged ones.
        if (sender.nl_pid != 0) continue;
        // Signed, because the last message may end before its alignment does, which makes the rest negative.
        int left = (int)count;
        for (struct nlmsghdr *header = &message.header; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
            if (header->nlmsg_type == RTM_NEWADDR || header->nlmsg_type == RTM_NEWROUTE) news++;
        }
    }
}

void clinux_hold_little_memory(void) {
    mallopt(M_ARENA_MAX, 2);
    // Fixed values. By default malloc raises both thresholds after a large block is freed and then keeps megabytes.
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
}

void clinux_give_memory_back(void) { malloc_trim(0); }

void clinux_forget_argument(int index) {
    // The kernel stores the arguments one after another, and `program_invocation_name` points to the first.
    char *argument = program_invocation_name;
    for (; argument != NULL && index > 0; index--) argument += strlen(argument) + 1;
    if (argument != NULL) memset(argument, 0, strlen(argument));
}

int clinux_open_process(pid_t pid) {
    int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
    return descriptor < 0 ? -errno : descriptor;
}

int clinux_memory_file(const void *bytes, size_t count) {
    int descriptor = memfd_create("ringback", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return -errno;
    const char *rest = bytes;
    int code = 0;
    while (count > 0 && code == 0) {
        ssize_t written = write(descriptor, rest, count);
        if (written > 0) {
            rest += written;
            count -= (size_t)written;
        } else if (written == 0 || errno != EINTR) {
            code = written == 0 ? EIO : errno;
        }
    }
    int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    if (code == 0 && (fchmod(descriptor, 0400) != 0 || fcntl(descriptor, F_ADD_SEALS, seals) != 0 ||
                      lseek(descriptor, 0, SEEK_SET) != 0))
        code = errno;
    if (code == 0) return descriptor;
    close(descriptor);
    return -code;
}

int clinux_log_file(size_t size) {
    int descriptor = memfd_create("ringback", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return -errno;
    if (ftruncate(descriptor, (off_t)size) == 0 && fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_GROW) == 0)
        return descriptor;
    int code = errno;
    close(descriptor);
    return -code;
}

// Linux has it since 5.12; the C library's headers may be older.
#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

static bool is_of_the_system(const char *path) {
    return strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/opt/", 5) == 0;
}

bool clinux_is_same_file(const char *link, const char *path) {
    // The link of a process leads to its open file: nothing is looked up.
    struct statx theirs, ours;
    if (statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_INO, &theirs) != 0) return true;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    int file = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (file < 0 && errno == EAGAIN && !is_of_the_system(path)) return false;
    if (file < 0 && errno == ENOENT) return true;
    // An older kernel, or a filter of system calls, does not know the call.
    if (file < 0) file = open(path, O_PATH | O_CLOEXEC);
    if (file < 0) return errno != EMFILE && errno != ENFILE;
    int result = statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &ours);
    close(file);
    return result != 0 || (theirs.stx_ino == ours.stx_ino && theirs.stx_dev_major == ours.stx_dev_major &&
                           theirs.stx_dev_minor == ours.stx_dev_minor);
}

uint32_t clinux_file_system(const char *path) {
    struct statfs status;
    return statfs(path, &status) == 0 ? (uint32_t)status.f_type : 0;
}

uint32_t clinux_file_system_of(int descriptor) {
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 ? (uint32_t)status.f_type : 0;
}

int clinux_rename_new(int directory, const char *name, const char *new_name) {
    return renameat2(directory, name, directory, new_name, RENAME_NOREPLACE) == 0 ? 0 : errno;
}

int clinux_join_empty_keyring(void) {
    return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ? errno : 0;
}

int clinux_open_place(const char *path) {
    struct open_how how = {.flags = O_PATH, .resolve = RESOLVE_NO_SYMLINKS};
    int descriptor = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    return descriptor < 0 ? -errno : descriptor;
}

int clinux_close_on_exec_from(int first) {
    return syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) == 0 ? 0 : errno;
}

int clinux_owner_of_namespace(int descriptor) {
    int owner = ioctl(descriptor, NS_GET_USERNS);
    if (owner < 0) return -errno;
    fcntl(owner, F_SETFD, FD_CLOEXEC);
    return owner;
}

int clinux_signal_process(int process, int signal) {
    return syscall(SYS_pidfd_send_signal, process, signal, NULL, 0) == 0 ? 0 : errno;
}

int clinux_listen_at_loopback(uint16_t *port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0) return -errno;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, SOMAXCONN) != 0
        || getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        int code = errno;
        close(listener);
        return -code;
    }
    *port = ntohs(address.sin_port);
    return listener;
}

// Swift's runtime looks for its backtrace program before main, with ten system calls, even if nobody asked for it. In
// `ringback`, which starts for each git connection, the linker puts this in place of the search (--wrap in
// Package.swift).
char *__wrap_swift_copyAuxiliaryExecutablePath(const char *name);
char *__wrap_swift_copyAuxiliaryExecutablePath(const char *name) {
    (void)name;
    return NULL;
}
