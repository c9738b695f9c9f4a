internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import Records
internal import RingbackAPI
internal import RingbackBase

/// What a tool sends to a server: the token of the account that the configuration names for it (`[[origin]]`).
struct LookupResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .lookup, "What a tool sends to a server, by the table of origins", query: [ConsentQuery.member],
            body: .members(
                .required("url", text: "Where the tool connects to"),
                .optional("username", text: "The user name that the tool was told"),
                .optional(
                    "rejected_sha256", as: .pattern("^[0-9a-fA-F]{64}$"),
                    text: "The server refused the token with this SHA-256; the next lookup refreshes it"),
                .optional(
                    "rejected_is_guess", as: .boolean,
                    text:
                        "The tool does not say which token it sent: one that replaced a refused one in the last ten "
                        + "seconds stays"
                ),
                .optional("without_scheme", as: .boolean, text: "The tool does not say whether it connects with TLS"),
                .optional(
                    "ca_sha256", as: .pattern("^[0-9a-fA-F]{64}$"),
                    text:
                        "The tool trusts the certificate authority with this SHA-256 of its PEM text, not the "
                        + "system's"),
                .optional("tls_server_name", text: "The tool expects a certificate with this name"),
                .optional("insecure_skip_tls_verify", as: .boolean, text: "The tool does not check the certificate"),
                .optional("proxy_url", text: "The tool connects by this proxy"),
                .optional(
                    "method",
                    text: "Of the request; without it the tool gets no token that is bound to a key (RFC 9449)"),
                .optional("nonce", text: "The server's last DPoP-Nonce"),
                .optional("interactive", as: .boolean, text: "If signed out, start or join a sign-in and wait for it"),
                .optional("without_token", as: .boolean, text: "The same without the token: no consent is needed")),
            .json(
                "OriginCredential", .required("account"),
                .required("headers", as: .array(.string), text: "Lines of a request: Name: value"),
                .optional("username"), .optional("secret", text: "The token"), .optional("expires_at", as: .integer),
                .optional("warning", text: "A sentence for the user")),
            errors: SessionResource.errors.and([.notFound]), LookupResource.lookup)
    ]

    func lookup(_ call: Call) async throws(Problem) -> ServerResponse {
        let lookup = try OriginLookup(call, daemon.origins)
        let origin = lookup.origin
        if origin.kind == .idToken { try api.authorize(call.request, .idToken, origin.account.rawValue) }
        var wanted = origin.query
        if lookup.isInteractive { wanted.timeout = OriginLookup.signInWait }
        // A report that a server has refused a token gets none.
        if lookup.rejected == nil, !lookup.isWithoutToken {
            wanted.timeout = try await api.consent(
                to: .lookup, of: origin.account, scope: wanted.key.scopes, call, within: wanted.timeout)
        }
        wanted.program = lookup.tool
        let query = wanted
        let mayProve = api.admit(call.request, account: origin.account.rawValue, operation: .proof) != nil
        return try await api.answer(
            lookup, call, mayProve: mayProve, explain: { Problem($0, language: call.language) },
            issue: { () throws(Problem) in
                let issuedToken = try await call.ask { () throws(BrokerError) in
                    lookup.isInteractive
                        ? try await broker.sessionAfterSignIn(origin.account, query)
                        : try await broker.session(origin.account, query)
                }
                return (issuedToken, query)
            })
    }
}

extension SocketAPI {
    /// Notes a rejection, or gets a token, with a proof if it is bound and the caller `mayProve`. `explain` words the
    /// broker's error; `issue` gets the token, and says which.
    func answer(
        _ lookup: OriginLookup, _ call: Call, mayProve: Bool, explain: (BrokerError) -> Problem,
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
            return ServerResponse(lookup.response(rejection))
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
        let issuedToken = credential.issuedToken
        let expiry = broker.expiry(of: issuedToken.token)?.at
        guard !lookup.isWithoutToken else {
            return ServerResponse(json: try lookup.response(credential, nil, expiresAt: expiry))
        }
        var proof: Secret?
        if issuedToken.token.isBound {
            guard mayProve, let proved = lookup.proved else { throw .tokenIsBound(lookup.origin.account) }
            proof = try await self.proof(of: issuedToken, for: proved, explain: explain)
        }
        let response = try lookup.response(credential, proof, expiresAt: expiry)
        let operation: PolicyOperation = proof != nil ? .proof : lookup.origin.kind == .idToken ? .idToken : .token
        noteIssuedToken(call.facts, issuedToken, credential.query.key, operation, for: lookup)
        return ServerResponse(json: response)
    }

    private func noteRejection(_ lookup: OriginLookup, _ call: Call) {
        let members: JSONObject = [
            "account": lookup.origin.account.rawValue, "origin": lookup.origin.rule.pattern.text, "tool": lookup.tool,
            "exposed_socket": call.facts.exposedSocket,
        ]
        records?.audit.write("token_rejected", members, at: call.facts.exposedSocket)
    }
}

struct OriginLookup: Sendable {
    let origin: Origin
    let username: String?
    let rejected: [UInt8]?
    let isGuess: Bool
    let isInteractive: Bool
    /// Only whether there is a token is wanted.
    let isWithoutToken: Bool
    let tool: String?
    /// For a token that is bound to a key; nil if the tool sends no proofs.
    let proved: ProvedRequest?
    static let signInWait: Duration = .seconds(120)
    private static let longestName = 256

    /// Throws `not_found` if no origin fits, and `policy_denied` if the one that fits does not allow the connection.
    init(_ call: Call, _ registry: OriginRegistry?) throws(Problem) {
        guard let url = try? WebURL(parsing: try call.required("url")), url.host?.isEmpty == false else {
            throw call.invalid("url", "it is an absolute URL with a host and without a user name")
        }
        username = try OriginLookup.name(call)
        rejected = try call.digest("rejected_sha256")
        isGuess = try call.truth("rejected_is_guess")
        isInteractive = try call.truth("interactive")
        isWithoutToken = try call.truth("without_token")
        tool = call.program
        let (method, nonce) = (try call.text("method"), try call.text("nonce"))
        proved = try method.map { method throws(Problem) in try ProvedRequest(method, url, nonce, call) }
        let refusing = rejected.flatMap { registry?.origin(of: url, refusing: $0, at: call.facts.exposedSocket) }
        guard let origin = refusing ?? registry?.origin(of: url, username: username) else {
            let user = username == nil ? "this URL" : "this URL and user name"
            throw Problem(.notFound, "No origin of the configuration fits \(user).")
        }
        self.origin = origin
        let excess = rejected == nil ? try OriginLookup.settings(call).excess(over: origin.allowed) : []
        guard excess.isEmpty else {
            throw Problem(
                .policyDenied,
                "The tool's connection may be less safe than the URL says, and the origin \(origin.rule.pattern.text) does "
                    + "not allow that. If it is intended, add to its [[origin]] table: \(excess.joined(separator: ", "))"
            )
        }
    }

    private static func settings(_ call: Call) throws(Problem) -> ConnectionSettings {
        var settings = ConnectionSettings()
        settings.withoutScheme = try call.truth("without_scheme")
        settings.skipsVerification = try call.truth("insecure_skip_tls_verify")
        func value(
            _ name: String, _ meaning: String, _ normalized: (String) -> String?
        ) throws(Problem) -> Set<String> {
            guard let text = try call.text(name) else { return [] }
            guard let value = normalized(text) else { throw call.invalid(name, meaning) }
            return [value]
        }
        settings.authorities = try value(
            "ca_sha256", "it is a SHA-256 in 64 hexadecimal digits", ConnectionSettings.digest)
        settings.serverNames = try value("tls_server_name", "it is a host name", ConnectionSettings.serverName)
        settings.proxies = try value("proxy_url", "it is an absolute URL with a host", ConnectionSettings.proxy)
        return settings
    }

    private static func name(_ call: Call) throws(Problem) -> String? {
        guard let name = try call.text("username"), !name.isEmpty else { return nil }
        guard name.utf8.count <= longestName,
            name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else { throw call.invalid("username", "it is at most \(longestName) bytes without control characters") }
        return name
    }

    /// The response with a token. Throws `invalid_provider_response` for a token with other bytes than 0x21 to 0x7E: in
    /// a header field or a line of a protocol they would add something to it.
    func response(
        _ credential: OriginRegistry.Credential, _ proof: Secret? = nil, expiresAt: WallInstant?
    ) throws(Problem) -> JSON {
        let token = credential.issuedToken.token.value
        guard token.revealedBytes().allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Problem(
                .invalidProviderResponse,
                "The token of \(origin.account) has characters that are not allowed in a token; it is given to no tool."
            )
        }
        guard !isWithoutToken else {
            return ["account": .string(origin.account.rawValue), "headers": []]
        }
        let username = origin.username ?? username
        // RFC 9449 section 7.1.
        var lines = (proof == nil ? origin.headers : origin.headers.map(\.ofBoundToken))
            .map { $0.line(token: token.revealed(), username: username) }
        if let proof { lines.append("DPoP: \(proof.revealed())") }
        var object = JSONObject([
            .init("account", .string(origin.account.rawValue)),
            .init("headers", .array(lines.map { .string($0) })),
        ])
        object["username"] = username.map { .string($0) }
        object["secret"] = .string(token.revealed())
        object["expires_at"] = expiresAt.map { .integer($0.seconds) }
        object["warning"] = credential.isRefusedRepeatedly ? .string(warning) : nil
        return .object(object)
    }

    func response(_ rejection: OriginRegistry.Rejection) -> JSONObject {
        ["account": origin.account.rawValue, "headers": [JSON](), "warning": rejection == .repeated ? warning : nil]
    }

    private var warning: String {
        "\(origin.rule.pattern.place) has refused two tokens of \(origin.account) in a row. A scope is probably missing. "
            + "The token is not refreshed for this origin for five minutes."
    }
}

extension Call {
    /// What the caller calls itself, as printable ASCII; nil if it does not say. It is not checked.
    var program: String? {
        request.fields["Ringback-Application"].flatMap { text in
            let name = text.unicodeScalars.prefix(64).map { (0x20..<0x7F).contains($0.value) ? Character($0) : "?" }
            return name.isEmpty ? nil : String(name)
        }
    }

    func digest(_ name: String) throws(Problem) -> [UInt8]? {
        guard let text = try text(name) else { return nil }
        let digits = text.utf8.compactMap(\.hexValue)
        guard digits.count == 64, text.utf8.count == 64 else {
            throw invalid(name, "it is a SHA-256 in 64 hexadecimal digits")
        }
        return stride(from: 0, to: 64, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}

/// What a request to a server of the account carries: the token, and a proof if it is bound to a key (RFC 9449). Both are of
/// one moment, so that the token is not another one by the time of the proof.
struct ProofResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .makeProof, "The token and a proof for one request", query: [ConsentQuery.member],
            body: .members(
                .required("method", text: "Of the request"),
                .required("url", text: "Of the request, at an origin of the account"),
                .optional("nonce", text: "The server's last DPoP-Nonce"),
                .optional(
                    "rejected_sha256", as: .pattern("^[0-9a-fA-F]{64}$"),
                    text: "The server refused the token with this SHA-256: it is refreshed first")),
            .json(
                "RequestProof",
                .required("account"), .required("authorization", text: "The value of the field Authorization"),
                .optional("dpop", text: "The value of the field DPoP, for one request; not for a Bearer token"),
                .required("access_token", "token_type"), .optional("expires_at", "expires_in", as: .integer)),
            errors: .ofToken.and([.methodUnsupported, .consentRequired, .consentTimeout]), ProofResource.makeProof)
    ]

    func makeProof(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let proved = try ProvedRequest(of: call)
        let rejected = try call.digest("rejected_sha256")
        guard let origin = try await api.origin(of: proved, name, call) else {
            throw Problem(
                .policyDenied,
                "\(proved.url.place) is no origin of \(name) there: a proof is made only for its MCP server, and for what an "
                    + "[[origin]] table of the account names.")
        }
        var query = SessionQuery()
        query.timeout = try await api.consent(to: .proof, of: name, call, within: query.timeout)
        query.program = call.program
        let wanted = query
        if let rejected {
            _ = try await call.ask { () throws(BrokerError) in try await broker.refresh(name, rejected: rejected) }
        }
        let issuedToken = try await call.ask { () throws(BrokerError) in try await broker.session(name, wanted) }
        let proof = try await api.proof(of: issuedToken, for: proved) { Problem($0, language: call.language) }
        return api.answer(issuedToken, proof, .own, at: origin, call)
    }
}

extension SocketAPI {
    /// The pattern of the origin at the request's URL, by the table of origins or as that of the account's MCP server; nil
    /// if the account's tokens are not for it.
    func origin(of proved: ProvedRequest, _ name: AccountName, _ call: Call) async throws(Problem) -> String? {
        if let pattern = daemon.origins?.pattern(of: proved.url, with: name) { return pattern.text }
        let isServer = try await call.ask { () throws(BrokerError) in
            try await proved.isAtMCPServer(of: name, broker)
        }
        return isServer ? proved.url.origin + "/*" : nil
    }

    /// The proof for a request; nil if the token is not bound. Throws `policy_denied` for an endpoint of the issuer.
    func proof(
        of issuedToken: IssuedToken, for proved: ProvedRequest, explain: (BrokerError) -> Problem
    ) async throws(Problem) -> Secret? {
        let made: RequestProof
        do throws(BrokerError) { made = try await proved.proof(with: issuedToken, broker) } catch {
            throw explain(error)
        }
        switch made {
        case .unneeded: return nil
        case .made(let proof): return proof
        case .denied: break
        }
        throw Problem(
            .policyDenied,
            "The URL may be an endpoint of the issuer of \(issuedToken.account): no program gets a proof for those, since it could "
                + "refresh or end the session.")
    }

    func answer(
        _ issuedToken: IssuedToken, _ proof: Secret?, _ key: TokenKey, at origin: String, _ call: Call
    ) -> ServerResponse {
        noteIssuedToken(call.facts, issuedToken, key, .proof, at: origin)
        let token = issuedToken.token
        var object: JSONObject = [
            "account": issuedToken.account.rawValue, "authorization": "\(token.type) \(token.value.revealed())",
            "dpop": proof?.revealed(), "access_token": token.value.revealed(), "token_type": token.type,
        ]
        addExpiry(of: issuedToken, to: &object)
        return ServerResponse(json: .object(object))
    }
}

extension Problem {
    /// A bound token is of no use without proofs, and must not leave as a Bearer token.
    static func tokenIsBound(_ name: AccountName) -> Problem {
        Problem(
            .stateConflict,
            "The access token of \(name) is bound to a key (DPoP): its server takes it only with a proof for each request, which "
                + "is not made here.",
            extensions: ["account": name.rawValue, "cause": ProblemCause.tokenBound.rawValue])
    }
}

extension ProvedRequest {
    init(of call: Call) throws(Problem) {
        let (method, url) = (try call.required("method"), try call.required("url"))
        try self.init(method, try? WebURL(parsing: url), try call.text("nonce"), call)
    }

    init(_ method: String, _ url: WebURL?, _ nonce: String?, _ call: Call) throws(Problem) {
        do throws(BrokerError) { self = try ProvedRequest(method: method, url: url, nonce: nonce) } catch {
            throw Problem(error, language: call.language)
        }
    }
}
