/// What an adapter asks the daemon: the token for a place, or that it notes a refused one.
public struct AdapterRequest: Sendable, Equatable {
    /// Where the tool connects to.
    public let url: String
    /// The user name that the tool was told.
    public let username: String?
    /// The SHA-256, in hexadecimal digits, of a token that the server refused; nil if a token is wanted.
    public let rejected: String?

    init(url: String, username: String?, rejected: String? = nil) {
        self.url = url
        self.username = username
        self.rejected = rejected
    }
}

/// What the daemon gave for a place.
public struct AdapterCredential: Sendable {
    /// Lines of a request, such as `Authorization: Bearer …`.
    public let headers: [String]
    public let username: String?
    /// The token.
    public let secret: String
    /// Unix seconds; nil where the provider states no lifetime.
    public let expiresAt: Int?

    public init(headers: [String], username: String?, secret: String, expiresAt: Int?) {
        self.headers = headers
        self.username = username
        self.secret = secret
        self.expiresAt = expiresAt
    }

    /// - Throws: for a token with other bytes than 0x21 to 0x7E. In a header field or a line they would add something.
    func checkToken() throws(AdapterFailure) {
        guard !secret.isEmpty, secret.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw AdapterFailure("The token has characters that are not allowed in a token; it is given to no tool.")
        }
    }
}

/// Why an adapter refuses what a tool sent or what it is to send to the tool.
public struct AdapterFailure: Error, Sendable, Equatable {
    /// A sentence for the user. It contains nothing of the input.
    public let reason: String

    init(_ reason: String) { self.reason = reason }
}
