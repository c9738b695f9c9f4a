/// A file of settings in the part of YAML that gh and glab write: mappings by indentation, and texts of one line.
/// Anything else is refused, since a text must not be taken for another one.
public struct HostsFile: Sendable, Equatable {
    /// A text, or settings by name in the file's order.
    public indirect enum Value: Sendable, Equatable {
        case text(String)
        case settings([Setting])

        subscript(name: String) -> Value? {
            guard case .settings(let settings) = self else { return nil }
            return settings.first { $0.name == name }?.value
        }

        var text: String? { if case .text(let text) = self { text } else { nil } }
        var settings: [Setting] { if case .settings(let settings) = self { settings } else { [] } }
    }

    public struct Setting: Sendable, Equatable {
        public let name: String
        public let value: Value
    }

    private struct Line {
        let indent: Int
        let name: String
        /// Nil if nothing follows the colon: settings below, or an empty text.
        let text: String?
    }

    public let top: Value

    private static let malformed = AdapterFailure("The file has a form of YAML that is not read here.")
    private static let maxDepth = 8

    public init(reading bytes: [UInt8]) throws(AdapterFailure) {
        guard bytes.count <= ForeignAccount.maxInput, let text = String(validating: bytes, as: UTF8.self) else {
            throw AdapterFailure("The file is no text of UTF-8, or it is too long.")
        }
        var lines: [Line] = []
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            if let read = try HostsFile.line(Substring(line)) { lines.append(read) }
        }
        var rest = lines[...]
        guard rest.first?.indent ?? 0 == 0 else { throw HostsFile.malformed }
        top = .settings(try HostsFile.settings(&rest, at: 0, depth: 0))
        guard rest.isEmpty else { throw HostsFile.malformed }
    }

    private static func settings(
        _ rest: inout ArraySlice<Line>, at indent: Int, depth: Int
    ) throws(AdapterFailure) -> [Setting] {
        guard depth < maxDepth else { throw malformed }
        var settings: [Setting] = []
        var names: Set<String> = []
        while let line = rest.first, line.indent == indent {
            rest.removeFirst()
            guard names.insert(line.name).inserted else { throw AdapterFailure("A setting stands twice.") }
            let isOuter = (rest.first?.indent ?? 0) > indent
            if isOuter {
                guard line.text == nil, let below = rest.first?.indent else { throw malformed }
                let value = Value.settings(try self.settings(&rest, at: below, depth: depth + 1))
                settings.append(Setting(name: line.name, value: value))
            } else {
                settings.append(Setting(name: line.name, value: .text(line.text ?? "")))
            }
        }
        guard (rest.first?.indent ?? 0) <= indent else { throw malformed }
        return settings
    }

    /// Nil for a blank line and a comment.
    private static func line(_ line: Substring) throws(AdapterFailure) -> Line? {
        let content = line.drop { $0 == " " }
        guard !content.isEmpty, !content.hasPrefix("#"), line != "---" else { return nil }
        guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { throw malformed }
        var rest = content
        let name: String
        if rest.first == "\"" || rest.first == "'" {
            name = try quoted(&rest)
        } else {
            let plain = rest.prefix { $0 != ":" }
            guard !plain.isEmpty, plain.utf8.allSatisfy(isOfName) else { throw malformed }
            name = String(plain)
            rest = rest[plain.endIndex...]
        }
        guard rest.popFirst() == ":", rest.isEmpty || rest.first == " " else { throw malformed }
        let value = rest.drop { $0 == " " }
        let isEmpty = value.isEmpty || value.hasPrefix("#")
        return Line(indent: line.count - content.count, name: name, text: isEmpty ? nil : try text(value))
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"): true
        default: false
        }
    }

    private static func text(_ value: Substring) throws(AdapterFailure) -> String {
        var rest = value
        // glab writes a tag before a token.
        for tag in ["!!null ", "!!str "] where rest.hasPrefix(tag) { rest = rest.dropFirst(tag.count) }
        if rest.first == "\"" || rest.first == "'" {
            let text = try quoted(&rest)
            rest = rest.drop { $0 == " " }
            guard rest.isEmpty || rest.hasPrefix("#") else { throw malformed }
            return text
        }
        if rest == "{}" || rest == "[]" || rest == "null" || rest == "~" { return "" }
        guard let first = rest.first, !"[]{},&*!|>%@`#?-".contains(first) else { throw malformed }
        let comment = rest.firstRange(of: " #")
        let plain = rest[..<(comment?.lowerBound ?? rest.endIndex)]
        guard !plain.contains(": "), plain.last != ":" else { throw malformed }
        let end = plain.lastIndex { $0 != " " }
        return end.map { String(plain[...$0]) } ?? ""
    }

    /// A text in quotation marks of either kind. Of the escapes only `\"` and `\\` are read.
    private static func quoted(_ rest: inout Substring) throws(AdapterFailure) -> String {
        let mark = rest.removeFirst()
        var text = ""
        while let character = rest.popFirst() {
            if character == mark {
                guard mark == "'", rest.first == "'" else { return text }
                rest.removeFirst()
                text.append("'")
            } else if character == "\\", mark == "\"" {
                guard let next = rest.popFirst(), next == "\"" || next == "\\" else { throw malformed }
                text.append(next)
            } else {
                text.append(character)
            }
        }
        throw malformed
    }
}

extension HostsFile {
    /// The hosts of gh's `hosts.yml`. gh signs in with a client of its maker's, and its tokens cannot be refreshed.
    public func accountsOfGH() throws(AdapterFailure) -> [ForeignAccount] {
        var accounts: [ForeignAccount] = []
        for host in top.settings {
            guard !host.value.settings.isEmpty else { continue }
            var account = ForeignAccount(name: host.name)
            if host.name == "github.com" {
                account.preset = "github"
            } else {
                account.authorizationEndpoint = "https://\(host.name)/login/oauth/authorize"
                account.tokenEndpoint = "https://\(host.name)/login/oauth/access_token"
            }
            // Without these gh refuses to work with a token.
            account.scopes = ["repo", "read:org", "gist"]
            account.notes.append(
                "The token of gh is not taken over: it belongs to a client of gh's maker and cannot be refreshed.")
            accounts.append(account)
        }
        return accounts
    }

    /// The hosts of glab's `config.yml`.
    public func accountsOfGlab() throws(AdapterFailure) -> [ForeignAccount] {
        var accounts: [ForeignAccount] = []
        for host in top["hosts"]?.settings ?? [] {
            guard !host.value.settings.isEmpty else { continue }
            var account = ForeignAccount(name: host.name)
            if host.name == "gitlab.com" { account.preset = "gitlab" } else { account.issuer = "https://\(host.name)" }
            let client = try ForeignAccount.value(host.value["client_id"]?.text)
            // A word, and no client.
            account.clientID = client == "bypass" ? nil : client
            account.scopes = ["openid", "profile", "read_user", "write_repository", "api"]
            account.redirectURI = "http://localhost:7171/auth/redirect"
            let isOAuth = host.value["is_oauth2"]?.text == "true"
            let usesKeyring = (host.value["use_keyring"] ?? top["use_keyring"])?.text == "true"
            if client == "bypass" {
                account.notes.append(
                    "The session of glab is not taken over: its client_id is “bypass”, which is no client.")
            } else if usesKeyring {
                account.notes.append("The token of glab is not taken over: glab keeps it in a keyring (use_keyring).")
            } else if isOAuth, account.clientID != nil {
                account.refreshToken = try ForeignAccount.value(host.value["oauth2_refresh_token"]?.text)
            } else {
                account.notes.append(
                    isOAuth
                        ? "The session of glab is not taken over: it belongs to a client of glab's maker."
                        : "The token of glab is not taken over: it is no session of OAuth.")
            }
            accounts.append(account)
        }
        return accounts
    }
}
