internal import CLinux
internal import Glibc
public import RingbackBase

/// Makes connections: asks for the password each time, since it may have been changed.
struct Connector: Sendable {
    private let settings: [Settings]
    private let password: PostgresPassword

    init(_ url: PostgresURL, password: PostgresPassword) {
        settings = url.hosts.map { Settings(url, $0, password: password) }
        self.password = password
    }

    /// Connects to the first host that takes changes; blocks the thread. Throws the failure of the last host.
    func connect(until deadline: ContinuousClock.Instant) throws(DatabaseReason) -> Session {
        let secret = try password.value()
        var failure = DatabaseReason.noConnection
        var left = settings.count
        for each in settings {
            let share = ContinuousClock.now.duration(to: deadline) / left
            left -= 1
            do throws(DatabaseReason) { return try Session(each, password: secret, until: .now + share) } catch {
                failure = error
            }
        }
        throw failure
    }
}

/// How long nothing is tried after a failure: longer after each one, and never the same for many hosts.
struct Backoff: Sendable {
    private static let shortest: Duration = .milliseconds(250)
    private static let longest: Duration = .seconds(10)
    private var next = Backoff.shortest

    mutating func wait() -> Duration {
        defer { next = min(next * 2, Backoff.longest) }
        return next * Double.random(in: 0.75...1.25)
    }

    mutating func reset() { next = Backoff.shortest }
}

struct Settings: Sendable {
    /// A place that cannot exist: libpq reads files below ~/.postgresql unless it is told of others.
    private static let nowhere = "/dev/null/none"
    private static let authorityFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ]

    let pairs: [(name: String, value: String)]
    /// The server proves its name by a certificate.
    let isVerified: Bool
    let serverUID: UInt32?

    /// Of one host of the URL: the caller tries them in turn, since libpq would wait for the first without end.
    init(_ url: PostgresURL, _ host: PostgresURL.Host, password: PostgresPassword) {
        var pairs = [
            ("host", Self.name(host)),
            ("port", "\(host.port)"),
            ("user", url.user),
            ("dbname", url.database),
            ("application_name", "ringback"),
            ("client_encoding", "UTF8"),
            ("sslmode", url.sslMode),
            ("sslrootcert", url.rootCertificates ?? Self.systemAuthorities),
            ("sslcert", Self.nowhere),
            ("sslkey", Self.nowhere),
            ("sslcrl", Self.nowhere),
            ("ssl_min_protocol_version", "TLSv1.2"),
            ("gssencmode", "disable"),
            ("channel_binding", url.channelBinding ?? "prefer"),
            // A dead peer is noticed within a quarter of a minute, also while nothing is sent.
            ("keepalives", "1"),
            ("keepalives_idle", "10"),
            ("keepalives_interval", "3"),
            ("keepalives_count", "2"),
            ("tcp_user_timeout", "15000"),
            // With one host a read-only server shows itself by the statements' errors.
            ("target_session_attrs", url.hosts.count > 1 ? "read-write" : "any"),
        ]
        // Also where the resolver says something else.
        if host.place == .name("localhost") { pairs.append(("hostaddr", "127.0.0.1")) }
        if let file = password.mayUsePasswordFile ? url.passwordFile : Self.nowhere { pairs.append(("passfile", file)) }
        self.pairs = pairs
        serverUID = url.serverUID
        // libpq has no TLS on Unix sockets, whatever the mode.
        isVerified = if case .socket = host.place { false } else { url.sslMode == "verify-full" }
    }

    private static func name(_ host: PostgresURL.Host) -> String {
        switch host.place {
        case .socket(let text), .address(let text), .name(let text): text
        }
    }

    private static var systemAuthorities: String { authorityFiles.first { unsafe access($0, R_OK) == 0 } ?? nowhere }

    /// Calls `body` with two arrays that end with NULL. The copies are erased afterwards.
    func withArrays<Value>(
        password: Secret?,
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Value
    ) -> Value {
        var names = unsafe pairs.map { unsafe strdup($0.name) }
        var values = unsafe pairs.map { unsafe strdup($0.value) }
        if let password {
            unsafe names.append(strdup("password"))
            unsafe values.append(strdup(password.revealed()))
        }
        defer {
            var index = 0
            while unsafe index < names.count {
                if let value = unsafe values[index] { unsafe explicit_bzero(value, strlen(value)) }
                unsafe free(names[index])
                unsafe free(values[index])
                index += 1
            }
        }
        let first = unsafe names.map { unsafe UnsafePointer($0) } + [nil]
        let second = unsafe values.map { unsafe UnsafePointer($0) } + [nil]
        return unsafe body(first, second)
    }
}

enum PasswordLine {
    private static let mostBytes = 1_024

    /// Nil if the file cannot be read, is empty or too long, or others than its owner and group may read it.
    static func read(_ path: String) -> Secret? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var facts = stat()
        guard unsafe fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG,
            facts.st_uid == geteuid() || facts.st_uid == 0, facts.st_mode & 0o037 == 0
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: mostBytes + 1)
        defer {
            unsafe bytes.withUnsafeMutableBytes { buffer in
                if let start = buffer.baseAddress { unsafe explicit_bzero(start, buffer.count) }
            }
        }
        let count = unsafe Glibc.read(descriptor, &bytes, bytes.count)
        guard count > 0, count <= mostBytes else { return nil }
        let line = bytes[..<count].prefix { $0 != 0x0A && $0 != 0x0D }
        guard !line.isEmpty, !line.contains(0) else { return nil }
        return Secret(bytes: line)
    }
}

/// Who answers at the other end of a connection within this machine. Attack: while the server is started again, any
/// user may listen at its port.
enum ServerOwner {
    static func isConnected(_ descriptor: Int32) -> Bool {
        var there = sockaddr_storage()
        return unsafe name(&there, of: descriptor, getpeername)
    }

    /// The uid that owns the other end of a connected socket; nil if the kernel does not tell.
    static func uid(of descriptor: Int32) -> UInt32? {
        var (here, there) = (sockaddr_storage(), sockaddr_storage())
        guard unsafe name(&here, of: descriptor, getsockname), unsafe name(&there, of: descriptor, getpeername) else {
            return nil
        }
        if Int32(there.ss_family) == AF_UNIX {
            var (pid, uid, gid): (pid_t, uid_t, gid_t) = (0, 0, 0)
            return unsafe clinux_peer_credentials(descriptor, &pid, &uid, &gid) == 0 ? uid : nil
        }
        guard let (address, port) = place(there), let (own, ownPort) = place(here), here.ss_family == there.ss_family
        else { return nil }
        var (uid, inode): (UInt32, UInt32) = (0, 0)
        // A socket without an inode belongs to no process: it is not accepted yet, or closed.
        guard unsafe clinux_tcp_socket_owner(Int32(here.ss_family), address, port, own, ownPort, &uid, &inode) == 0,
            inode != 0
        else { return nil }
        return uid
    }

    /// True for root, this user, the user `postgres`, and the one that the configuration names.
    static func isTrusted(_ uid: UInt32, configured: UInt32?) -> Bool {
        uid == 0 || uid == geteuid() || uid == configured || uid == databaseUser
    }

    private static var databaseUser: UInt32? {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16_384)
        guard unsafe getpwnam_r("postgres", &entry, &buffer, buffer.count, &found) == 0, unsafe found != nil else {
            return nil
        }
        return unsafe entry.pw_uid
    }

    private static func name(
        _ storage: inout sockaddr_storage, of descriptor: Int32,
        _ ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Bool {
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe ask(descriptor, $0, &length) == 0
            }
        }
    }

    private static func place(_ storage: sockaddr_storage) -> ([UInt8], UInt16)? {
        let bytes = unsafe withUnsafeBytes(of: storage) { unsafe Array($0) }
        let port = UInt16(bytes[2]) << 8 | UInt16(bytes[3])
        // sin_addr follows the port, sin6_addr the port and sin6_flowinfo.
        switch Int32(storage.ss_family) {
        case AF_INET: return (Array(bytes[4..<8]), port)
        case AF_INET6: return (Array(bytes[8..<24]), port)
        default: return nil
        }
    }
}

extension DatabaseReason {
    var endsConnection: Bool {
        switch self {
        case .refused, .otherSchema, .malformed: false
        default: true
        }
    }

    static func of(state: String, detail: String?) -> DatabaseReason {
        switch state {
        // The classes 08 (connection), 57P (the server is ended or starts) and 53300 (no connection left).
        case _ where state.hasPrefix("28"): .authentication
        case _ where state.hasPrefix("57P0"), "53300": .notNow
        case _ where state.hasPrefix("08"): .closed
        case "25006": .readOnly
        case "RB001": .otherSchema(detail.flatMap { Int($0) } ?? 0)
        default: .refused(state: state)
        }
    }
}

public indirect enum PostgresPassword: Sendable {
    /// There is none: the server trusts the user of a Unix socket, or asks for nothing.
    case none
    /// From `.pgpass`, by libpq's own rules: the file that the URL names, else `~/.pgpass`.
    case passwordFile
    /// Asked for each time when a connection is made. Nil is the same as no password.
    case given(@Sendable () -> Secret?)
    /// The same, but nil means that the other source is asked.
    case first(@Sendable () -> Secret?, else: PostgresPassword)

    /// The first line of a file that only its owner can read.
    public static func file(_ path: String) -> PostgresPassword { .given { PasswordLine.read(path) } }

    var mayUsePasswordFile: Bool {
        switch self {
        case .passwordFile: true
        case .none, .given: false
        case .first(_, let other): other.mayUsePasswordFile
        }
    }

    /// The password that libpq is given; nil if it is to have none, or finds it itself. Throws `noPassword`.
    func value() throws(DatabaseReason) -> Secret? {
        switch self {
        case .none, .passwordFile: return nil
        case .given(let ask):
            guard let secret = ask() else { throw .noPassword }
            return secret
        case .first(let ask, let other):
            if let secret = ask() { return secret }
            return try other.value()
        }
    }
}
