#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

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

int clinux_refuse_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno; }

int clinux_die_with_parent(int signal) { return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) == 0 ? 0 : errno; }

// Asks for the one socket whose local end is the client's address and whose remote end is ours.
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
            // Where there is no such connection the kernel answers with a socket that listens on the client's port.
            if (found->id.idiag_sport != htons(client_port) || found->id.idiag_dport != htons(server_port)) {
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
        // Only the kernel tells news; a process that sends something is not believed.
        if (sender.nl_pid != 0) continue;
        // Signed: the last message may end before its alignment does.
        int left = (int)count;
        for (struct nlmsghdr *header = &message.header; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
            if (header->nlmsg_type == RTM_NEWADDR || header->nlmsg_type == RTM_NEWROUTE) news++;
        }
    }
}

void clinux_hold_little_memory(void) {
    mallopt(M_ARENA_MAX, 2);
    // Set by hand, the two stay as they are: left alone, one large block makes malloc keep megabytes for the next one.
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
}

void clinux_give_memory_back(void) { malloc_trim(0); }
