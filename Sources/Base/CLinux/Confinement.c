// What the parent of a confined program needs of the kernel.
#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

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

#ifdef ARCHITECTURE
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define FAIL(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
// Skips the next statement unless the value is equal.
#define IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1)
#define DENY(call, code) IF(call), FAIL(code)

static const struct sock_filter filter[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
    FAIL(ENOSYS),
    LOAD(nr),
#ifdef __x86_64__
    // x32: the same kernel by other numbers.
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
    FAIL(ENOSYS),
#endif
    // Keys are not bound to a namespace.
    DENY(SYS_keyctl, ENOSYS),
    DENY(SYS_add_key, ENOSYS),
    DENY(SYS_request_key, ENOSYS),
    // Large parts of the kernel that programs do without. A ring would also make calls that this filter does not see.
    DENY(SYS_io_uring_setup, ENOSYS),
    DENY(SYS_io_uring_enter, ENOSYS),
    DENY(SYS_io_uring_register, ENOSYS),
    DENY(SYS_userfaultfd, ENOSYS),
    DENY(SYS_bpf, EPERM),
    DENY(SYS_perf_event_open, EPERM),
    DENY(SYS_kexec_load, EPERM),
    DENY(SYS_kexec_file_load, EPERM),
    DENY(SYS_init_module, EPERM),
    DENY(SYS_finit_module, EPERM),
    DENY(SYS_delete_module, EPERM),
    DENY(SYS_open_by_handle_at, EPERM),
    // The caller's process group has the program in it, so that the terminal's signals reach it: signals and priorities
    // for the own group would reach the caller.
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 4),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
    FAIL(EPERM),
    LOAD(nr),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setpriority, 0, 4),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PRIO_PGRP, 0, 1),
    FAIL(EPERM),
    LOAD(nr),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioprio_set, 0, 4),
    LOAD(args[0]),
    // IOPRIO_WHO_PGRP
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 1),
    FAIL(EPERM),
    LOAD(nr),
    // TIOCSTI and TIOCLINUX put characters into the terminal that the caller reads. The kernel looks at 32 bits.
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4),
    LOAD(args[1]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX, 0, 1),
    FAIL(EPERM),
    // After an ioctl its request is loaded instead of the number of the call.
    LOAD(nr),
    // Unix, IPv4, IPv6, and netlink, by which the C library looks up its addresses.
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 7),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 3, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
    ALLOW,
    FAIL(EAFNOSUPPORT),
    ALLOW,
};
#endif

int clinux_confined_calls(void) {
#ifdef ARCHITECTURE
    return clinux_memory_file(filter, sizeof filter);
#else
    return -ENOTSUP;
#endif
}

enum { most_descriptors = 8 };

int clinux_send_descriptors(int socket, const int *descriptors, size_t count) {
    if (count > most_descriptors) return EINVAL;
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(most_descriptors * sizeof(int))];
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
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}

int clinux_receive_descriptors(int socket, int *descriptors) {
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(most_descriptors * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t received;
    do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    if (received < 0) return -errno;
    if (received == 0) return -EPIPE;
    int count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        int found = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int index = 0; index < found; index++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + (size_t)index * sizeof(int), sizeof descriptor);
            if (count < most_descriptors) descriptors[count++] = descriptor;
            else close(descriptor);
        }
    }
    return count;
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

/// Becomes the program, with all its signals as usual. Does not return.
static void become(const char *path, char *const arguments[], char *const environment[], int output, int errors,
                   const int *kept, size_t count) {
    int input = open("/dev/null", O_RDONLY);
    if (input < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0) _exit(127);
    clinux_close_on_exec_from(3);
    for (size_t index = 0; index < count; index++) fcntl(kept[index], F_SETFD, 0);
    struct sigaction usual = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++) sigaction(number, &usual, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(path, arguments, environment);
    _exit(127);
}

pid_t clinux_start_bound(const char *path, char *const arguments[], char *const environment[], int output, int errors,
                         const int *kept, size_t count) {
    pid_t parent = getpid();
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        // The parent may have ended before that.
        if (getppid() != parent) _exit(127);
        setsid();
        become(path, arguments, environment, output, errors, kept, count);
    }
    int code = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return child < 0 ? -code : child;
}

int clinux_start_apart(const char *path, char *const arguments[], char *const environment[], int output,
                       const int *kept, size_t count) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) {
        setsid();
        pid_t program = fork();
        if (program == 0) become(path, arguments, environment, output, output, kept, count);
        _exit(program < 0 ? 1 : 0);
    }
    int code = child < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return code != 0 ? code : status == 0 ? 0 : EAGAIN;
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
