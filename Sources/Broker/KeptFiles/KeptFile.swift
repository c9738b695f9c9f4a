public import BrokerCore

/// A file in which an account's current token is kept, for programs that can only read a file. A value of the
/// configuration.
public struct KeptFile: Sendable, Equatable {
    /// What the file contains.
    public enum Format: String, Sendable {
        case token
        case idToken = "id_token"
        case header, netrc, env, json
    }

    /// Absolute.
    public let path: String
    public let account: AccountName
    public let format: Format
    /// Which of the session's access tokens.
    public let key: TokenKey
    /// How long after the sign-in the file is removed; nil if it is kept as long as the session.
    public let lifetime: Duration?
    /// True if the file may be on a file system that is not in memory.
    public let isDiskAllowed: Bool
    /// The host of a netrc line.
    public let host: String
    /// The user name of a netrc line.
    public let username: String
    /// The variable of an `env` file.
    public let variable: String

    public init(
        path: String, account: AccountName, format: Format = .token, key: TokenKey = .own, lifetime: Duration? = nil,
        isDiskAllowed: Bool = false, host: String = "", username: String = "oauth2",
        variable: String = "RINGBACK_TOKEN"
    ) {
        self.path = path
        self.account = account
        self.format = format
        self.key = key
        self.lifetime = lifetime
        self.isDiskAllowed = isDiskAllowed
        self.host = host
        self.username = username
        self.variable = variable
    }

    /// A token is replaced when less than this of its life is left, or half of a shorter life.
    static let margin: Duration = .seconds(120)

    /// The token that is requested from the account's session.
    var query: SessionQuery {
        var query = SessionQuery()
        query.key = key
        query.kind = format == .idToken ? .idToken : .accessToken
        query.minValid = KeptFile.margin
        return query
    }
}

/// A kept file as it is now.
public struct KeptFileView: Sendable, Equatable {
    /// The state of a file. The raw values are those of the socket API.
    public enum State: String, Sendable, CaseIterable {
        /// The session or the provider has not been asked yet.
        case waiting
        /// The file has a current token.
        case kept
        case signedOut = "signed_out"
        case locked
        /// The `ttl` is over. The next sign-in begins another.
        case ended
        /// There is a problem that the user has to solve.
        case problem
    }

    public let file: KeptFile
    public let state: State
    /// What is wrong; also for a file with a current token that cannot be renewed now.
    public let detail: Reason?
    /// When the token expires or the `ttl` is over; nil if there is no file, or for a token without a
    /// stated lifetime.
    public let expiresAt: WallInstant?
}
