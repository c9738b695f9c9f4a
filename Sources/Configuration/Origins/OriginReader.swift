internal import HTTPMessages

/// Reads one `[[origin]]` table.
struct OriginReader {
    private let table: TOMLTableReader
    private let node: TOMLDocument.Node
    private let path: [String]
    private(set) var check: KeyCheck

    private static let maxScopes = 64
    private static let maxHeaders = 8
    private static let longestName = 256

    /// - Parameter number: the table's number in its file, from 1.
    init(_ number: Int, _ node: TOMLDocument.Node, check: KeyCheck) {
        table = TOMLTableReader(node)
        self.node = node
        path = ["origin", String(number)]
        self.check = check
    }

    /// The table; nil if it has an error.
    mutating func read() -> OriginConfiguration? {
        let before = check.errors.count
        let pattern = readPattern()
        let account = readAccount()
        let matchUsername = readName("match_username", isForBasic: false)
        let username = readName("username", isForBasic: true)
        let kind = table.string("kind").flatMap(OriginConfiguration.Kind.init) ?? .accessToken
        let (scopes, audience, resource) = (readScopes(), readAudience(), readResource())
        let headers = readHeaders()
        if headers.contains(where: { $0.uses("username") }), !table.has("username") {
            refuse("header", "has {username}: set username too")
        }
        if kind == .idToken {
            for key in ["scope", "audience", "resource"] where table.has(key) {
                refuse(key, "cannot be combined with kind = \"id_token\": an ID token cannot be downscoped")
            }
        }
        guard check.errors.count == before, let pattern else { return nil }
        return OriginConfiguration(
            rule: OriginRule(pattern, username: matchUsername), account: account, kind: kind, scopes: scopes,
            audience: audience, resource: resource, username: username, headers: headers,
            source: ConfigurationSource(file: check.file, line: node.line))
    }

    private mutating func refuse(_ key: String?, _ message: String) {
        check.refuse(key.flatMap { table.node($0) } ?? node, path + (key.map { [$0] } ?? []), message)
    }

    /// True if the key is written, but has an error that is reported already.
    private func isMistaken(_ key: String) -> Bool {
        check.meant.contains(path + [key]) || check.errors.contains { $0.key == KeyCheck.display(path + [key]) }
    }

    private mutating func readPattern() -> OriginPattern? {
        guard let text = table.string("url") else {
            if !isMistaken("url") { refuse(nil, "needs url: where the token may be sent") }
            return nil
        }
        do throws(OriginPattern.Failure) {
            return try OriginPattern(parsing: text)
        } catch {
            refuse("url", error.reason)
            return nil
        }
    }

    private mutating func readAccount() -> String {
        if let name = table.string("account") { return name }
        if !isMistaken("account") { refuse(nil, "needs account: whose token it is") }
        return ""
    }

    /// A user's name. Basic authentication ends it at the first colon (RFC 7617).
    private mutating func readName(_ key: String, isForBasic: Bool) -> String? {
        guard let name = table.string(key) else { return nil }
        let isPlain = name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        if name.isEmpty || name.utf8.count > OriginReader.longestName || !isPlain {
            refuse(key, "is 1 to \(OriginReader.longestName) bytes without control characters")
        } else if isForBasic, name.contains(":") {
            refuse(key, "must not have a colon")
        }
        return name
    }

    private mutating func readScopes() -> [String]? {
        guard let text = table.string("scope") else { return nil }
        let scopes = text.split(separator: " ").map(String.init)
        if scopes.isEmpty || scopes.count > OriginReader.maxScopes {
            refuse("scope", "is 1 to \(OriginReader.maxScopes) scopes with spaces between them")
        } else if !scopes.allSatisfy(TokenDownscoping.isScope) {
            refuse("scope", "a scope is printable ASCII without quotes and backslashes")
        }
        return scopes
    }

    private mutating func readAudience() -> String? {
        guard let audience = table.string("audience") else { return nil }
        if audience.isEmpty || !TokenDownscoping.isAudience(audience) {
            refuse("audience", "is a text without control characters")
        }
        return audience
    }

    private mutating func readResource() -> String? {
        guard let resource = table.string("resource") else { return nil }
        if !TokenDownscoping.isResource(resource) {
            refuse("resource", "is an absolute URI without a fragment (RFC 8707)")
        }
        return resource
    }

    private mutating func readHeaders() -> [OriginHeader] {
        guard let node = table.node("header") else { return [.usual] }
        let texts = table.strings("header") ?? table.string("header").map { [(text: $0, node: node)] } ?? []
        var headers: [OriginHeader] = []
        for (text, element) in texts {
            do throws(OriginHeader.Failure) {
                headers.append(try OriginHeader(parsing: text))
            } catch {
                check.refuse(element, path + ["header"], error.reason)
            }
        }
        let names = Set(headers.map { $0.name.lowercased() })
        if texts.count > OriginReader.maxHeaders {
            refuse("header", "may have \(OriginReader.maxHeaders) fields at most")
        } else if names.count < headers.count {
            refuse("header", "has the same field twice")
        } else if headers.count == texts.count, !headers.contains(where: { $0.uses("token") }) {
            refuse("header", "no field has {token}")
        }
        return headers
    }
}

extension OriginPattern.Failure {
    /// What is wrong, and what is allowed.
    var reason: String {
        switch self {
        case .notAURL: "must be a URL such as https://git.example.org/*"
        case .noHost: "needs a host, as in https://git.example.org/*"
        case .plainText: "must be encrypted, such as https: a protocol in plain text is allowed to this machine only"
        case .wildcard: "may have one *, as its last segment: https://git.example.org/team/*"
        case .notAnOrigin: "must not have a user name, a query or a fragment"
        case .ambiguousPath:
            "has a path that servers read in different ways: no dot segments, no empty ones, and none of %2F, %5C, %25"
        }
    }
}

extension OriginHeader.Failure {
    fileprivate var reason: String {
        switch self {
        case .notAField: "must be NAME: VALUE on one line, in printable ASCII"
        case .reserved: "this field belongs to the connection; a tool sets it itself"
        case .unknownPlaceholder: "in braces there may be token, username or api_key"
        }
    }
}
