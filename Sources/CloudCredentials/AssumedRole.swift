public import Adapters
public import BrokerCore
public import HTTPMessages

/// A role of AWS whose credentials an account's token is exchanged for. A value of the configuration.
public struct AssumedRole: Sendable, Equatable {
    public let account: AccountName
    /// The token service.
    public let service: WebURL
    public let exchange: RoleExchange
    /// Which token of the account is exchanged.
    public let kind: SessionQuery.Kind

    public init(account: AccountName, service: WebURL, exchange: RoleExchange, kind: SessionQuery.Kind) {
        self.account = account
        self.service = service
        self.exchange = exchange
        self.kind = kind
    }

    /// What the account's session is asked for.
    var query: SessionQuery {
        var query = SessionQuery()
        query.kind = kind
        return query
    }
}

/// Why there are no credentials of a role.
public enum ExchangeFailure: Error, Sendable, Equatable {
    /// The configuration names no role for the account.
    case noRole(AccountName)
    /// There is no token of the account, or the token service cannot be reached.
    case broker(BrokerError)
    /// What the token service at this host said.
    case service(host: String, RoleExchange.Failure)

    /// True if the same request may succeed later without any change.
    var isTransient: Bool {
        switch self {
        case .noRole, .service(_, .refused), .service(_, .invalid): false
        case .service(_, .unavailable): true
        case .broker(let error): error.isTransient || error == .timedOut
        }
    }

    var isOfExpiredToken: Bool {
        guard case .service(_, let failure) = self else { return false }
        return failure.isOfExpiredToken
    }
}
