import CLinux
import Glibc
package import RingbackAPI
package import RingbackBase

/// A blocking stream socket on which every wait has a deadline. Before a byte is sent to a Unix socket, the kernel is
/// asked for its server's uid: another user's server gets no request and no secret.
package final class SocketConnection {
    package let descriptor: Int32
    private let interruption: Interruption?
    package var deadline: ContinuousClock.Instant
    /// Called about once a second while a wait lasts: a progress line can count down.
    package var onTick: (() -> Void)?

    /// Connects to the daemon. Throws `no_daemon`, `foreign_server`, `timed_out`, `cancelled`, `system_error`.
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
        let failure = unsafe withUnsafeBytes(of: &address) { unsafe SocketConnection.connect(descriptor, $0) }
        guard failure == 0 else { throw SocketConnection.noDaemon(at: path, failure) }
        try checkOwner(path)
        makeNonBlocking()
    }

    /// Connects to a server on 127.0.0.1 or ::1, for tools that act as the browser. Throws `no_daemon`, `system_error`.
    package init(
        loopbackPort port: UInt16, isIPv6: Bool = false, deadline: ContinuousClock.Instant,
        interruption: Interruption? = nil
    ) throws(RingbackError) {
        self.deadline = deadline
        self.interruption = interruption
        descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system("socket", errno) }
        let failure: Int32
        if isIPv6 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = in6addr_loopback
            failure = unsafe withUnsafeBytes(of: &address) { unsafe SocketConnection.connect(descriptor, $0) }
        } else {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
            failure = unsafe withUnsafeBytes(of: &address) { unsafe SocketConnection.connect(descriptor, $0) }
        }
        guard failure == 0 else {
            let reason = unsafe String(cString: strerror(failure))
            throw RingbackError(.noDaemon, "Nothing answers on the loopback port \(port): \(reason)", recovery: .retry)
        }
        makeNonBlocking()
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

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
            let (bytes, count, failure) = Descriptor.receive(descriptor, atMost: 16_384)
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
        let (bytes, count, failure) = Descriptor.receive(descriptor, atMost: limit, flags: Int32(MSG_DONTWAIT))
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
            if left == 0 { throw RingbackError(.timedOut, "The daemon did not respond in time.", recovery: .retry) }
            if ready == 0 { onTick?() }
        }
    }

    private func checkOwner(_ path: String) throws(RingbackError) {
        var (pid, uid, gid): (pid_t, uid_t, gid_t) = (0, 0, 0)
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

    /// True if a daemon of this machine serves the socket, or systemd, which listens for it: no program that carries the
    /// connection to another machine, such as ssh.
    var isServedHere: Bool {
        var (pid, uid, gid): (pid_t, uid_t, gid_t) = (0, 0, 0)
        guard unsafe clinux_peer_credentials(descriptor, &pid, &uid, &gid) == 0, pid > 0 else { return false }
        let file = unsafe open("/proc/\(pid)/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var name = [UInt8](repeating: 0, count: 32)
        let count = unsafe read(file, &name, name.count)
        return ["ringbackd\n", "systemd\n"].contains(String(decoding: name.prefix(max(0, count)), as: UTF8.self))
    }

    /// In a user namespace the user's own daemon may have another uid, which only the container's maker knows.
    private static var expectedServer: uid_t? { SocketPlace.variable("RINGBACK_SERVER_UID").flatMap { uid_t($0) } }
    private func makeNonBlocking() { _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) }

    /// 0, or an errno. An interrupted connect continues; calling it again tells how it ended.
    private static func connect(_ descriptor: Int32, _ address: UnsafeRawBufferPointer) -> Int32 {
        while true {
            let start = unsafe address.assumingMemoryBound(to: sockaddr.self).baseAddress
            if unsafe Glibc.connect(descriptor, start, socklen_t(address.count)) == 0 { return 0 }
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

/// Where the daemon's socket is: never in a directory that others may write to, so that no shared one stands in for it.
package enum SocketPlace {
    /// - Parameters:
    ///   - stated: the path the caller named, which goes before the environment.
    ///   - logins: the directory in which systemd's logins have a directory for each user.
    /// - Throws: `no_daemon` if neither `RINGBACK_SOCK` nor `XDG_RUNTIME_DIR` says where, and `/run/user/UID` has none.
    package static func path(
        stated: String? = nil, environment: (String) -> String? = variable, logins: String = "/run/user"
    ) throws(RingbackError) -> String {
        if let stated, !stated.isEmpty { return stated }
        if let path = environment("RINGBACK_SOCK"), !path.isEmpty { return path }
        let own = "\(logins)/\(getuid())"
        // The base directory specification wants an absolute path and has a relative one ignored.
        if let directory = environment("XDG_RUNTIME_DIR"), directory.hasPrefix("/") {
            let path = usualPath(in: directory)
            // A Snap has /run/user/UID/snap.NAME. Any other directory was chosen: its user wants no other daemon.
            guard directory.hasPrefix(own + "/"), !isOwn(path, S_IFSOCK), hasSocket(own) else { return path }
            return usualPath(in: own)
        }
        if hasSocket(own) { return usualPath(in: own) }
        throw RingbackError(
            .noDaemon,
            "There is no place for the daemon's socket: XDG_RUNTIME_DIR is not set. \(advice(hasSystemd: hasSystemd)) "
                + "Or name the socket with RINGBACK_SOCK.",
            recovery: .fixConfiguration)
    }

    /// True if the user's own runtime directory has a daemon's socket, and nobody else can put one there.
    private static func hasSocket(_ directory: String) -> Bool {
        isOwn(directory, S_IFDIR) && isOwn(directory + "/ringback", S_IFDIR)
            && isOwn(usualPath(in: directory), S_IFSOCK)
    }

    /// True for a file of this kind and this user's; of directories, only if nobody else may write to it.
    private static func isOwn(_ path: String, _ kind: mode_t) -> Bool {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_uid == getuid(), status.st_mode & S_IFMT == kind else {
            return false
        }
        return kind != S_IFDIR || status.st_mode & 0o022 == 0
    }

    /// The owner of the runtime directory, if it is another user: sudo and su keep the variable of their caller.
    static func foreignOwner(ofDirectoryOf path: String) -> uid_t? {
        guard let directory = variable("XDG_RUNTIME_DIR"), path == usualPath(in: directory) else { return nil }
        var status = stat()
        guard unsafe stat(directory, &status) == 0, status.st_uid != getuid() else { return nil }
        return status.st_uid
    }

    static func words(ofOwner owner: uid_t) -> String {
        "XDG_RUNTIME_DIR belongs to uid \(owner), and this process has uid \(getuid()): sudo and su keep the variable "
            + "of the user that called them."
    }

    static func ownUser(_ owner: uid_t) -> String {
        "To use the daemon of uid \(owner), run the command as that user, without sudo and su."
    }

    private static func usualPath(in directory: String) -> String { directory + "/ringback/ringback.sock" }

    /// How the variable gets a value: a machine without systemd's logins has no directory for it.
    static func advice(hasSystemd: Bool) -> String {
        hasSystemd
            ? "A login sets it; shells of sudo and su, and jobs without a login, lack it. If the user has a login or "
                + "lingers, set it to /run/user/\(getuid())."
            : "This system sets none, as is usual in containers. Set it to a directory of your own that is closed to "
                + "others, for the daemon too."
    }

    /// True if systemd is this machine's init, as sd_booted(3) finds out.
    package static var hasSystemd: Bool { unsafe access("/run/systemd/system", F_OK) == 0 }

    package static func variable(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }
}

/// A connection that is kept for many calls. Only GET requests are sent over it: a lost one can be sent again.
package final class KeptConnection {
    package struct Response: Sendable {
        let head: HTTPExchange.Head
        package let body: [UInt8]
    }

    /// Bytes of a response's body.
    private static let maxBody = 8 << 20
    /// How long a daemon may take to accept it.
    private static let acceptBound = Duration.seconds(1)
    private let connection: SocketConnection
    private var reader = HTTPResponseReader()
    private var head: HTTPExchange.Head?
    private var body: [UInt8] = []
    /// True once a response has come over it: then the daemon may have closed it since.
    package private(set) var hasServed = false
    /// True as long as the daemon has not said that it closes it.
    package private(set) var isKept = true

    package init(_ calls: BrokerCalls) throws(RingbackError) {
        connection = try SocketConnection(unixPath: calls.socket, deadline: .now + KeptConnection.acceptBound)
    }

    /// Readable when more of a response is there.
    package var descriptor: Int32 { connection.descriptor }

    /// Sends requests (``BrokerCalls/request(_:_:)``); their responses come in this order. False if it is broken.
    package func send(_ requests: [UInt8]) -> Bool {
        // They are small, and nothing else waits in the socket's buffer.
        connection.sendSome(requests[...]) == requests.count
    }

    /// The next response; nil if it is not whole yet. Throws `no_daemon` if the connection ended, and `bad_response`.
    package func next() throws(RingbackError) -> Response? {
        while true {
            switch try reader.next() {
            case .head(let next): (head, body) = (next, [])
            case .piece(let piece):
                body += piece
                guard body.count <= KeptConnection.maxBody else {
                    throw RingbackError(.badResponse, "The daemon sent a response of over \(body.count) bytes.")
                }
            case .end:
                guard let head else { throw RingbackError(.badResponse, "The daemon's response has no head.") }
                hasServed = true
                if !head.isCurrent || head.field("connection") != nil { isKept = false }
                reader.beginNext()
                defer { (self.head, body) = (nil, []) }
                return Response(head: head, body: body)
            case .needsMore:
                guard let more = connection.receiveSome() else {
                    isKept = false
                    reader.close()
                    continue
                }
                guard !more.isEmpty else { return nil }
                reader.append(more)
            }
        }
    }
}

extension BrokerCalls {
    /// A request as it is sent. Throws `account_not_found` for what no account can be called.
    package func request(
        _ endpoint: Endpoint, _ values: [String], body: JSON? = nil
    ) throws(RingbackError) -> [UInt8] {
        let type = body.map { _ in [HTTPFields.Field("Content-Type", "application/json")] } ?? []
        return HTTPExchange.bytes(
            endpoint.method.rawValue, try RequestTarget.of(endpoint, values), fields: fields + type,
            body: body?.serialized())
    }
}

/// Ends the waits of another thread, also those that begin later, so that no interruption is missed.
package final class Interruption: Sendable {
    /// Readable from the interruption on.
    package let descriptor: Int32
    /// One byte written here interrupts. A signal handler can do this, since it may call `write`.
    package let trigger: Int32

    /// - Throws: `system_error` if the process has no descriptors left.
    package init() throws(RingbackError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw .system("pipe", errno) }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            // A handler that runs very often must not block on a full pipe.
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
        }
        descriptor = ends[0]
        trigger = ends[1]
    }

    deinit {
        close(descriptor)
        close(trigger)
    }

    package func interrupt() {
        var byte: UInt8 = 1
        _ = unsafe write(trigger, &byte, 1)
    }

    package var isInterrupted: Bool { Interruption.poll(descriptor, events: Int16(POLLIN), milliseconds: 0) > 0 }

    /// Waits for the interruption, at most for this duration. Returns true if it was interrupted.
    @discardableResult
    package func wait(atMost duration: Duration) -> Bool {
        let end = ContinuousClock.now + duration
        while true {
            let left = Interruption.milliseconds(until: end)
            if Interruption.poll(descriptor, events: Int16(POLLIN), milliseconds: left) > 0 { return true }
            if left == 0 { return false }
        }
    }

    /// The time left, rounded up so that a wait does not end before its deadline; at most a minute.
    static func milliseconds(until end: ContinuousClock.Instant) -> Int32 {
        let left = end - ContinuousClock.now
        guard left > .zero else { return 0 }
        return Int32(min(left / .milliseconds(1), 60_000).rounded(.up))
    }

    private static func poll(_ descriptor: Int32, events: Int16, milliseconds: Int32) -> Int32 {
        var entry = pollfd(fd: descriptor, events: events, revents: 0)
        return unsafe Glibc.poll(&entry, 1, milliseconds)
    }
}

/// Runs blocking work on a thread of its own: a long poll would stop the tasks that share one thread for each core.
package enum Blocking {
    /// Runs the work and returns its result. Cancelling the task interrupts the work, which ends with `cancelled`.
    static func run<Value: Sendable>(
        _ work: @escaping @Sendable (Interruption) throws(RingbackError) -> Value
    ) async throws(RingbackError) -> Value {
        let interruption = try Interruption()
        let result: Result<Value, RingbackError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let failure = start {
                    continuation.resume(
                        returning: Result { () throws(RingbackError) -> Value in try work(interruption) })
                }
                if failure != 0 { continuation.resume(returning: .failure(.system("pthread_create", failure))) }
            }
        } onCancel: {
            interruption.interrupt()
        }
        return try result.get()
    }

    /// Starts a thread: 0, or an errno.
    package static func start(_ body: @escaping @Sendable () -> Void) -> Int32 {
        // The deepest recursion here is JSON of 32 levels at most.
        BlockingThread.start(stackSize: 512 << 10, blocksSignals: false, body)
    }
}

/// Two daemons on two hosts with one state directory would use up each other's refresh tokens.
package enum StateDisk {
    /// File systems of other machines, by the magic numbers of statfs(2).
    private static let remote: [UInt32: String] = [
        0x6969: "NFS", 0xFF53_4D42: "CIFS", 0xFE53_4D42: "SMB", 0x517B: "SMB", 0x7375_7245: "Coda",
        0x5346_414F: "AFS", 0x6B41_4653: "AFS", 0x00C3_6400: "Ceph", 0x0BD0_0BD0: "Lustre", 0x0102_1997: "9P",
    ]

    package static func warning(_ path: String, kind: UInt32) -> String? {
        guard let name = remote[kind] else { return nil }
        return
            "\(path) is on \(name): only one host at a time can run the daemon; on another one it says who does. Set "
            + "Environment=RINGBACK_STATE= to a directory of yours on a local disk, not below /tmp or /var/tmp."
    }
}
