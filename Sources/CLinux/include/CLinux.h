// What Swift's Glibc module cannot show: variadic calls, and structures behind macros.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The kernel's word on who is at the other end of a connected Unix socket (SO_PEERCRED): 0, or an errno.
int clinux_peer_credentials(int socket, pid_t *pid, uid_t *uid, gid_t *gid);

/// PR_SET_DUMPABLE 0: no core, no ptrace, no /proc/PID/mem by the same user. 0, or an errno.
int clinux_refuse_dumps(void);

/// PR_SET_PDEATHSIG: the signal this process gets when its parent goes. 0, or an errno.
int clinux_die_with_parent(int signal);

/// The owner of the client socket of a loopback TCP connection, as sock_diag tells it. `family` is AF_INET or AF_INET6,
/// addresses are 4 or 16 bytes in network order, ports in host order; "client" is the far end seen from the server.
/// 0 with *uid and *inode set (inode 0: the socket has vanished and its owner is not to be trusted), or an errno
/// (ENOENT: there is no such socket, or its connection is not established). With a server address and port of zero: the owner of the socket that listens at
/// the client address.
int clinux_tcp_socket_owner(int family, const uint8_t *client_address, uint16_t client_port,
                            const uint8_t *server_address, uint16_t server_port, uid_t *uid, uint32_t *inode);

/// A socket that hears when an address or a route comes (rtnetlink(7)); non-blocking, close-on-exec. A descriptor, or a
/// negative errno.
int clinux_open_network_news(void);

/// Reads all that has come: the number of messages that say that an address or a route came. News that were lost for
/// want of room count as one.
int clinux_read_network_news(int descriptor);

/// Lets malloc(3) keep little of what is free: two arenas, since each thread's own would keep what it once needed, and
/// no large reserve. A daemon that works in bursts has little use for either.
void clinux_hold_little_memory(void);

/// Gives the kernel back what malloc(3) keeps free between what is used.
void clinux_give_memory_back(void);

/// Starts a program that is nobody's child: in a session of its own, with the signals, the umask (022) and the current
/// directory (the first of `directories` that can be entered, up to a NULL) that a program of the person's has, the
/// three standard descriptors on /dev/null and no other open. Returns when it has been started: 0, or an errno.
int clinux_start_detached(const char *path, char *const arguments[], char *const environment[],
                          const char *const directories[]);

/// Blanks an argument of this process in the memory that /proc/PID/cmdline shows to every user. Copies of it stay.
void clinux_forget_argument(int index);

/// A descriptor of a process (pidfd_open(2)), close-on-exec, readable once the process has ended; or a negative errno.
int clinux_open_process(pid_t pid);

/// A file in memory alone that holds the bytes, read-only for good, its position at the start, close-on-exec; a
/// descriptor, or a negative errno.
int clinux_memory_file(const void *bytes, size_t count);

/// The kind of the file system that a path is on (the magic number of statfs(2)); 0 if it cannot be told.
uint32_t clinux_file_system(const char *path);
