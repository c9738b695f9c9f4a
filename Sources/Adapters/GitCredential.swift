internal import HTTPMessages

/// git's protocol for credential helpers (git-credential(1), gitcredentials(7)): `key=value` lines, and an action as the
/// program's last argument.
///
/// The token is given as the password, or, where git understands that and the server offers it, as a Bearer credential.
/// Both are marked as short-lived, so that no other helper stores them. A refresh token is never given.
public struct GitCredential: Sendable, Equatable {
    /// What git asks a helper to do.
    public enum Action: String, Sendable, CaseIterable {
        case get
        /// The server accepted the credential. There is nothing to store.
        case store
        /// The server refused the credential.
        case erase
        /// git asks what the helper understands.
        case capability
    }

    /// The most bytes of git's input that are read.
    public static let maxInput = 1 << 20
    /// git's own limit for a line.
    private static let maxLine = 65_535

    /// What to ask the daemon; nil where there is no server, such as for the passphrase of a key.
    public let request: AdapterRequest?
    /// True if git understands `authtype` and the server offers Bearer authentication (RFC 6750).
    let takesBearer: Bool
    /// True if git understands `authtype`.
    let hasAuthType: Bool

    /// The answer to ``Action/capability``.
    public static let capabilities = Array("version 0\ncapability authtype\n".utf8)

    /// The answer that keeps git from asking other helpers and the user.
    public static let quit = Array("quit=1\n".utf8)

    /// Reads what git wrote for an action.
    ///
    /// - Throws: for input that git does not write: a line that is too long or has no `=`, a NUL, a value twice, text
    ///   that is not UTF-8. Then nothing may be given, since git and we could mean different servers.
    public init(_ action: Action, reading input: [UInt8]) throws(AdapterFailure) {
        let fields = try GitFields(input, maxLine: GitCredential.maxLine)
        hasAuthType = fields.capabilities.contains("authtype")
        takesBearer = hasAuthType && fields.challenges.contains(where: GitCredential.isBearer)
        guard action == .get || action == .erase, let url = try GitCredential.url(of: fields) else {
            request = nil
            return
        }
        let username = fields["username"].flatMap { $0.isEmpty ? nil : $0 }
        guard action == .erase else {
            request = AdapterRequest(url: url, username: username)
            return
        }
        // Without the password it is not known which token was refused.
        guard let secret = fields["credential"] ?? fields["password"], !secret.isEmpty else {
            request = nil
            return
        }
        request = AdapterRequest(url: url, username: username, rejected: SHA256.hex(Array(secret.utf8)))
    }

    /// The answer to `get`.
    ///
    /// - Throws: if a value has characters that would add a line.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        var lines: [(String, String)] = []
        if hasAuthType { lines.append(("capability[]", "authtype")) }
        if takesBearer, credential.headers == ["Authorization: Bearer \(credential.secret)"] {
            lines += [("authtype", "Bearer"), ("credential", credential.secret)]
        } else {
            // The name that GitLab, Gitea and Forgejo know for tokens.
            lines += [("username", credential.username ?? "oauth2"), ("password", credential.secret)]
        }
        lines.append(("ephemeral", "1"))
        if let expiresAt = credential.expiresAt { lines.append(("password_expiry_utc", String(expiresAt))) }
        var output: [UInt8] = []
        for (key, value) in lines {
            guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw AdapterFailure("The \(key) has characters that git's protocol does not allow.")
            }
            output += Array("\(key)=\(value)\n".utf8)
        }
        return output
    }

    /// The URL that git means; nil without a host.
    private static func url(of fields: GitFields) throws(AdapterFailure) -> String? {
        // A port alone is no host.
        guard let scheme = fields["protocol"], let host = fields["host"], !host.isEmpty, !host.hasPrefix(":") else {
            return nil
        }
        guard scheme.utf8.allSatisfy({ isUnreserved($0) || $0 == UInt8(ascii: "+") }),
            host.utf8.allSatisfy({ isUnreserved($0) || "[]:".utf8.contains($0) })
        else { throw AdapterFailure("git named a protocol or host with characters that none has.") }
        var url = "\(scheme)://\(host)"
        // git gives the path decoded, and without its first slash.
        if let path = fields["path"] { url += "/" + escaped(path) }
        guard (try? WebURL(parsing: url)) != nil else { throw AdapterFailure("git named something that is no URL.") }
        return url
    }

    private static func escaped(_ path: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var output: [UInt8] = []
        for byte in path.utf8 {
            if isUnreserved(byte) || byte == UInt8(ascii: "/") {
                output.append(byte)
            } else {
                output += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// RFC 3986 section 2.3.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "-._~".utf8.contains(byte)
        }
    }

    /// True for a challenge of the scheme Bearer (RFC 9110 section 11.6.1).
    private static func isBearer(_ challenge: String) -> Bool {
        let scheme = challenge.drop { $0 == " " }.prefix { $0 != " " && $0 != "," }
        return scheme.lowercased() == "bearer"
    }
}

/// git's lines, as keys and values. Keys that are not known are left out, as the protocol says.
///
/// A list instead of a dictionary: git runs the helper for every connection, and to make the first dictionary of a type the
/// runtime looks through all conformances of the program.
private struct GitFields {
    private var values: [(key: String, value: String)] = []
    private(set) var capabilities: [String] = []
    private(set) var challenges: [String] = []

    subscript(_ key: String) -> String? { values.first { $0.key == key }?.value }

    init(_ input: [UInt8], maxLine: Int) throws(AdapterFailure) {
        guard !input.contains(0) else { throw AdapterFailure("git's input has a NUL character.") }
        for line in input.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            // A blank line ends the input.
            guard !line.isEmpty else { return }
            guard line.count <= maxLine else { throw AdapterFailure("A line of git's input is too long.") }
            guard let equals = line.firstIndex(of: UInt8(ascii: "=")), equals > line.startIndex else {
                throw AdapterFailure("A line of git's input is not key=value.")
            }
            try take(line[..<equals], line[(equals + 1)...])
        }
    }

    private mutating func take(_ key: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) throws(AdapterFailure) {
        let name = String(decoding: key, as: UTF8.self)
        switch name {
        case "capability[]": GitFields.add(value, to: &capabilities)
        case "wwwauth[]": GitFields.add(value, to: &challenges)
        // What git says once at most.
        case "protocol", "host", "path", "username", "password", "credential":
            guard let text = String(validating: value, as: UTF8.self) else {
                throw AdapterFailure("A value of git's input is not UTF-8.")
            }
            // Before 2.48, git lets a carriage return through, which some readers take for the end of a line.
            guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw AdapterFailure("A value of git's input has a control character.")
            }
            guard self[name] == nil else { throw AdapterFailure("git's input has a value twice.") }
            values.append((name, text))
        default: break
        }
    }

    /// An empty value removes the earlier ones.
    private static func add(_ value: ArraySlice<UInt8>, to list: inout [String]) {
        if value.isEmpty { list = [] } else { list.append(String(decoding: value, as: UTF8.self)) }
    }
}
