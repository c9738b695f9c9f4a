internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import RingbackAPI
internal import RingbackBase

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
            errors: .ofAccount.and(.ofProvider).and([
                .signInRequired, .sessionExpired, .refreshRefused, .stateConflict, .validationFailed,
                .methodUnsupported,
                .consentRequired, .consentTimeout,
            ]), ProofResource.makeProof)
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
        var object = JSONObject([.init("account", .string(issuedToken.account.rawValue))])
        object["authorization"] = .string("\(token.type) \(token.value.revealed())")
        object["dpop"] = proof.map { .string($0.revealed()) }
        object["access_token"] = .string(token.value.revealed())
        object["token_type"] = .string(token.type)
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
