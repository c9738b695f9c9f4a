/// Which token of a session. The raw values are those of the socket API and of the configuration.
public enum TokenKind: String, Sendable, CaseIterable {
    case accessToken = "access_token"
    case idToken = "id_token"
}

/// What a kept file contains. The raw values are those of the configuration.
public enum TokenFileFormat: String, Sendable, CaseIterable {
    /// The access token alone, without a line break.
    case token
    /// The ID token alone, without a line break.
    case idToken = "id_token"
    /// A line `Authorization: Bearer TOKEN`.
    case header
    case netrc
    /// An assignment to a variable, for a POSIX shell.
    case env
    /// A JSON object with the token, its type, its scope and when it expires.
    case json
}
