// Descriptors that are passed over a Unix socket (SCM_RIGHTS).
#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t clinux_send_with_descriptors(
    int socket, const void *bytes, size_t size, const int *descriptors, size_t count, int flags) {
    if (count > clinux_most_descriptors) return -EINVAL;
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(clinux_most_descriptors * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
    }
    ssize_t sent;
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

ssize_t clinux_receive_with_descriptors(int socket, void *bytes, size_t size, int *descriptors, size_t *count, int flags) {
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(clinux_most_descriptors * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    *count = 0;
    ssize_t received;
    do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
    while (received < 0 && errno == EINTR);
    if (received < 0) return -errno;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        int found = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int index = 0; index < found; index++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + (size_t)index * sizeof(int), sizeof descriptor);
            if (*count < clinux_most_descriptors) descriptors[(*count)++] = descriptor;
            else close(descriptor);
        }
    }
    return received;
}

int clinux_send_descriptors(int socket, const int *descriptors, size_t count) {
    ssize_t sent = clinux_send_with_descriptors(socket, "", 1, descriptors, count, 0);
    return sent < 0 ? (int)-sent : 0;
}

int clinux_receive_descriptors(int socket, int *descriptors) {
    char byte;
    size_t count;
    ssize_t received = clinux_receive_with_descriptors(socket, &byte, 1, descriptors, &count, 0);
    return received < 0 ? (int)received : received == 0 ? -EPIPE : (int)count;
}
