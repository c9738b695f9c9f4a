internal import BrokerCore
internal import OAuth
internal import RingbackBase

extension Account {
    /// Sends a request for this account to the provider or to a host of its metadata.
    func send(_ request: HTTPRequest, toProvider http: any HTTPClient) async throws(BrokerError) -> HTTPResponse {
        try await send(request, under: nil, toProvider: http)
    }

    func send(
        _ request: HTTPRequest, under attempt: RefreshAttempt?, toProvider http: any HTTPClient
    ) async throws(BrokerError) -> HTTPResponse {
        if let connection = oauth.mcp { return try await send(request, under: attempt, at: connection, over: http) }
        return try await send(
            request, under: attempt, isStrange: isStrange(request.url), isPublic: false, over: http)
    }

    /// True for a host other than the issuer's that comes from the provider's metadata. Such a host must not resolve to
    /// this machine: a provider must not be able to send requests to local services.
    func isStrange(_ url: String) -> Bool {
        guard case .issuer(let issuer) = oauth.endpoints, let home = try? WebURL(parsing: issuer),
            let host = (try? WebURL(parsing: url))?.host
        else { return false }
        // A provider on this machine may name this machine. Literal addresses were checked when the metadata were read.
        return host != home.host && !home.isLoopback && !host.contains(":")
            && !host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) }
    }
}

extension BrokerError {
    /// `invalid_grant` (RFC 6749 section 5.2) is the only proof. Every other error may be temporary.
    var provesDeadGrant: Bool {
        if case .provider(.refused("invalid_grant", _)) = self { true } else { false }
    }

    /// Reads a response, or makes a request, whose errors are those of the protocol. `host` is for messages.
    static func reading<Value>(
        from host: @autoclosure () -> String, _ body: @autoclosure () throws(OAuthError) -> Value
    ) throws(BrokerError) -> Value {
        do throws(OAuthError) {
            return try body()
        } catch {
            throw BrokerError(error, host: host())
        }
    }

    init(_ error: OAuthError, host: String) {
        switch error {
        case .invalid(let kind, let reason):
            let text = "The \(kind.rawValue) response of \(host) is not valid: \(reason)."
            self = .provider(.invalidResponse(.stated(text)))
        case .otherSubject:
            let text = "The ID token of \(host) is not valid (sub): it is for another user than before."
            self = .provider(.otherSession(.stated(text)))
        case .invalidIDToken(let claim, let reason):
            let text = "The ID token of \(host) is not valid (\(claim)): \(reason)."
            self = .provider(.invalidResponse(.stated(text)))
        case .refused(let errorResponse) where errorResponse.code == "invalid_grant" && !errorResponse.endsGrant:
            // A status that token endpoints do not use does not prove the code: it may be a moved server's 404.
            let text = "\(host) sent “invalid_grant” with HTTP status \(errorResponse.status)."
            self = .provider(.invalidResponse(.stated(text)))
        case .refused(let errorResponse):
            self = .provider(.refused(code: errorResponse.code, message: errorResponse.message))
        case .unavailable(_, 429, let retryAfter): self = .provider(.rateLimited(retryAfter: retryAfter))
        case .unavailable(_, let status, let retryAfter):
            self = .provider(.unavailable(status: status, retryAfter: retryAfter))
        case .failing(let errorResponse, let retryAfter):
            self = .provider(
                .failing(
                    status: errorResponse.status, code: errorResponse.code, message: errorResponse.message,
                    retryAfter: retryAfter))
        case .misconfigured(let reason): self = .misconfigured(.stated(reason))
        }
    }

    /// The same for a response that may be a refusal (4xx) whose form is not OAuth's: it has a text, or the status that
    /// rejects the client.
    init(_ error: OAuthError, of response: HTTPResponse, host: String) {
        let message = OAuthError.statedText(in: response)
        guard case .invalid = error, (400..<500).contains(response.status), response.status == 401 || message != nil
        else {
            self.init(error, host: host)
            return
        }
        self.init(unexplained: response, host: host)
    }

    /// A refusal (4xx) whose form is not OAuth's. What a challenge says of a proof says nothing about the client.
    init(unexplained response: HTTPResponse, host: String) {
        if let refusal = DPoPRefusal(in: response) {
            self = .provider(.refused(code: refusal.rawValue, message: nil))
        } else {
            let message = OAuthError.statedText(in: response)
            self = .provider(.unexplained(host: host, status: response.status, message: message))
        }
    }

    /// True if the provider does not know the client: status 401 without an OAuth error means that, too.
    var disownsClient: Bool {
        switch self {
        case .provider(.refused("invalid_grant", _)): false
        case .provider(.refused(let code, let message)):
            [
                "invalid_client", "incorrect_client_credentials", "deleted_client", "unknown_client",
                "client_not_found", "invalid_client_id",
            ].contains(code) || message.map(OAuthError.saysClientIsUnknown) == true
        case .provider(.unexplained(_, let status, let message)):
            status == 401 || message.map(OAuthError.saysClientIsUnknown) == true
        case .clientForgotten, .refreshRefused(_, _, .client): true
        default: false
        }
    }

    /// For a token response: status 404 without an OAuth error means that there is no endpoint at the URL.
    init(_ error: OAuthError, ofTokenResponse response: HTTPResponse, host: String, at endpoints: Account.Endpoints) {
        let isOfClient = OAuthError.statedText(in: response).map(OAuthError.saysClientIsUnknown) ?? false
        guard response.status == 404, case .invalid = error, !isOfClient else {
            self.init(error, of: response, host: host)
            return
        }
        let isConfigured = if case .fixed = endpoints { true } else { false }
        let place =
            isConfigured
            ? "the account has (HTTP 404). Look at endpoints.token of the account."
            : "its metadata have (HTTP 404). Look at issuer of the account."
        self = .provider(.invalidResponse(.stated("\(host) has no token endpoint at the URL that \(place)")))
    }

    /// The error of an authorization response: the user declined, or the provider rejected the request.
    init(_ errorResponse: OAuthError.ErrorResponse, for account: AccountName) {
        switch errorResponse.code {
        case "access_denied": self = .accessDenied(account)
        case "temporarily_unavailable", "server_error":
            self = .provider(.unavailable(status: errorResponse.status, retryAfter: nil))
        default: self = .provider(.refused(code: errorResponse.code, message: errorResponse.message))
        }
    }
}

extension Reason {
    init(_ failure: AuthorizationResponse.Failure) {
        switch failure {
        case .malformed: self = .malformedCallback
        case .repeatedParameter(let name): self = .repeatedParameter(name)
        case .conflictingParameters: self = .codeAndError
        case .missingState: self = .withoutState
        case .missingCode: self = .neitherCodeNorError
        case .carriesTokens: self = .carriesTokens
        }
    }
}
