internal import Glibc
internal import RingbackBase

/// The place of a database, as `postgresql://user@host:port/database?name=value`, read strictly. libpq would take what
/// is missing from PG* variables, service files and files below ~/.postgresql, so each setting that matters is given.
public struct PostgresURL: Sendable, Equatable {
    public struct Host: Sendable, Equatable {
        public enum Place: Sendable, Equatable {
            case socket(String)
            case address(String)
            case name(String)
        }

        public let place: Place
        public let port: UInt16

        /// True for a Unix socket, a loopback address and `localhost`: what is sent there does not leave the machine.
        public var isLocal: Bool {
            switch place {
            case .socket: true
            case .address(let text): text == "::1" || text.hasPrefix("127.")
            case .name(let name): name == "localhost"
            }
        }
    }

    /// Where the server is. Several places are tried in turn until one takes changes.
    public let hosts: [Host]
    public let user: String
    public let database: String
    /// `verify-full`, or what the URL says if every host is local.
    public let sslMode: String
    /// A file of certificate authorities in PEM; nil for the system's.
    public let rootCertificates: String?
    /// A file of passwords in the form of `.pgpass`; nil for libpq's own choice.
    public let passwordFile: String?
    public let channelBinding: String?
    /// A further user of this machine whose process may be the server without a certificate. Not in the URL.
    public var serverUID: UInt32?

    private static let parameters: Set<String> = [
        "host", "port", "sslmode", "sslrootcert", "passfile", "channel_binding",
    ]
    private static let sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
    static let defaultPort: UInt16 = 5_432
    private static let mostHosts = 8

    /// Reads a URL. Throws ``PostgresURLError`` for everything that is not understood.
    public init(parsing text: String) throws(PostgresURLError) {
        let parts = try Parts(text)
        for name in parts.parameters.keys where !Self.parameters.contains(name) { throw .unknownParameter(name) }
        guard !parts.user.isEmpty else { throw .noUser }
        user = parts.user
        database = parts.database.isEmpty ? parts.user : parts.database
        hosts = try Self.hosts(of: parts)

        let mode = parts.parameters["sslmode"]
        if let mode, !Self.sslModes.contains(mode) { throw .badValue("sslmode") }
        if hosts.allSatisfy(\.isLocal) {
            sslMode = mode ?? "prefer"
        } else {
            guard mode == nil || mode == "verify-full" else { throw .weakTLS }
            sslMode = "verify-full"
        }
        rootCertificates = try Self.path("sslrootcert", of: parts)
        passwordFile = try Self.path("passfile", of: parts)
        channelBinding = parts.parameters["channel_binding"]
        guard [nil, "require", "prefer"].contains(channelBinding) else { throw .badValue("channel_binding") }
    }

    private static func path(_ name: String, of parts: Parts) throws(PostgresURLError) -> String? {
        guard let path = parts.parameters[name] else { return nil }
        guard path.hasPrefix("/") else { throw .badValue(name) }
        return path
    }

    private static func hosts(of parts: Parts) throws(PostgresURLError) -> [Host] {
        var places = parts.hosts
        if let host = parts.parameters["host"] {
            guard places.isEmpty else { throw .repeatedParameter("host") }
            places = [(host, parts.parameters["port"])]
        } else if parts.parameters["port"] != nil {
            throw .badValue("port")
        }
        guard !places.isEmpty, places.count <= mostHosts else { throw .badHost }
        var hosts: [Host] = []
        for (name, port) in places {
            let number = port.map { $0.utf8.allSatisfy(\.isDigit) ? UInt16($0) : nil } ?? defaultPort
            guard let number, number > 0 else { throw .badPort }
            hosts.append(Host(place: try place(name), port: number))
        }
        return hosts
    }

    private static func place(_ text: String) throws(PostgresURLError) -> Host.Place {
        // libpq separates hosts by commas, also in a decoded name.
        guard !text.isEmpty, !text.contains(",") else { throw .badHost }
        // A socket's address has 107 bytes: directory, `/.s.PGSQL.` and the port.
        if text.hasPrefix("/") {
            guard text.utf8.count <= 90 else { throw .badHost }
            return .socket(text)
        }
        if isAddress(text) { return .address(text) }
        let isName = text.utf8.allSatisfy { $0.isLetterOrDigit || "-._".utf8.contains($0) }
        // A name that ends in a number is an address in a form that only some resolvers know, such as 127.1.
        let last = text.split(separator: ".", omittingEmptySubsequences: false).last ?? ""
        guard isName, text.utf8.count <= 253, last.contains(where: { !$0.isNumber }), !last.hasPrefix("0x") else {
            throw .badHost
        }
        return .name(text.lowercased())
    }

    private static func isAddress(_ text: String) -> Bool {
        var bytes: (UInt64, UInt64) = (0, 0)
        return unsafe inet_pton(AF_INET, text, &bytes) == 1 || inet_pton(AF_INET6, text, &bytes) == 1
    }
}

public enum PostgresURLError: Error, Sendable, Equatable {
    /// It does not begin with `postgresql://` or `postgres://`.
    case scheme
    /// Not a URL: bytes that are not allowed, or a `%` without two hexadecimal digits.
    case malformed
    case noUser
    /// A password does not belong into a configuration.
    case password
    /// No host, too many, or one that is no name, address or absolute path.
    case badHost
    case badPort
    case unknownParameter(String)
    case repeatedParameter(String)
    case badValue(String)
    /// Another `sslmode` than `verify-full`, and a host that is not on this machine.
    case weakTLS
}

struct Parts {
    let user: String
    let hosts: [(name: String, port: String?)]
    let database: String
    let parameters: [String: String]

    init(_ text: String) throws(PostgresURLError) {
        guard text.utf8.allSatisfy({ (0x21..<0x7F).contains($0) && $0 != UInt8(ascii: "#") }) else {
            throw .malformed
        }
        guard let prefix = ["postgresql://", "postgres://"].first(where: { text.hasPrefix($0) }) else { throw .scheme }
        let (front, query) = Parts.cut(Substring(text.dropFirst(prefix.count)), at: "?")
        let (authority, path) = Parts.cut(front, at: "/")
        database = try Parts.decode(path ?? "")

        var place = authority
        if let at = authority.lastIndex(of: "@") {
            let (name, password) = Parts.cut(authority[..<at], at: ":")
            guard password == nil else { throw .password }
            user = try Parts.decode(name)
            place = authority[authority.index(after: at)...]
        } else {
            user = ""
        }
        hosts = try place.isEmpty ? [] : Parts.hosts(place)
        parameters = try Parts.parameters(query ?? "")
    }

    private static func hosts(_ text: Substring) throws(PostgresURLError) -> [(name: String, port: String?)] {
        var hosts: [(name: String, port: String?)] = []
        for piece in text.split(separator: ",", omittingEmptySubsequences: false) {
            if piece.hasPrefix("[") {
                guard let end = piece.lastIndex(of: "]") else { throw .badHost }
                let name = piece[piece.index(after: piece.startIndex)..<end]
                let rest = piece[piece.index(after: end)...]
                guard name.contains(":"), rest.isEmpty || rest.hasPrefix(":") else { throw .badHost }
                hosts.append((String(name), rest.isEmpty ? nil : String(rest.dropFirst())))
            } else {
                let (name, port) = cut(piece, at: ":")
                hosts.append((try decode(name), port.map(String.init)))
            }
        }
        return hosts
    }

    private static func parameters(_ query: Substring) throws(PostgresURLError) -> [String: String] {
        var parameters: [String: String] = [:]
        for piece in query.split(separator: "&", omittingEmptySubsequences: true) {
            let (name, value) = cut(piece, at: "=")
            let decoded = try decode(name)
            // A password would be in the configuration.
            guard decoded != "password" else { throw .password }
            guard let value, !value.isEmpty else { throw .badValue(decoded) }
            guard parameters.updateValue(try decode(value), forKey: decoded) == nil else {
                throw .repeatedParameter(decoded)
            }
        }
        return parameters
    }

    private static func cut(_ text: Substring, at separator: Character) -> (Substring, Substring?) {
        guard let index = text.firstIndex(of: separator) else { return (text, nil) }
        return (text[..<index], text[text.index(after: index)...])
    }

    /// Decodes `%XX`. A `+` stays one.
    private static func decode(_ text: Substring) throws(PostgresURLError) -> String {
        var output: [UInt8] = []
        var rest = text.utf8
        while let next = rest.popFirst() {
            guard next == UInt8(ascii: "%") else {
                output.append(next)
                continue
            }
            guard let high = rest.popFirst()?.hexValue, let low = rest.popFirst()?.hexValue else { throw .malformed }
            let byte = high << 4 | low
            // Control characters belong into no name, and libpq takes its settings as C strings.
            guard byte >= 0x20, byte != 0x7F else { throw .malformed }
            output.append(byte)
        }
        guard let decoded = String(validating: output, as: UTF8.self) else { throw .malformed }
        return decoded
    }
}

extension PostgresURL {
    /// The URL of the same database for another role, without the file of passwords, which is this role's.
    public func text(for user: String) -> String {
        let places = hosts.map { host in
            let name =
                switch host.place {
                case .socket(let path): FormEncoding.escape(path)
                case .address(let text): text.contains(":") ? "[\(text)]" : text
                case .name(let name): name
                }
            return host.port == Self.defaultPort ? name : "\(name):\(host.port)"
        }
        var parameters: [String] = []
        if hosts.allSatisfy(\.isLocal), sslMode != "prefer" { parameters.append("sslmode=\(sslMode)") }
        if let rootCertificates { parameters.append("sslrootcert=\(FormEncoding.escape(rootCertificates))") }
        if let channelBinding { parameters.append("channel_binding=\(channelBinding)") }
        let query = parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")
        let (role, name) = (FormEncoding.escape(user), FormEncoding.escape(database))
        return "postgresql://\(role)@\(places.joined(separator: ","))/\(name)\(query)"
    }
}
