import Glibc
import MCPBridge

/// What the client has not read yet. Writing never waits: a client that does not read must not keep its own messages from
/// being read.
struct ClientOutput {
    private enum Way {
        case socket
        /// A pipe that is open here once more, for this program alone: its writes do not wait.
        case ownPipe(Int32)
        case other
    }

    /// Bytes of a pipe's buffer for a client that takes much. Any program may have so many; the kernel's limit for all
    /// pipes of a user is 64 MiB.
    private static let pipeSize: Int32 = 256 << 10
    /// F_SETPIPE_SZ of <fcntl.h>, which the module does not show.
    private static let setPipeSize: Int32 = 1031

    private var bytes = ByteQueue()
    private var isPipeLarge = false
    private let way: Way

    init() {
        var status = stat()
        guard unsafe fstat(STDOUT_FILENO, &status) == 0 else {
            way = .other
            return
        }
        switch status.st_mode & S_IFMT {
        case S_IFSOCK: way = .socket
        case S_IFIFO:
            // The mode of standard output itself is not changed: other programs may have it too.
            let descriptor = unsafe open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            way = descriptor >= 0 ? .ownPipe(descriptor) : .other
        default: way = .other
        }
    }

    var count: Int { bytes.count }
    var isPending: Bool { !bytes.isEmpty }

    mutating func append(_ message: [UInt8]) { bytes.append(message) }

    /// Writes what the client takes now. False if it reads no more.
    mutating func flush() -> Bool {
        while isPending {
            guard let result = writeSome() else { return false }
            guard result > 0 else { return true }
            bytes.drop(result)
            if isPending { enlargePipe() }
        }
        return true
    }

    /// The pipe was full: with a larger one, both ends wait for each other less often.
    private mutating func enlargePipe() {
        guard !isPipeLarge, case .ownPipe(let descriptor) = way else { return }
        isPipeLarge = true
        _ = fcntl(descriptor, ClientOutput.setPipeSize, ClientOutput.pipeSize)
    }

    /// Bytes that were taken; nil if the client has gone.
    private func writeSome() -> Int? {
        let count = unsafe bytes.waiting.withUnsafeBytes { buffer in
            switch way {
            case .socket:
                unsafe send(STDOUT_FILENO, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            case .ownPipe(let descriptor): unsafe write(descriptor, buffer.baseAddress, buffer.count)
            case .other: unsafe ClientOutput.writeWhenReady(buffer)
            }
        }
        if count >= 0 { return count }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }

    /// A pipe that is ready takes PIPE_BUF bytes without a wait (pipe(7)).
    private static func writeWhenReady(_ buffer: UnsafeRawBufferPointer) -> Int {
        var entry = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        guard unsafe poll(&entry, 1, 0) > 0 else { return 0 }
        return unsafe write(STDOUT_FILENO, buffer.baseAddress, min(buffer.count, 4_096))
    }
}
