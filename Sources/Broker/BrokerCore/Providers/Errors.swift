public import RingbackBase

extension HTTPRequest {
    /// The host, for messages; with the port if it is not the scheme's own.
    public var host: String { (try? WebURL(parsing: url))?.place ?? "the provider" }
}

extension BrokerError {
    /// The same error without the provider's texts that contain a secret of the request: these texts are shown to
    /// callers and written to the audit log.
    public func unquoting(_ secrets: Secret?...) -> BrokerError {
        let isRepeated = { (text: String) in secrets.contains { $0.map { BrokerError.quotes(text, $0) } ?? false } }
        if case .problem(let problem) = self, let message = problem.providerMessage, isRepeated(message) {
            return .problem(problem.withoutWords)
        }
        let speakable = { (code: String) in
            BrokerError.standardCodes.contains(code) || !isRepeated(code) ? code : "withheld"
        }
        switch self {
        case .provider(.refused(let code, let message)):
            return .provider(.refused(code: speakable(code), message: message.flatMap { isRepeated($0) ? nil : $0 }))
        case .provider(.unexplained(let host, let status, let message?)) where isRepeated(message):
            return .provider(.unexplained(host: host, status: status))
        case .provider(.failing(let status, let code, let message, let seconds)):
            return .provider(
                .failing(
                    status: status, code: speakable(code), message: message.flatMap { isRepeated($0) ? nil : $0 },
                    retryAfter: seconds))
        default: return self
        }
    }

    /// RFC 6749 section 5.2 and RFC 7009 section 2.2.1. These codes are shown even if a secret contains one.
    private static let standardCodes: Set = [
        "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
        "invalid_scope", "unsupported_token_type",
    ]

    /// True if the text contains eight consecutive characters of the secret, whatever their case. A provider may have
    /// shortened the secret.
    private static func quotes(_ text: String, _ secret: Secret) -> Bool {
        let text = Array(text.lowercased().utf8)
        let secret = Array(secret.revealed().lowercased().utf8)
        let window = min(secret.count, 8)
        // Up to three characters occur in any sentence by chance.
        guard window >= 4, text.count >= window else { return false }
        let parts = Set((0...secret.count - window).map { Array(secret[$0..<$0 + window]) })
        return (0...text.count - window).contains { parts.contains(Array(text[$0..<$0 + window])) }
    }

    /// What a transport failure means.
    public init(_ error: HTTPClientError) {
        switch error {
        case .unreachable(let host, let reason, let proxy):
            self = .provider(.unreachable(host: host, reason: .provider(.noConnection(cause: reason)), proxy: proxy))
        case .timedOut(let host):
            self = .provider(.unreachable(host: host, reason: .provider(.noResponseInTime)))
        case .untrusted(let host, let reason):
            self = .provider(.untrusted(host: host, reason: .provider(.noConnection(cause: reason))))
        case .wrongScheme(let host, let speaksTLS):
            self = .provider(.wrongScheme(host: host, speaksTLS: speaksTLS))
        case .tooLarge(let host): self = .provider(.invalidResponse(.provider(.tooLarge(host: host))))
        case .malformed(let host): self = .provider(.invalidResponse(.provider(.notHTTP(host: host))))
        case .refusedURL: self = .misconfigured(.provider(.endpointNotAllowed))
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
            throw .misconfigured(.provider(.endpointNotURL))
        }
    }
}
