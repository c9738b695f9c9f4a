// What confines other programs and this one.
#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

void clinux_give_way(void) { sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}); }

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

// Other architectures; x32, which is the same kernel by other numbers.
#ifdef __x86_64__
#define REFUSE_X32 BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), FAIL(ENOSYS),
#else
#define REFUSE_X32
#endif
#define BEGIN \
    LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0), FAIL(ENOSYS), LOAD(nr), REFUSE_X32

// Keys are not bound to a namespace. The others are large parts of the kernel that programs do without; a ring would also
// make calls that a filter does not see.
#define REFUSE_RARE_CALLS \
    DENY(SYS_keyctl, ENOSYS), DENY(SYS_add_key, ENOSYS), DENY(SYS_request_key, ENOSYS), \
    DENY(SYS_io_uring_setup, ENOSYS), DENY(SYS_io_uring_enter, ENOSYS), DENY(SYS_io_uring_register, ENOSYS), \
    DENY(SYS_userfaultfd, ENOSYS), DENY(SYS_bpf, EPERM), DENY(SYS_perf_event_open, EPERM), \
    DENY(SYS_kexec_load, EPERM), DENY(SYS_kexec_file_load, EPERM), DENY(SYS_init_module, EPERM), \
    DENY(SYS_finit_module, EPERM), DENY(SYS_delete_module, EPERM), DENY(SYS_open_by_handle_at, EPERM),

static const struct sock_filter filter[] = {
    BEGIN
    REFUSE_RARE_CALLS
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

// It looks at numbers alone: the kernel then remembers for each call that it is allowed, and does not run the filter.
static const struct sock_filter without_programs[] = {
    BEGIN
    // What the headers of this build may not name yet (mseal is the last). Libraries then take their older ways.
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 462, 0, 1),
    FAIL(ENOSYS),
    DENY(SYS_execve, EPERM),
    DENY(SYS_execveat, EPERM),
    DENY(SYS_ptrace, EPERM),
    DENY(SYS_process_vm_readv, EPERM),
    DENY(SYS_process_vm_writev, EPERM),
    DENY(SYS_kcmp, EPERM),
    // pidfd_getfd, which the headers of older kernels do not name.
    DENY(438, EPERM),
    DENY(SYS_unshare, EPERM),
    DENY(SYS_setns, EPERM),
    DENY(SYS_mount, EPERM),
    DENY(SYS_umount2, EPERM),
    DENY(SYS_pivot_root, EPERM),
    DENY(SYS_chroot, EPERM),
    DENY(SYS_move_mount, EPERM),
    DENY(SYS_open_tree, EPERM),
    DENY(SYS_fsopen, EPERM),
    DENY(SYS_fsconfig, EPERM),
    DENY(SYS_fsmount, EPERM),
    DENY(SYS_fspick, EPERM),
    REFUSE_RARE_CALLS
    ALLOW,
};
#endif

int clinux_forbid_programs(void) {
#ifdef ARCHITECTURE
    struct sock_fprog program = {
        .len = sizeof without_programs / sizeof *without_programs, .filter = (struct sock_filter *)without_programs};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    // The id of a thread that has another filter.
    return result < 0 ? errno : result > 0 ? EBUSY : 0;
#else
    return ENOTSUP;
#endif
}

static int allow_beneath(int rules, const char *path, uint64_t access) {
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    // What is not there cannot be opened either.
    if (rule.parent_fd < 0) return 0;
    struct stat status;
    // The rights of folders are invalid for a file.
    if (fstat(rule.parent_fd, &status) == 0 && !S_ISDIR(status.st_mode)) rule.allowed_access &= LANDLOCK_ACCESS_FS_READ_FILE;
    int code = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 ? 0 : errno;
    close(rule.parent_fd);
    return code;
}

int clinux_confine_files(const char *readable, const char *changeable) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 0) return errno;
    // All that the first version knows, links between folders (from version 2) and truncation (from 3).
    struct landlock_ruleset_attr handled = {.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
    if (version >= 2) handled.handled_access_fs |= 1 << 13;
    if (version >= 3) handled.handled_access_fs |= 1 << 14;
    char *paths = strdup(readable);
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    int code = rules < 0 || paths == NULL ? errno : 0;
    const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    char *rest = paths;
    for (char *path; code == 0 && (path = strsep(&rest, ":")) != NULL;) code = allow_beneath(rules, path, reading);
    if (code == 0 && changeable != NULL) {
        code = allow_beneath(rules, changeable, reading | LANDLOCK_ACCESS_FS_REMOVE_FILE);
    }
    if (code == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) code = errno;
    if (code == 0 && syscall(SYS_landlock_restrict_self, rules, 0) != 0) code = errno;
    if (rules >= 0) close(rules);
    free(paths);
    return code;
}

int clinux_confined_calls(void) {
#ifdef ARCHITECTURE
    return clinux_memory_file(filter, sizeof filter);
#else
    return -ENOTSUP;
#endif
}

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
