internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SupabaseAuth

extension Account {
    /// Sends a request as this account: with its trust and its headers.
    func send(_ request: HTTPRequest, over http: any HTTPClient) async throws(BrokerError) -> HTTPResponse {
        var request = request
        request.trust = trust
        request.route = route
        request.refusesInsideAddresses = isStrange(request.url)
        for (name, value) in headers { request.fields.set(name, value) }
        do {
            return try await http.send(request)
        } catch {
            throw BrokerError(error)
        }
    }
}

extension Account {
    /// True for a host that only the provider's own metadata name: it is not to lead back to this machine.
    func isStrange(_ url: String) -> Bool {
        guard case .issuer(let issuer) = endpoints, let home = try? WebURL(parsing: issuer),
            let host = (try? WebURL(parsing: url))?.host
        else { return false }
        // A provider on this machine may name this machine; literal addresses have been judged as they were read.
        return host != home.host && !home.isLoopback && !host.contains(":")
            && !host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) }
    }
}

extension HTTPRequest {
    /// The host, for messages; with the port if it is not the scheme's own.
    var host: String { (try? WebURL(parsing: url))?.place ?? "the provider" }
}

extension BrokerError {
    /// The same without the provider's words, where they repeat one of the secrets that were sent: what a provider says
    /// is shown to callers and kept in records.
    func unquoting(_ secrets: Secret?...) -> BrokerError {
        let isRepeated = { (text: String) in secrets.contains { $0.map { BrokerError.quotes(text, $0) } ?? false } }
        if case .project(let problem) = self, let message = problem.providerMessage, isRepeated(message) {
            return .project(problem.withoutWords)
        }
        let speakable = { (code: String) in
            BrokerError.standardCodes.contains(code) || !isRepeated(code) ? code : "unspeakable"
        }
        switch self {
        case .provider(.refused(let code, let message)):
            return .provider(.refused(code: speakable(code), message: message.flatMap { isRepeated($0) ? nil : $0 }))
        case .provider(.failing(let status, let code, let message, let seconds)):
            return .provider(
                .failing(
                    status: status, code: speakable(code), message: message.flatMap { isRepeated($0) ? nil : $0 },
                    retryAfter: seconds))
        default: return self
        }
    }

    /// RFC 6749 section 5.2 and RFC 7009 section 2.2.1: words of nobody's secret, whatever one looks like.
    private static let standardCodes: Set = [
        "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
        "invalid_scope", "unsupported_token_type",
    ]

    /// True if the text has eight characters in a row of the secret, in whatever case: words are cut to a length, and
    /// secrets are shown in part.
    private static func quotes(_ text: String, _ secret: Secret) -> Bool {
        let text = Array(text.lowercased().utf8)
        let secret = Array(secret.revealed().lowercased().utf8)
        let window = min(secret.count, 8)
        // Less than four characters are in any sentence.
        guard window >= 4, text.count >= window else { return false }
        let parts = Set((0...secret.count - window).map { Array(secret[$0..<$0 + window]) })
        return (0...text.count - window).contains { parts.contains(Array(text[$0..<$0 + window])) }
    }

    /// What a transport failure means.
    init(_ error: HTTPClientError) {
        switch error {
        case .unreachable(let host, let reason): self = .provider(.unreachable(host: host, reason: reason))
        case .timedOut(let host):
            self = .provider(.unreachable(host: host, reason: "no answer within the time allowed"))
        case .untrusted(let host, let reason): self = .provider(.untrusted(host: host, reason: reason))
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
        case .failing(let refusal, let retryAfter):
            self = .provider(
                .failing(
                    status: refusal.status, code: refusal.code, message: refusal.message, retryAfter: retryAfter))
        case .misconfigured(let reason): self = .misconfigured(reason)
        }
    }
}
