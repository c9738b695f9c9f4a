internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON

/// The tokens that a restricted socket serves: access tokens of the accounts that it shows, within its ceiling.
extension ExposedAPI {
    func session(of name: AccountName, _ call: Call) async throws(Problem) -> ServerResponse {
        var query = SessionQuery()
        query.minValid = try call.duration("min_valid")
        if let timeout = try call.duration("timeout") { query.timeout = timeout }
        query.subject = call.query("subject")
        query.key = try call.tokenKey()
        let (issuedToken, wanted) = try await issue(query, of: name, call)
        api.noteIssuedToken(call.facts, issuedToken, wanted.key, .token)
        var object = SocketAPI.members(of: issuedToken, isIDToken: false)
        if let (expiresAt, remaining) = api.broker.expiry(of: issuedToken.token) {
            object["expires_at"] = .integer(expiresAt.seconds)
            object["expires_in"] = .integer(remaining.wholeSeconds)
        }
        return ServerResponse(json: .object(object))
    }

    /// A token within the ceiling, and what was asked of the provider for it.
    private func issue(
        _ asked: SessionQuery, of name: AccountName, _ call: Call
    ) async throws(Problem) -> (IssuedToken, SessionQuery) {
        var query = asked
        query.allowance = allowance
        try await refuseAnother(name)
        query.key = try await key(asked.key, of: name, call)
        let wanted = query
        try await refuseWider(wanted, than: name, call)
        let issuedToken = try await ask(call) { () throws(BrokerError) in try await api.broker.session(name, wanted) }
        // Checked again, since the configuration may have changed during the request.
        try await refuseAnother(name)
        guard exposedSocket.permits(issuedToken.token) else { throw denied(whyNotServed(issuedToken.token, of: name)) }
        let excess = wanted.key.scopes.map { self.excess(of: issuedToken.token, beyond: $0) } ?? []
        guard excess.isEmpty else {
            throw denied(
                "the provider of \(name) issued a token with more scope than was requested "
                    + "(\(excess.joined(separator: " "))), so it is not served")
        }
        return (issuedToken, wanted)
    }

    /// What a tool sends to a server, if the origin's account is one of those that are shown. An origin of another
    /// account is as unknown as none.
    func lookup(_ call: Call) async throws(Problem) -> ServerResponse {
        let lookup: OriginLookup
        do throws(Problem) {
            lookup = try OriginLookup(call, api.daemon.origins)
        } catch {
            // What an origin allows is not shown either.
            guard [.notFound, .policyDenied].contains(error.code) else { throw error }
            throw denied("no token for this URL is served")
        }
        let origin = lookup.origin
        guard exposedSocket.shows(origin.account.rawValue) else { throw denied("no token for this URL is served") }
        guard origin.kind == .accessToken else { throw denied("an ID token is not served") }
        return try await api.answer(
            lookup, call, explain: { Problem(elsewhere: $0, language: call.language) },
            issue: { () throws(Problem) in try await issue(origin.query, of: origin.account, call) })
    }

    private func whyNotServed(_ token: AccessToken, of name: AccountName) -> String {
        let ceiling = "“\(exposedSocket.ceiling?.joined(separator: " ") ?? "")”"
        guard token.isScopeStated, token.scope?.isEmpty == false else {
            return
                "the provider of \(name) did not state the token's scope. RFC 6749 allows that. Ringback then "
                + "cannot check that the scope is within \(ceiling), so the token is not served"
        }
        let excess = self.excess(of: token, beyond: exposedSocket.ceiling ?? [])
        return
            "the provider of \(name) issued a token for more than \(ceiling): \(excess.joined(separator: " ")). The token "
            + "is not served unless these are added to the socket's scope"
    }

    private func excess(of token: AccessToken, beyond permitted: [String]) -> [String] {
        guard token.isScopeStated else { return [] }
        return TokenDownscoping.excess(
            of: (token.scope ?? "").split(separator: " ").map(String.init), beyond: permitted)
    }

    /// Without a ceiling the session's own token is the limit: a service's provider might give more scopes if asked for
    /// them.
    private func refuseWider(_ query: SessionQuery, than name: AccountName, _ call: Call) async throws(Problem) {
        guard exposedSocket.ceiling == nil, let asked = query.key.scopes else { return }
        var own = query
        own.key = .own
        own.minValid = nil
        let usual = own
        let issuedToken = try await ask(call) { () throws(BrokerError) in try await api.broker.session(name, usual) }
        let scopes = (issuedToken.scope ?? "").split(separator: " ").map(String.init)
        let beyond = asked.filter { !TokenDownscoping.isCovered($0, by: scopes) }
        guard beyond.isEmpty else {
            throw denied("a scope beyond the session's own (\(beyond.joined(separator: " "))) is not served")
        }
    }

    /// Which token: with the scopes that were asked for, else with those of the ceiling. The session's own, if it is
    /// within the ceiling.
    private func key(_ key: TokenKey, of name: AccountName, _ call: Call) async throws(Problem) -> TokenKey {
        guard key != .own else {
            guard let ceiling = exposedSocket.ceiling else { return .own }
            if let own = api.broker.snapshot.current(name.rawValue)?.entry.issuedToken.token, exposedSocket.permits(own)
            {
                return .own
            }
            return TokenKey(scopes: await api.broker.reachable(ceiling, of: name))
        }
        guard case .local(let uid, let pid) = call.request.peer,
            policy.decide(
                PolicyPeer(uid: uid, pid: pid), account: name.rawValue,
                operation: call.route.endpoint.operation.ofPolicy,
                token: key
            ).isAllowed
        else { throw denied("a scope beyond “\(exposedSocket.ceiling?.joined(separator: " ") ?? "")” is not served") }
        return key
    }
}
