internal import CLinux
internal import Glibc

/// The process at the other end of a Unix socket, identified by a process descriptor (SO_PEERPIDFD, Linux 6.5). A
/// process id alone could already belong to another process when it is used. As long as this process lives, its id is
/// not reused. For a client that connects again it may be the process that had the id up to a second before: it is the
/// client if ``isAlive`` is true.
public final class PeerProcess: Sendable {
    private let descriptor: Descriptor
    /// A number that is unique for each process since boot (pidfs, Linux 6.9). Nil on older kernels, where all
    /// processes have the same number.
    public let identity: UInt64?

    /// Nil if the kernel does not support the option, if the process has ended, or if no descriptor is free; `errno`
    /// says which.
    convenience init?(of socket: Int32) {
        guard let found = PeerProcess.descriptor(of: socket) else { return nil }
        self.init(found)
    }

    private static func descriptor(of socket: Int32) -> Descriptor? {
        var found: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(socket, SOL_SOCKET, peerProcessOption, &found, &size) == 0, found >= 0 else {
            return nil
        }
        return Descriptor(found)
    }

    /// Takes a process descriptor over.
    init(_ descriptor: consuming Descriptor) {
        identity = PeerProcess.isNumbered ? PeerProcess.inode(of: descriptor) : nil
        self.descriptor = descriptor
    }

    /// False once the process has ended. If this is true, everything that was read before from `/proc` under this
    /// process id is about this process.
    public var isAlive: Bool {
        var question = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&question, 1, 0) == 0
    }

    /// Determines once what the kernel supports. Must be called while there are free descriptors.
    public static func prepare() { _ = (isSupported, isNumbered) }

    /// True if the kernel supports SO_PEERPIDFD.
    public static let isSupported: Bool = {
        var ends: [Int32] = [-1, -1]
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { return false }
        defer { for end in ends { close(end) } }
        guard PeerProcess.descriptor(of: ends[0]) != nil else { return false }
        return true
    }()

    /// True if process descriptors belong to pidfs, in which each process has its own inode number.
    private static let isNumbered: Bool = {
        let number = clinux_open_process(getpid())
        guard number >= 0 else { return false }
        let descriptor = Descriptor(number)
        // PID_FS_MAGIC of linux/magic.h.
        return unsafe clinux_file_system("/proc/self/fd/\(descriptor.number)") == 0x5049_4446
    }()

    private static func inode(of descriptor: borrowing Descriptor) -> UInt64? {
        var status = stat()
        return unsafe fstat(descriptor.number, &status) == 0 ? UInt64(status.st_ino) : nil
    }
}

/// SO_PEERPIDFD of asm-generic/socket.h. The C library's headers may be too old to define it.
private let peerProcessOption: Int32 = 77
