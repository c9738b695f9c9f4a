internal import CPostgres
internal import Glibc
internal import RingbackBase

/// Carries the bytes of one connection between the server and libpq, which gets one end of a pair of sockets in place
/// of its own. libpq keeps what it has not understood yet, so a server that never ends a message would fill the memory,
/// and it acts on what it reads at once. Here the bytes are counted and read before. Used by one thread.
final class Wire {
    let server: Int32
    private let inner: Int32
    private let inode: ino_t
    private var incoming: ArraySlice<UInt8> = []
    private var outgoing: ArraySlice<UInt8> = []
    private(set) var isEnded = false
    private(set) var received = 0
    private static let most = 65_536

    /// Takes the connected socket from the descriptor, which becomes one end of a pair. Nil if that failed.
    init?(replacing descriptor: Int32) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        defer { close(ends[1]) }
        var facts = stat()
        let taken = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard taken >= 0, cpostgres_replace(descriptor, ends[1]), unsafe fstat(descriptor, &facts) == 0 else {
            close(ends[0])
            if taken >= 0 { close(taken) }
            return nil
        }
        (inner, server, inode) = (ends[0], taken, facts.st_ino)
    }

    deinit {
        close(inner)
        close(server)
    }

    /// True if the descriptor is still the end of the pair: libpq may have begun another connection.
    func isBehind(_ descriptor: Int32) -> Bool {
        var facts = stat()
        return unsafe fstat(descriptor, &facts) == 0 && facts.st_ino == inode && facts.st_mode & S_IFMT == S_IFSOCK
    }

    var events: Int32 { (incoming.isEmpty && !isEnded ? POLLIN : 0) | (outgoing.isEmpty ? 0 : POLLOUT) }
    /// True if bytes of the server wait until libpq has taken the former ones.
    var hasIncoming: Bool { !incoming.isEmpty }

    /// Moves what can be moved without waiting. `check` sees what comes from the server, and may throw.
    func move(_ check: ([UInt8]) throws(DatabaseReason) -> Void) throws(DatabaseReason) {
        while true {
            var isMoved = false
            if outgoing.isEmpty, let bytes = Wire.read(inner) { outgoing = bytes[...] }
            if !outgoing.isEmpty, let count = Wire.write(outgoing, to: server) {
                // A server that takes no more may have said why.
                outgoing = count == 0 ? [] : outgoing.dropFirst(count)
                isMoved = count > 0
            }
            if incoming.isEmpty, !isEnded, let bytes = Wire.read(server) {
                if bytes.isEmpty { end() }
                received += bytes.count
                try check(bytes)
                incoming = bytes[...]
            }
            if !incoming.isEmpty, let count = Wire.write(incoming, to: inner) {
                incoming = count == 0 ? [] : incoming.dropFirst(count)
                isMoved = isMoved || count > 0
            }
            guard isMoved else { return }
        }
    }

    /// libpq is told of the end when it has read what came before.
    private func end() {
        isEnded = true
        shutdown(inner, Int32(SHUT_WR))
    }

    /// What can be read now; empty at the end, nil if there is nothing yet.
    private static func read(_ descriptor: Int32) -> [UInt8]? {
        var count = 0
        var code: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: most) { buffer, initialized in
            repeat {
                count = unsafe recv(descriptor, buffer.baseAddress, most, Int32(MSG_DONTWAIT))
                code = count < 0 ? errno : 0
            } while code == EINTR
            initialized = max(count, 0)
        }
        return code == EAGAIN ? nil : bytes
    }

    /// How many bytes were written; 0 if the other end is closed, nil if none can be written now.
    private static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Int? {
        let count = unsafe bytes.withUnsafeBytes { buffer in
            unsafe send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        }
        if count < 0, errno == EAGAIN || errno == EINTR { return nil }
        return max(count, 0)
    }
}
