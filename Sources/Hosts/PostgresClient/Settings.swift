internal import Glibc
internal import Secrets

/// The settings of a connection as libpq takes them.
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
    /// See ``PostgresURL/serverUID``.
    let serverUID: UInt32?

    /// Of one host of the URL: the caller tries them in turn, since libpq would wait for the first without end.
    init(
        _ url: PostgresURL, _ host: PostgresURL.Host, password: PostgresPassword, application: String
    ) {
        var pairs = [
            ("host", Self.name(host)),
            ("port", "\(host.port)"),
            ("user", url.user),
            ("dbname", url.database),
            ("application_name", application),
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
        if password.mayUsePasswordFile {
            if let file = url.passwordFile { pairs.append(("passfile", file)) }
        } else {
            pairs.append(("passfile", Self.nowhere))
        }
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

    private static var systemAuthorities: String {
        authorityFiles.first { unsafe access($0, R_OK) == 0 } ?? nowhere
    }

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
