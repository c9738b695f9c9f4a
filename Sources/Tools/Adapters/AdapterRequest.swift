public import RingbackBase

/// What an adapter asks the daemon: the token for a place, or that it notes a refused one.
public struct AdapterRequest: Sendable, Equatable {
    public let url: String
    public let username: String?
    /// The SHA-256, in hexadecimal digits, of a token that the server refused; nil if a token is wanted.
    public let rejected: String?
    /// True if the tool does not say which token it sent: ``rejected`` is the one that is given now.
    public let isGuess: Bool
    /// How the tool connects, where it is known that the connection may be less safe than the URL says.
    public let settings: ConnectionSettings

    public init(
        url: String, username: String?, rejected: String? = nil, isGuess: Bool = false,
        settings: ConnectionSettings = ConnectionSettings()
    ) {
        self.url = url
        self.username = username
        self.rejected = rejected
        self.isGuess = isGuess
        self.settings = settings
    }

    /// The lookup of a server that the tool named by its host, a port and a path at most. It is looked up as https, and the
    /// origin has to allow that the tool does not say so. Throws for text that cannot follow `https://` or has a user.
    init(withoutScheme text: String, username: String? = nil) throws(AdapterFailure) {
        let asked = try AdapterRequest(web: "https://\(text)", username: username)
        var settings = ConnectionSettings()
        settings.withoutScheme = true
        self.init(url: asked.url, username: username, settings: settings)
    }

    /// The lookup of a place of the web that a tool named. A query and a fragment are left out, since no origin has one.
    /// Throws for a URL of another scheme, without a host or with a user name.
    init(web text: String, username: String? = nil) throws(AdapterFailure) {
        guard WebURL.server(text) != nil else {
            throw AdapterFailure("The tool named something that is no URL of a web server.")
        }
        self.init(url: String(text.prefix { $0 != "?" && $0 != "#" }), username: username)
    }

    /// - Parameter name: what the text is, as the beginning of a sentence.
    static func json(_ input: [UInt8], atMost most: Int, named name: String) throws(AdapterFailure) -> JSON {
        guard input.count <= most else { throw AdapterFailure("\(name) is too long.") }
        do throws(JSONError) {
            return try JSON(parsing: input)
        } catch {
            throw AdapterFailure("\(name) is not valid JSON: \(error).")
        }
    }
}

extension WebURL {
    static func server(_ text: String) -> WebURL? {
        guard let url = try? WebURL(parsing: text), ["https", "http"].contains(url.scheme), url.host?.isEmpty == false
        else { return nil }
        return url
    }
}

extension JSONObject {
    /// As a line of text, with its line feed.
    var line: [UInt8] { JSON.object(self).serialized() + [0x0A] }
}

/// What the daemon gave for a place.
public struct AdapterCredential: Sendable {
    /// Lines of a request, such as `Authorization: Bearer …`.
    public let headers: [String]
    public let username: String?
    public let secret: String
    /// Unix seconds; nil where the provider states no lifetime.
    public let expiresAt: Int?

    public init(headers: [String], username: String?, secret: String, expiresAt: Int?) {
        self.headers = headers
        self.username = username
        self.secret = secret
        self.expiresAt = expiresAt
    }

    /// The user name where neither the tool nor the configuration states one: GitLab, Gitea and Forgejo know it.
    static let usualName = "oauth2"

    /// Throws for a token with other bytes than 0x21 to 0x7E. In a header field or a line they would add something.
    func checkToken() throws(AdapterFailure) {
        guard !secret.isEmpty, secret.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw AdapterFailure("The token has characters that are not allowed in a token; it is given to no tool.")
        }
    }

    /// The user name, for a tool that sends it with the token as Basic authentication. Throws for what cannot be sent.
    func basicUsername(otherwise usual: String = usualName) throws(AdapterFailure) -> String {
        try checkToken()
        let username = username ?? usual
        guard username.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") }) else {
            throw AdapterFailure("The user name has characters that Basic authentication does not allow.")
        }
        return username
    }

    /// The token, for a tool that sends it as `Authorization: Bearer` and in no other way.
    func bearer(for tool: String) throws(AdapterFailure) -> String {
        try checkToken()
        guard headers == ["Authorization: Bearer \(secret)"] else {
            throw AdapterFailure(
                "The origin's header is not “Authorization: Bearer {token}”, and \(tool) sends nothing else.")
        }
        return secret
    }

    /// The value of the field `Authorization`, for a tool that sends no other field.
    func authorization(for tool: String) throws(AdapterFailure) -> String {
        let fields = try fields()
        guard fields.count == 1, fields[0].name.lowercased() == "authorization" else {
            throw AdapterFailure("The origin's header is not “Authorization”, and \(tool) sends no other field.")
        }
        return fields[0].value
    }

    /// The fields that the tool sends. Throws for a line that is none.
    func fields() throws(AdapterFailure) -> [(name: String, value: String)] {
        try checkToken()
        var fields: [(name: String, value: String)] = []
        for line in headers {
            guard let colon = line.firstRange(of: ": "), !line[..<colon.lowerBound].isEmpty,
                line[..<colon.lowerBound].utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") }),
                line.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { throw AdapterFailure("The daemon's response has a header that is not one.") }
            fields.append((String(line[..<colon.lowerBound]), String(line[colon.upperBound...])))
        }
        guard !fields.isEmpty else { throw AdapterFailure("The daemon's response has no header.") }
        return fields
    }
}

/// Why an adapter refuses what a tool sent or what it is to send to the tool.
public struct AdapterFailure: Error, Sendable, Equatable {
    /// A sentence for the user. It contains nothing of the input.
    public let reason: String

    init(_ reason: String) { self.reason = reason }
}
