internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import StrictJSON

/// What a tool sends to a server: the token of the account that the configuration names for it (`[[origin]]`).
struct LookupResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .lookup, "What a tool sends to a server, by the table of origins",
            body: .members([
                .required("url", .string, "Where the tool connects to"),
                .optional("username", .string, "The user name that the tool was told"),
                .optional(
                    "rejected_sha256", .pattern("^[0-9a-fA-F]{64}$"),
                    "The server refused the token with this SHA-256; the next lookup refreshes it"),
                .optional(
                    "rejected_is_guess", .boolean,
                    "The tool does not say which token it sent: one that replaced a refused one in the last ten seconds stays"
                ),
                .optional("without_scheme", .boolean, "The tool does not say whether it connects with TLS"),
                .optional(
                    "ca_sha256", .pattern("^[0-9a-fA-F]{64}$"),
                    "The tool trusts the certificate authority with this SHA-256 of its PEM text, not the system's"),
                .optional("tls_server_name", .string, "The tool expects a certificate with this name"),
                .optional("insecure_skip_tls_verify", .boolean, "The tool does not check the certificate"),
                .optional("proxy_url", .string, "The tool connects by this proxy"),
                .optional("interactive", .boolean, "If signed out, start or join a sign-in and wait for it"),
            ]), .json(.originCredential),
            errors: .ofAccount.and(.ofProvider).and([
                .signInRequired, .sessionExpired, .refreshRefused, .stateConflict, .validationFailed, .accessDenied,
                .flowExpired, .methodUnsupported, .portInUse, .flowNotFound, .notFound,
            ]),
            LookupResource.lookup)
    ]

    func lookup(_ call: Call) async throws(Problem) -> ServerResponse {
        let lookup = try OriginLookup(call, daemon.origins)
        let origin = lookup.origin
        if origin.kind == .idToken,
            api.admit(call.request, account: origin.account.rawValue, operation: .idToken) == nil
        {
            throw Problem(.policyDenied, "The policy does not allow id_token to this program.")
        }
        return try await api.answer(
            lookup, call, explain: { Problem($0, language: call.language) },
            issue: { () throws(Problem) in
                var query = origin.query
                if lookup.isInteractive { query.timeout = OriginLookup.signInWait }
                let asked = query
                let issuedToken = try await call.ask { () throws(BrokerError) in
                    lookup.isInteractive
                        ? try await broker.sessionAfterSignIn(origin.account, asked)
                        : try await broker.session(origin.account, asked)
                }
                return (issuedToken, asked)
            })
    }
}

extension SocketAPI {
    /// Notes a rejection, or gets a token.
    ///
    /// - Parameters:
    ///   - explain: makes a problem of the broker's error, as this socket words it.
    ///   - issue: gets the token, within what the socket serves, and says what it asked for.
    func answer(
        _ lookup: OriginLookup, _ call: Call, explain: (BrokerError) -> Problem,
        issue: () async throws(Problem) -> (IssuedToken, SessionQuery)
    ) async throws(Problem) -> ServerResponse {
        guard let registry = daemon.origins else { throw Problem(.notFound, "There are no origins.") }
        if let rejected = lookup.rejected {
            let rejection = registry.reject(
                rejected, isGuess: lookup.isGuess, by: lookup.origin, at: call.facts.exposedSocket)
            if rejection != .ignored { noteRejection(lookup, call) }
            // A program behind an exposed socket shows the warning of the response itself, if it wants to.
            if rejection == .repeated, call.facts.exposedSocket == nil {
                daemon.tellOfRefusal(lookup.origin.rule.pattern.place, lookup.origin.account)
            }
            return ServerResponse(json: lookup.response(rejection))
        }
        let credential = try await registry.credential(
            of: lookup.origin, at: call.facts.exposedSocket, explain: explain, issue: issue)
        // The server would get more rights than the table of origins gives it.
        let excess = credential.query.key.excess(of: credential.issuedToken.token)
        guard excess.isEmpty else {
            throw Problem(
                .invalidProviderResponse,
                "The provider of \(lookup.origin.account) issued a token with more scope than the origin names "
                    + "(\(excess.joined(separator: " "))), so it is not given to a server.")
        }
        let response = try lookup.response(
            credential, expiresAt: broker.expiry(of: credential.issuedToken.token)?.at)
        noteIssuedToken(
            call.facts, credential.issuedToken, credential.query.key,
            lookup.origin.kind == .idToken ? .idToken : .token, for: lookup)
        return ServerResponse(json: response)
    }

    /// Writes to the audit log that a tool told of a refused token.
    private func noteRejection(_ lookup: OriginLookup, _ call: Call) {
        var members = JSONObject([
            .init("account", .string(lookup.origin.account.rawValue)),
            .init("origin", .string(lookup.origin.rule.pattern.text)),
        ])
        members["tool"] = lookup.tool.map { .string($0) }
        members["exposed_socket"] = call.facts.exposedSocket.map { .string($0) }
        records?.audit.write("token_rejected", members, at: call.facts.exposedSocket)
    }
}

extension Component {
    fileprivate static let originCredential = Component(
        "OriginCredential",
        [
            .required("account", .string), .required("headers", .array(.string), "Lines of a request: Name: value"),
            .optional("username", .string), .optional("secret", .string, "The token"),
            .optional("expires_at", .integer), .optional("warning", .string, "A sentence for the user"),
        ])
}
