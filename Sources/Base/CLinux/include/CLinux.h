// What Swift's Glibc module does not export: variadic functions, and structures behind macros.
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/types.h>

/// Of the commit that this program was built from: `development` without Scripts/release.
const char *clinux_commit(void);

/// Of the peer of a connected Unix socket (SO_PEERCRED). Returns 0 or an errno.
int clinux_peer_credentials(int socket, pid_t *pid, uid_t *uid, gid_t *gid);

/// accept4(2): non-blocking and close-on-exec. Returns a descriptor or a negative errno.
int clinux_accept(int listener);

/// SCHED_BATCH: when this process is woken up, it does not take the processor from one that runs. It still gets its share.
void clinux_give_way(void);

/// PR_SET_DUMPABLE 0: no core file, no ptrace and no /proc/PID/mem for the same user. Returns 0 or an errno.
int clinux_refuse_dumps(void);

/// PR_SET_NAME: the name of the calling thread, at most 15 bytes.
void clinux_name_thread(const char *name);

/// PR_SET_PDEATHSIG: this process gets the signal when its parent ends. Returns 0 or an errno.
int clinux_die_with_parent(int signal);

/// The owner of the client's socket of a loopback TCP connection, by sock_diag(7). `family` is AF_INET or AF_INET6,
/// addresses are 4 or 16 bytes in network order, ports are in host order. Returns 0 or an errno. Inode 0 means that the
/// socket has vanished; its uid must not be trusted then. ENOENT: there is no such socket, or its connection is not
/// established. With a server address and port of zero it returns the owner of the socket that listens at the client
/// address.
int clinux_tcp_socket_owner(int family, const uint8_t *client_address, uint16_t client_port,
                            const uint8_t *server_address, uint16_t server_port, uid_t *uid, uint32_t *inode);

/// A socket that receives a message when an address or a route is added (rtnetlink(7)); non-blocking and close-on-exec.
/// Returns a descriptor or a negative errno.
int clinux_open_network_news(void);

/// Reads all pending messages. Returns how many say that an address or a route was added; lost ones count as one.
int clinux_read_network_news(int descriptor);

/// Makes malloc(3) keep little free memory: at most two arenas, and fixed thresholds. The daemon works in bursts.
void clinux_hold_little_memory(void);

/// Returns to the kernel the free memory that malloc(3) keeps.
void clinux_give_memory_back(void);

/// Overwrites an argument in the memory that /proc/PID/cmdline shows to every user. Copies are not changed.
void clinux_forget_argument(int index);

/// A pidfd of a process (pidfd_open(2)), close-on-exec; it becomes readable when the process ends. Or a negative errno.
int clinux_open_process(pid_t pid);

/// A file in memory (memfd) that holds the bytes: sealed against changes, positioned at its start, close-on-exec.
/// Returns a descriptor or a negative errno.
int clinux_memory_file(const void *bytes, size_t count);

/// An empty file in memory that programs may write to, up to `size` bytes; a write beyond that fails with EPERM.
/// Close-on-exec. Returns a descriptor or a negative errno.
int clinux_log_file(size_t size);

/// False if the path has another file than the one which the link in /proc leads to, or if it could not be looked for
/// without waiting for a file system that answers slowly or never (openat2(2), RESOLVE_CACHED, Linux 5.12). Paths below
/// /usr and /opt are looked for in any case.
bool clinux_is_same_file(const char *link, const char *path);

/// The magic number of statfs(2); 0 if it cannot be determined.
uint32_t clinux_file_system(const char *path);
uint32_t clinux_file_system_of(int descriptor);

/// Fails with EEXIST if there is a file of the new name. Returns 0 or an errno.
int clinux_rename_new(int directory, const char *name, const char *new_name);

/// Joins a new, empty session keyring (keyctl(2)): no key of outside can be found by this process and its children.
/// Returns 0 or an errno; ENOSYS where the kernel has no keyrings.
int clinux_join_empty_keyring(void);

/// Opens a path for its place alone (O_PATH), if no part of it is a symbolic link (openat2(2), RESOLVE_NO_SYMLINKS). The
/// descriptor is inherited by programs. Returns it or a negative errno.
int clinux_open_place(const char *path);

/// Marks every descriptor from `first` on close-on-exec. Returns 0 or an errno.
int clinux_close_on_exec_from(int first);

/// The filter of system calls for confined programs (seccomp(2), a classic BPF program), as a file in memory that
/// bubblewrap reads from a descriptor. Returns a descriptor or a negative errno; -ENOTSUP for an architecture whose
/// numbers it does not have.
int clinux_confined_calls(void);

/// Lets the process, with all its threads, start no program any more, trace or read no other process, change no mounts and no
/// namespaces, and use no parts of the kernel that no library of ours needs (seccomp(2)); it gains no privileges by a program's
/// file either. Calls that are newer than the filter fail with ENOSYS. Returns 0 or an errno; ENOTSUP as above.
int clinux_forbid_programs(void);

/// Lets this thread, and the threads that it starts, open no file but the readable ones and those beneath readable folders
/// (separated by `:`), to read, and those beneath `changeable` (none if it is NULL), to read and remove (Landlock). Open
/// descriptors and sockets are not affected. Returns 0 or an errno: ENOSYS or EOPNOTSUPP where the kernel has no Landlock.
int clinux_confine_files(const char *readable, const char *changeable);

enum { clinux_most_descriptors = 8 };

/// Sends bytes with descriptors (SCM_RIGHTS), ``clinux_most_descriptors`` at most. Returns the number of bytes that were sent
/// or a negative errno.
ssize_t clinux_send_with_descriptors(
    int socket, const void *bytes, size_t size, const int *descriptors, size_t count, int flags);

/// Receives bytes and at most ``clinux_most_descriptors`` descriptors, close-on-exec. Returns the number of bytes, 0 if the
/// peer has closed the connection, or a negative errno.
ssize_t clinux_receive_with_descriptors(
    int socket, void *bytes, size_t size, int *descriptors, size_t *count, int flags);

/// Sends one byte with descriptors (SCM_RIGHTS), eight at most. Returns 0 or an errno.
int clinux_send_descriptors(int socket, const int *descriptors, size_t count);

/// Receives one byte and at most eight descriptors, close-on-exec. Returns their number, -EPIPE if the peer has closed
/// the connection, or another negative errno.
int clinux_receive_descriptors(int socket, int *descriptors);

/// The user namespace that owns a namespace (ioctl_ns(2)). Returns a descriptor or a negative errno.
int clinux_owner_of_namespace(int descriptor);

/// Sends a signal to the process of a pidfd. Returns 0 or an errno.
int clinux_signal_process(int process, int signal);

/// Starts a program as a child that gets SIGKILL when this thread ends. Descriptor 0 is /dev/null, `output` becomes 1
/// and 2; `kept` (`count` descriptors) stay open under their numbers, all others are closed. It runs in a session of its
/// own, with default signal handlers. Returns its pid or a negative errno.
pid_t clinux_start_bound(const char *path, char *const arguments[], char *const environment[], int output,
                         const int *kept, size_t count);

/// Starts a program that is not our child: it outlives this process, and is no child that the program waits for which this
/// one becomes. As above, and with umask 022; an `output` of -1 is /dev/null. Its current directory is the first of
/// `directories` (NULL-terminated) that can be entered; NULL for ours. Returns after exec: 0 or an errno.
int clinux_start_apart(const char *path, char *const arguments[], char *const environment[],
                       const char *const directories[], int output, const int *kept, size_t count);

/// Starts a program in our process group, with our descriptors, with a signal mask, and with the signals ignored that we
/// ignore. `name` is looked for in PATH. It forks: who waits in posix_spawn(3) for the exec cannot be stopped, and Ctrl-Z
/// may have stopped the child before it. Returns after exec: 0 or an errno.
int clinux_start_beside(pid_t *child, const char *name, char *const arguments[], char *const environment[],
                        const sigset_t *mask);

/// Listens at 127.0.0.1, at a free port if `port` is 0, which then gets its number. Returns a descriptor, non-blocking and
/// close-on-exec, or a negative errno.
int clinux_listen_at_loopback(uint16_t *port);
