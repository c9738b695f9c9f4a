internal import Glibc
public import Secrets

/// A descriptor from which a credential is read (`--credential-fd NAME=N`).
public enum CredentialDescriptor {
    /// Why no credential was read.
    public enum Failure: Error, Equatable {
        case notOpen
        /// The writer did not close its end in time.
        case notClosed
        case unreadable
        /// There is more than a credential may have.
        case tooLong
    }

    /// The largest size of a credential, in bytes.
    public static let maxSize = 65_536
    /// The milliseconds for which the writer of a pipe may write nothing.
    public static let timeout = 10_000

    /// Reads to the end, without line ends there. A signal does not end the waiting. Does not close the descriptor.
    public static func read(_ descriptor: Int32, timeout: Int = timeout) throws(Failure) -> Secret {
        guard fcntl(descriptor, F_GETFD) >= 0 else { throw .notOpen }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        defer {
            for index in bytes.indices { bytes[index] = 0 }
            for index in buffer.indices { buffer[index] = 0 }
        }
        while true {
            try wait(for: descriptor, until: now() + timeout)
            let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
            let code = errno
            if count < 0, code == EINTR || code == EAGAIN { continue }
            guard count >= 0 else { throw .unreadable }
            if count == 0 { break }
            bytes += buffer[..<count]
            guard bytes.count <= maxSize else { throw .tooLong }
        }
        return Secret(bytes: ClientSecretFile.line(bytes))
    }

    private static func wait(for descriptor: Int32, until end: Int) throws(Failure) {
        while true {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = unsafe poll(&entry, 1, Int32(clamping: max(0, end - now())))
            let code = errno
            if ready > 0 { return }
            guard ready < 0, code == EINTR else { throw .notClosed }
        }
    }

    /// Milliseconds of a monotonic clock.
    private static func now() -> Int {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int(time.tv_sec) * 1_000 + Int(time.tv_nsec) / 1_000_000
    }
}
