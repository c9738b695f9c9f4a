internal import Cryptography
public import RingbackBase
internal import Synchronization

/// The table of origins: which token a tool gets for a server, and which tokens servers refused.
public final class OriginRegistry: Sendable {
    public struct Credential: Sendable {
        public let issuedToken: IssuedToken
        public let query: SessionQuery
        /// True if the origin refused this token and the one before it. Another refresh would not help: the token
        /// probably lacks a scope.
        public let isRefusedRepeatedly: Bool
    }

    public enum Rejection: Sendable, Equatable {
        /// Nothing: not the last token of its key given for the origin through this socket, or its rejection is known.
        case ignored
        case noted
        /// The second token in a row was refused. For five minutes lookups of the origin do not refresh it.
        case repeated
    }

    private struct State {
        var origins: [Origin] = []
        var rules: [OriginRule] = []
        var rejections = OriginRejections()
    }

    private let state = Mutex(State())
    private let broker: Broker

    public init(_ broker: Broker) { self.broker = broker }

    /// Takes over the configuration's table, at start and at every reload.
    public func configure(_ origins: [Origin]) {
        state.withLock { state in
            // Only for origins that did not change: a token of another account was never given for this rule.
            let former = Dictionary(state.origins.map { ($0.rule, $0) }) { first, _ in first }
            let same = origins.filter { former[$0.rule] == $0 }
            state.rejections.keep(Set(same.map(\.rule)))
            state.origins = origins
            state.rules = origins.map(\.rule)
        }
    }

    /// Removes the origins that the new table does not have, before the accounts change. Otherwise a token of an
    /// account's new provider could reach a server that only the old table names.
    public func retain(_ origins: [Origin]) {
        configure(state.withLock { state in state.origins.filter(origins.contains) })
    }

    /// The origin that a URL belongs to; nil if none is configured.
    public func origin(of url: WebURL, username: String?) -> Origin? {
        let place = OriginPlace(url)
        return state.withLock { state in
            OriginRule.mostSpecific(of: state.rules, for: place, username: username).map { state.origins[$0] }
        }
    }

    /// The origin of a URL that has access tokens of the account, of several that with the longest path; nil if none has.
    public func pattern(of url: WebURL, with account: AccountName) -> OriginPattern? {
        let place = OriginPlace(url)
        let rules = state.withLock { state in
            state.origins.filter { $0.account == account && $0.kind == .accessToken }.map(\.rule)
        }
        return rules.map(\.pattern).filter { $0.matches(place) }.max { $0.segments.count < $1.segments.count }
    }

    /// The origin whose issued token was rejected by the server behind a URL; nil if there is none. The user name is
    /// not compared: after a rejection, tools send the name that they got with the token.
    ///
    /// - Parameters:
    ///   - digest: the SHA-256 of the token.
    ///   - socket: the exposed socket through which it was given; nil for the daemon's own.
    public func origin(of url: WebURL, refusing digest: [UInt8], at socket: String?) -> Origin? {
        let place = OriginPlace(url)
        return state.withLock { state in
            state.origins.first {
                $0.rule.pattern.matches(place) && state.rejections.hasGiven(digest, at: socket, for: $0.rule)
            }
        }
    }

    /// A tool reports that the origin's server refused a token.
    ///
    /// - Parameters:
    ///   - digest: the SHA-256 of the token.
    ///   - isGuess: the tool does not say which token it sent. Then a token that replaced a refused one in the last ten
    ///     seconds is not taken for it.
    ///   - socket: the exposed socket through which it is reported; nil for the daemon's own.
    public func reject(_ digest: [UInt8], isGuess: Bool = false, by origin: Origin, at socket: String?) -> Rejection {
        let now = broker.clock.bootInstant
        return state.withLock {
            $0.rejections.reject(digest, isGuess: isGuess, at: socket, by: origin.rule, at: now)
        }
    }

    /// A token for the origin. One that the origin has refused is refreshed first.
    ///
    /// - Parameters:
    ///   - socket: the exposed socket through which it is given; nil for the daemon's own.
    ///   - issue: gets the account's token, within the caller's limits, and returns the query that it used. Called
    ///     again after a refresh.
    ///   - explain: turns an error of the broker into one of the caller's kind.
    public func credential<Failure: Error>(
        of origin: Origin, at socket: String?, explain: (BrokerError) -> Failure,
        issue: () async throws(Failure) -> (IssuedToken, SessionQuery)
    ) async throws(Failure) -> Credential {
        var (issuedToken, query) = try await issue()
        var digest = Digest.sha256(issuedToken.token.value)
        let now = broker.clock.bootInstant
        let isRefused = state.withLock { state in
            state.rejections.mustReplace(digest, .init(key: query.key, socket: socket), for: origin.rule, at: now)
        }
        if isRefused {
            do throws(BrokerError) {
                _ = try await broker.refresh(origin.account, of: query, isForced: true, rejected: digest)
            } catch {
                // Without a refresh token the account's token stays as it is until the next sign-in.
                guard case .conflict = error else { throw explain(error) }
            }
            (issuedToken, query) = try await issue()
            digest = Digest.sha256(issuedToken.token.value)
        }
        // The account may have another provider since the origin was looked up.
        guard state.withLock({ $0.origins.contains(origin) }) else {
            throw explain(.conflict(.stated("The table of origins has changed during the request. Ask again.")))
        }
        let isRepeated = state.withLock { state in
            // If another lookup has refreshed the token meanwhile, this token is the replacement.
            let holder = OriginRejections.Holder(key: query.key, socket: socket)
            state.rejections.gave(digest, holder, for: origin.rule, isReplacement: isRefused, at: now)
            return state.rejections.isRepeated(digest, holder, by: origin.rule, at: now)
        }
        return Credential(issuedToken: issuedToken, query: query, isRefusedRepeatedly: isRepeated)
    }

    /// A token of the account that is held now, for the origin, through the daemon's own socket. Nil if the token has to
    /// be replaced first, and if the table has changed: then ``credential(of:at:explain:issue:)`` is to be asked.
    public func credential(of origin: Origin, held issuedToken: IssuedToken) -> Credential? {
        let digest = Digest.sha256(issuedToken.token.value)
        let now = broker.clock.bootInstant
        let holder = OriginRejections.Holder(key: origin.key, socket: nil)
        let isRepeated: Bool? = state.withLock { state in
            guard state.origins.contains(origin),
                !state.rejections.mustReplace(digest, holder, for: origin.rule, at: now)
            else { return nil }
            state.rejections.gave(digest, holder, for: origin.rule, isReplacement: false, at: now)
            return state.rejections.isRepeated(digest, holder, by: origin.rule, at: now)
        }
        return isRepeated.map { Credential(issuedToken: issuedToken, query: origin.query, isRefusedRepeatedly: $0) }
    }
}

/// A server, and the token that tools get for it. A value of the configuration.
public struct Origin: Sendable, Equatable {
    public let rule: OriginRule
    public let account: AccountName
    public let kind: TokenKind
    public let key: TokenKey
    /// Nil for the one in the tool's request.
    public let username: String?
    /// The fields in which a tool sends the token; ``OriginHeader/line(token:username:)`` fills them in.
    public let headers: [OriginHeader]
    /// The tools' connections that this origin allows beside the usual one.
    public let allowed: ConnectionSettings

    public init(
        _ rule: OriginRule, account: AccountName, kind: TokenKind = .accessToken, key: TokenKey = .own,
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

    public var query: SessionQuery { SessionQuery(key: key, kind: kind) }
}
