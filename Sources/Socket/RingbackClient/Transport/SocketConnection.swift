import CLinux
import Glibc

/// A blocking stream socket on which every wait has a deadline. Before a byte is sent to a Unix socket, the kernel is
/// asked for its server's uid: another user's server gets no request and no secret.
package final class SocketConnection {
    /// The socket, for callers that wait with their own `poll`.
    package let descriptor: Int32
    private let interruption: Interruption?
    /// When the waits of this connection end.
    package var deadline: ContinuousClock.Instant
    /// Called about once a second while a wait lasts: a progress line can count down.
    package var onTick: (() -> Void)?

    /// Connects to the daemon.
    ///
    /// - Throws: `no_daemon`, `foreign_server`, `timed_out`, `cancelled`, `system_error`.
    package init(
        unixPath path: String, deadline: ContinuousClock.Instant, interruption: Interruption? = nil
    ) throws(RingbackError) {
        self.deadline = deadline
        self.interruption = interruption
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system("socket", errno) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let room = MemoryLayout.size(ofValue: address.sun_path) - 1
        guard !bytes.isEmpty, bytes.count <= room, !bytes.contains(0) else {
            throw RingbackError(
                .noDaemon, "The socket's path must have 1 to \(room) bytes: \(path)", recovery: .fixConfiguration)
        }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        // A Unix connect waits while the server's backlog is full, and only SO_SNDTIMEO bounds that.
        let wait = max(1, Interruption.milliseconds(until: deadline))
        var bound = timeval(tv_sec: Int(wait / 1_000), tv_usec: Int(wait % 1_000) * 1_000)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
        let failure = unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe SocketConnection.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard failure == 0 else { throw SocketConnection.noDaemon(at: path, failure) }
        try checkOwner(path)
        makeNonBlocking()
    }

    /// Connects to a server on 127.0.0.1 or ::1, for tools that act as the browser.
    ///
    /// - Throws: `no_daemon` if nothing listens there, `system_error`.
    package init(
        loopbackPort port: UInt16, isIPv6: Bool = false, deadline: ContinuousClock.Instant,
        interruption: Interruption? = nil
    ) throws(RingbackError) {
        self.deadline = deadline
        self.interruption = interruption
        descriptor = socket(
            isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system("socket", errno) }
        let failure: Int32
        if isIPv6 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = in6addr_loopback
            failure = unsafe withUnsafePointer(to: &address) {
                unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe SocketConnection.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                }
            }
        } else {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
            failure = unsafe withUnsafePointer(to: &address) {
                unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe SocketConnection.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        guard failure == 0 else {
            let reason = unsafe String(cString: strerror(failure))
            throw RingbackError(.noDaemon, "Nothing answers on the loopback port \(port): \(reason)", recovery: .retry)
        }
        makeNonBlocking()
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Sends all of it.
    package func send(_ bytes: [UInt8]) throws(RingbackError) {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                // No SIGPIPE: it would end the app when the daemon ends.
                unsafe Glibc.send(
                    descriptor, buffer.baseAddress.map { unsafe $0 + sent }, buffer.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
                continue
            }
            let number = errno
            switch number {
            case EINTR: continue
            case EAGAIN: try wait(for: Int16(POLLOUT))
            // The server may have sent an error response before it closed: reading will show it.
            case EPIPE, ECONNRESET: return
            default: throw .system("send", number)
            }
        }
    }

    /// The bytes that are there, after a wait if there are none; empty at the end of the stream.
    package func receive() throws(RingbackError) -> [UInt8] {
        while true {
            var failure: Int32 = 0
            var count = 0
            let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, initialized in
                count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
                failure = errno
                initialized = max(0, count)
            }
            if count >= 0 { return bytes }
            switch failure {
            case EINTR: continue
            case EAGAIN: try wait(for: Int16(POLLIN))
            case ECONNRESET: return []
            default: throw .system("recv", failure)
            }
        }
    }

    /// Sends what the socket accepts without waiting. Returns the number of bytes, or nil if the connection is broken.
    package func sendSome(_ bytes: ArraySlice<UInt8>) -> Int? {
        let count = unsafe bytes.withUnsafeBytes { buffer in
            unsafe Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        }
        if count >= 0 { return count }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }

    /// The bytes that are there; empty if there are none, nil at the end of the stream.
    package func receiveSome(atMost limit: Int = 65_536) -> [UInt8]? {
        var count = 0
        var failure: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, initialized in
            count = unsafe recv(descriptor, buffer.baseAddress, limit, Int32(MSG_DONTWAIT))
            failure = errno
            initialized = max(0, count)
        }
        if count > 0 { return bytes }
        return count < 0 && (failure == EAGAIN || failure == EINTR) ? [] : nil
    }

    private func wait(for events: Int16) throws(RingbackError) {
        var entries = [pollfd(fd: descriptor, events: events, revents: 0)]
        if let interruption { entries.append(pollfd(fd: interruption.descriptor, events: Int16(POLLIN), revents: 0)) }
        while true {
            let left = Interruption.milliseconds(until: deadline)
            let slice = onTick == nil ? left : min(left, 1_000)
            let ready = unsafe poll(&entries, nfds_t(entries.count), slice)
            if ready < 0, errno != EINTR { throw .system("poll", errno) }
            if entries.count > 1, entries[1].revents != 0 { throw RingbackError(.cancelled, "The call was cancelled.") }
            if ready > 0, entries[0].revents != 0 { return }
            if left == 0 {
                throw RingbackError(.timedOut, "The daemon did not respond in time.", recovery: .retry)
            }
            if ready == 0 { onTick?() }
        }
    }

    private func checkOwner(_ path: String) throws(RingbackError) {
        var pid: pid_t = 0
        var uid: uid_t = 0
        var gid: gid_t = 0
        let failure = unsafe clinux_peer_credentials(descriptor, &pid, &uid, &gid)
        guard failure == 0 else { throw .system("SO_PEERCRED", failure) }
        guard uid == getuid() || uid == SocketConnection.expectedServer else {
            let server =
                "The socket \(path) is served by uid \(uid), which is not yours (\(getuid())). Nothing was sent to it."
            let container =
                "If it is meant, in a container that has you under another number: RINGBACK_SERVER_UID=\(uid)"
            guard let owner = SocketPlace.foreignOwner(ofDirectoryOf: path) else {
                throw RingbackError(.foreignServer, "\(server) \(container)", recovery: .fixConfiguration)
            }
            var error = RingbackError(
                .foreignServer, "\(server) \(SocketPlace.words(ofOwner: owner))", recovery: .fixConfiguration)
            error.advice = "\(SocketPlace.ownUser(owner)) \(container)"
            throw error
        }
    }

    /// In a user namespace the user's own daemon may have another uid than the user. Only the one who set the container
    /// up knows which, so it has to be stated.
    private static var expectedServer: uid_t? {
        SocketPlace.variable("RINGBACK_SERVER_UID").flatMap { uid_t($0) }
    }

    private func makeNonBlocking() { _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) }

    /// 0, or an errno. An interrupted connect continues; calling it again tells how it ended.
    private static func connect(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32 {
        while true {
            if unsafe Glibc.connect(descriptor, address, length) == 0 { return 0 }
            let number = errno
            if number == EISCONN { return 0 }
            if number != EINTR, number != EALREADY { return number }
        }
    }

    private static func noDaemon(at path: String, _ number: Int32) -> RingbackError {
        let reason = unsafe String(cString: strerror(number))
        if number != EAGAIN, number != EINPROGRESS, let owner = SocketPlace.foreignOwner(ofDirectoryOf: path) {
            var error = RingbackError(
                .noDaemon, "No daemon can be reached at \(path): \(reason). \(SocketPlace.words(ofOwner: owner))",
                recovery: .fixConfiguration)
            error.advice = SocketPlace.ownUser(owner)
            return error
        }
        return switch number {
        case ENOENT, ECONNREFUSED:
            RingbackError(.noDaemon, "No daemon answers at \(path).", recovery: .retry)
        case EAGAIN, EINPROGRESS:
            RingbackError(.timedOut, "The daemon at \(path) does not accept the connection in time.", recovery: .retry)
        default:
            RingbackError(.noDaemon, "No daemon can be reached at \(path): \(reason).", recovery: .retry)
        }
    }
}
