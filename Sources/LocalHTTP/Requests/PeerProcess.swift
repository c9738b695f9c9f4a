internal import CLinux
internal import Glibc

/// The process at the other end of a Unix socket, held by a descriptor of the kernel's (SO_PEERPIDFD, Linux 6.5). A number
/// may be another process's by the time somebody looks at it; while this process lives, its number is its own.
public final class PeerProcess: Sendable {
    private let descriptor: Int32
    /// Different for each process since the boot (pidfs, Linux 6.9); nil where the kernel numbers them all alike.
    public let identity: UInt64?

    /// Nil where the kernel does not know the option, for a process that is gone, and if no descriptor is free; `errno`
    /// says which.
    convenience init?(of socket: Int32) {
        var found: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(socket, SOL_SOCKET, peerProcessOption, &found, &size) == 0 else { return nil }
        guard found >= 0 else { return nil }
        self.init(descriptor: found)
    }

    /// Takes a process descriptor over, and closes it in the end.
    init(descriptor: Int32) {
        self.descriptor = descriptor
        identity = PeerProcess.isNumbered ? PeerProcess.inode(of: descriptor) : nil
    }

    deinit { close(descriptor) }

    /// False once the process has ended. What `/proc` said of its number before a true answer is about this process.
    public var isAlive: Bool {
        var question = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&question, 1, 0) == 0
    }

    /// Asks the kernel what it supports, once and for all. To be called while there are free descriptors.
    public static func prepare() { _ = (isSupported, isNumbered) }

    /// This kernel tells processes by descriptor.
    public static let isSupported: Bool = {
        var ends: [Int32] = [-1, -1]
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { return false }
        defer { for end in ends { close(end) } }
        var descriptor: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(ends[0], SOL_SOCKET, peerProcessOption, &descriptor, &size) == 0, descriptor >= 0
        else { return false }
        close(descriptor)
        return true
    }()

    /// The descriptors are of a file system of their own, in which each process has a number.
    private static let isNumbered: Bool = {
        let descriptor = clinux_open_process(getpid())
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        // PID_FS_MAGIC of linux/magic.h.
        return unsafe clinux_file_system("/proc/self/fd/\(descriptor)") == 0x5049_4446
    }()

    private static func inode(of descriptor: Int32) -> UInt64? {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
    }
}

/// SO_PEERPIDFD of asm-generic/socket.h, which the C library's headers may be too old for.
private let peerProcessOption: Int32 = 77
