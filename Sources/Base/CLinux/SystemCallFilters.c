// The filters of system calls (seccomp(2)): of this process, and of programs that it confines.
#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

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

int clinux_confined_calls(void) {
#ifdef ARCHITECTURE
    return clinux_memory_file(filter, sizeof filter);
#else
    return -ENOTSUP;
#endif
}
