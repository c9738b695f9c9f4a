internal import HTTPMessages
internal import OAuth
internal import Secrets

extension Account {
    /// Sends a request as this account: with its trust and its headers.
    func send(_ request: HTTPRequest, over http: any HTTPClient) async throws(BrokerError) -> HTTPResponse {
        var request = request
        request.trust = trust
        for (name, value) in headers { request.fields.set(name, value) }
        do {
            return try await http.send(request)
        } catch {
            throw BrokerError(error)
        }
    }
}

extension HTTPRequest {
    /// The host, for messages.
    var host: String { (try? WebURL(parsing: url))?.host ?? "the provider" }
}

extension BrokerError {
    /// The same without the provider's words, where they repeat one of the secrets that were sent: what a provider says
    /// is shown to callers and kept in records.
    func unquoting(_ secrets: Secret...) -> BrokerError {
        guard case .provider(.refused(let code, let message)) = self else { return self }
        let isRepeated = { (text: String) in
            // Words are cut to a length: the beginning tells.
            secrets.contains { !$0.isEmpty && text.contains($0.revealed().prefix(16)) }
        }
        return .provider(
            .refused(
                code: isRepeated(code) ? "unspeakable" : code, message: message.flatMap { isRepeated($0) ? nil : $0 }))
    }

    /// What a transport failure means.
    init(_ error: HTTPClientError) {
        switch error {
        case .unreachable(let host, let reason): self = .provider(.unreachable(host: host, reason: reason))
        case .timedOut(let host):
            self = .provider(.unreachable(host: host, reason: "no answer within the time allowed"))
        case .untrusted(let host, let reason): self = .provider(.unreachable(host: host, reason: reason))
        case .tooLarge(let host): self = .provider(.invalidAnswer("The answer of \(host) is too large."))
        case .malformed(let host): self = .provider(.invalidAnswer("The answer of \(host) is not valid HTTP."))
        case .refusedURL:
            self = .misconfigured("An endpoint is neither https nor http on a loopback address.")
        case .cancelled: self = .cancelled
        }
    }

    /// What a provider's answer means. `host` is for messages.
    init(_ error: OAuthError, host: String) {
        switch error {
        case .invalid(let answer, let reason):
            self = .provider(.invalidAnswer("The \(answer.rawValue) answer of \(host) is not valid: \(reason)."))
        case .invalidIDToken(let claim, let reason):
            self = .provider(.invalidAnswer("The ID token of \(host) is not valid (\(claim)): \(reason)."))
        case .refused(let refusal) where refusal.code == "invalid_grant" && error.remedy != .signInAgain:
            // The word at a status that a token endpoint does not say it with proves nothing (a 404 of a moved server).
            self = .provider(.invalidAnswer("\(host) says “invalid_grant” with HTTP status \(refusal.status)."))
        case .refused(let refusal): self = .provider(.refused(code: refusal.code, message: refusal.message))
        case .unavailable(_, 429, let retryAfter): self = .provider(.rateLimited(retryAfter: retryAfter))
        case .unavailable(_, let status, let retryAfter):
            self = .provider(.unavailable(status: status, retryAfter: retryAfter))
        case .misconfigured(let reason): self = .misconfigured(reason)
        }
    }
}
