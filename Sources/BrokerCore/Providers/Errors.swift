public import HTTPMessages
public import Secrets

extension HTTPRequest {
    /// The host, for messages; with the port if it is not the scheme's own.
    public var host: String { (try? WebURL(parsing: url))?.place ?? "the provider" }
}

extension BrokerError {
    /// The same without the provider's words, where they repeat one of the secrets that were sent: what a provider says
    /// is shown to callers and kept in records.
    public func unquoting(_ secrets: Secret?...) -> BrokerError {
        let isRepeated = { (text: String) in secrets.contains { $0.map { BrokerError.quotes(text, $0) } ?? false } }
        if case .problem(let problem) = self, let message = problem.providerMessage, isRepeated(message) {
            return .problem(problem.withoutWords)
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
    public init(_ error: HTTPClientError) {
        switch error {
        case .unreachable(let host, let reason): self = .provider(.unreachable(host: host, reason: reason))
        case .timedOut(let host):
            self = .provider(.unreachable(host: host, reason: "no answer within the time allowed"))
        case .untrusted(let host, let reason): self = .provider(.untrusted(host: host, reason: reason))
        case .tooLarge(let host): self = .provider(.invalidResponse("The answer of \(host) is too large."))
        case .malformed(let host): self = .provider(.invalidResponse("The answer of \(host) is not valid HTTP."))
        case .refusedURL:
            self = .misconfigured("An endpoint is neither https nor http on a loopback address.")
        case .cancelled: self = .cancelled
        }
    }
}

extension WebURL {
    /// The origin of an endpoint.
    public static func origin(of endpoint: String) throws(BrokerError) -> String {
        do throws(WebURL.Failure) {
            return try WebURL(parsing: endpoint).origin
        } catch {
            throw .misconfigured("An endpoint of the provider is not a URL.")
        }
    }
}
