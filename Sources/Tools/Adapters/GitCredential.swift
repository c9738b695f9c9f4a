internal import RingbackBase

/// git's protocol for credential helpers (git-credential(1), gitcredentials(7)): `key=value` lines, and an action as
/// the program's last argument. The token is given as the password, or, where git understands that and the server
/// offers it, as a Bearer credential. Both are marked as short-lived, so that no other helper stores them. A refresh
/// token is never given.
public struct GitCredential: Sendable, Equatable {
    public enum Action: String, Sendable, CaseIterable {
        case get
        /// The server accepted the credential. There is nothing to store.
        case store
        /// The server refused the credential.
        case erase
        /// git asks what the helper understands.
        case capability
    }

    /// In bytes.
    public static let maxInput = 1 << 20
    /// git's own limit for a line.
    private static let maxLine = 65_535

    /// What to ask the daemon; nil where there is no server, such as for the passphrase of a key.
    public let request: AdapterRequest?
    /// git understands `authtype` and the server offers Bearer authentication (RFC 6750).
    let takesBearer: Bool
    let hasAuthType: Bool

    public static let capabilities = Array("version 0\ncapability authtype\n".utf8)

    /// The answer that keeps git from asking other helpers and the user.
    public static let quit = Array("quit=1\n".utf8)

    /// Throws for input that git does not write: a line that is too long or has no `=`, a NUL, a value twice, text that
    /// is not UTF-8. Then nothing may be given, since git and we could mean different servers.
    public init(_ action: Action, reading input: [UInt8]) throws(AdapterFailure) {
        let fields = try GitFields(input, maxLine: GitCredential.maxLine)
        hasAuthType = fields.hasAuthType
        takesBearer = fields.hasAuthType && fields.offersBearer
        guard action == .get || action == .erase, let url = try GitCredential.url(of: fields) else {
            request = nil
            return
        }
        let username = fields.username.flatMap { $0.isEmpty ? nil : $0 }
        guard action == .erase else {
            request = AdapterRequest(url: url, username: username)
            return
        }
        // Without the password it is not known which token was refused.
        guard let secret = fields.credential ?? fields.password, !secret.isEmpty else {
            request = nil
            return
        }
        request = AdapterRequest(url: url, username: username, rejected: SHA256.hex(Array(secret.utf8)))
    }

    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        try credential.checkToken()
        var output: [UInt8] = []
        if hasAuthType { try GitCredential.add("capability[]", "authtype", to: &output) }
        if takesBearer, credential.headers == ["Authorization: Bearer \(credential.secret)"] {
            try GitCredential.add("authtype", "Bearer", to: &output)
            try GitCredential.add("credential", credential.secret, to: &output)
        } else {
            try GitCredential.add("username", credential.username ?? AdapterCredential.usualName, to: &output)
            try GitCredential.add("password", credential.secret, to: &output)
        }
        try GitCredential.add("ephemeral", "1", to: &output)
        if let expiresAt = credential.expiresAt {
            try GitCredential.add("password_expiry_utc", String(expiresAt), to: &output)
        }
        return output
    }

    private static func add(_ key: String, _ value: String, to output: inout [UInt8]) throws(AdapterFailure) {
        guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw AdapterFailure("The \(key) has characters that git's protocol does not allow.")
        }
        output += Array("\(key)=\(value)\n".utf8)
    }

    private static func url(of fields: GitFields) throws(AdapterFailure) -> String? {
        // A port alone is no host.
        guard let scheme = fields.scheme, let host = fields.host, !host.isEmpty, !host.hasPrefix(":") else {
            return nil
        }
        guard scheme.utf8.allSatisfy({ $0.isUnreserved || $0 == UInt8(ascii: "+") }),
            host.utf8.allSatisfy({ $0.isUnreserved || "[]:".utf8.contains($0) })
        else { throw AdapterFailure("The tool named a protocol or host with characters that none has.") }
        var url = "\(scheme)://\(host)"
        // git gives the path decoded, and without its first slash.
        if let path = fields.path {
            let escaped = path.utf8.flatMap { $0.isUnreserved || $0 == UInt8(ascii: "/") ? [$0] : $0.percentEscape }
            url += "/" + String(decoding: escaped, as: UTF8.self)
        }
        do {
            _ = try WebURL(parsing: url)
        } catch {
            throw AdapterFailure("The tool named something that is no URL.")
        }
        return url
    }
}

/// git's lines. Keys that are not known are left out, as the protocol says. A member for each key instead of a
/// dictionary or a list: git runs the helper for every connection, and the runtime makes the first collection of each
/// type from the type's name, which takes longer than everything else here.
private struct GitFields {
    private(set) var scheme: String?
    private(set) var host: String?
    private(set) var path: String?
    private(set) var username: String?
    private(set) var password: String?
    private(set) var credential: String?
    private(set) var hasAuthType = false
    /// A challenge of the server has the scheme Bearer.
    private(set) var offersBearer = false

    init(_ input: [UInt8], maxLine: Int) throws(AdapterFailure) {
        guard !input.contains(0) else { throw AdapterFailure("git's input has a NUL character.") }
        var rest = input[...]
        while true {
            let line = rest.prefix { $0 != UInt8(ascii: "\n") }
            // A blank line ends the input.
            guard !line.isEmpty else { return }
            guard line.count <= maxLine else { throw AdapterFailure("A line of git's input is too long.") }
            guard let equals = line.firstIndex(of: UInt8(ascii: "=")), equals > line.startIndex else {
                throw AdapterFailure("A line of git's input is not key=value.")
            }
            try take(line[..<equals], line[(equals + 1)...])
            guard line.endIndex < rest.endIndex else { return }
            rest = rest[(line.endIndex + 1)...]
        }
    }

    private mutating func take(_ key: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) throws(AdapterFailure) {
        switch String(decoding: key, as: UTF8.self) {
        // Lists: an empty value removes the earlier ones.
        case "capability[]": hasAuthType = !value.isEmpty && (hasAuthType || value.elementsEqual("authtype".utf8))
        case "wwwauth[]": offersBearer = !value.isEmpty && (offersBearer || GitFields.isBearer(value))
        // What git says once at most.
        case "protocol": try GitFields.set(&scheme, value)
        case "host": try GitFields.set(&host, value)
        case "path": try GitFields.set(&path, value)
        case "username": try GitFields.set(&username, value)
        case "password": try GitFields.set(&password, value)
        case "credential": try GitFields.set(&credential, value)
        default: break
        }
    }

    private static func set(_ member: inout String?, _ value: ArraySlice<UInt8>) throws(AdapterFailure) {
        guard let text = String(validating: value, as: UTF8.self) else {
            throw AdapterFailure("A value of git's input is not UTF-8.")
        }
        // Before 2.48, git lets a carriage return through, which some readers take for the end of a line.
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw AdapterFailure("A value of git's input has a control character.")
        }
        guard member == nil else { throw AdapterFailure("git's input has a value twice.") }
        member = text
    }

    /// True for a challenge of the scheme Bearer (RFC 9110 section 11.6.1).
    private static func isBearer(_ challenge: ArraySlice<UInt8>) -> Bool {
        let space = UInt8(ascii: " ")
        let scheme = challenge.drop { $0 == space }.prefix { $0 != space && $0 != UInt8(ascii: ",") }
        return scheme.elementsEqual("bearer".utf8) { byte, letter in byte | 0x20 == letter }
    }
}
