public import HTTPMessages

/// A server, and the token that tools get for it. A value of the configuration.
public struct Origin: Sendable, Equatable {
    public let rule: OriginRule
    public let account: AccountName
    public let kind: SessionQuery.Kind
    public let key: TokenKey
    /// The user name for tools that need one; nil for the one in the tool's request.
    public let username: String?
    /// The fields in which a tool sends the token; ``OriginHeader/line(token:username:)`` fills them in.
    public let headers: [OriginHeader]
    /// The tools' connections that this origin allows beside the usual one.
    public let allowed: ConnectionSettings

    public init(
        _ rule: OriginRule, account: AccountName, kind: SessionQuery.Kind = .accessToken, key: TokenKey = .own,
        username: String? = nil, headers: [OriginHeader] = [.usual], allowed: ConnectionSettings = ConnectionSettings()
    ) {
        self.rule = rule
        self.account = account
        self.kind = kind
        self.key = key
        self.username = username
        self.headers = headers
        self.allowed = allowed
    }

    /// The query for the token of this origin.
    public var query: SessionQuery {
        var query = SessionQuery()
        query.key = key
        query.kind = kind
        return query
    }
}
