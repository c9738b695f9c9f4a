public import RingbackBase
public import SessionVault

/// Every error of the broker. The socket API maps it once to a problem document. It holds names, hosts, statuses and
/// checked codes; never a token, a URL or a body.
public indirect enum BrokerError: Error, Sendable, Equatable {
    case accountNotFound(String)
    case flowNotFound
    /// The vault has no such record. The reason says which.
    case nothingHeld(Reason)
    case signInRequired(AccountName)
    /// The access token has expired, and there is no refresh token. `advice` says how to get one.
    case sessionRanOut(AccountName, advice: Reason?)
    /// The provider ended the session. `word` is its error code for the reason, `message` its text, checked; `hasMoved`
    /// as ``Session/hasMoved``.
    case sessionExpired(AccountName, word: String? = nil, message: String? = nil, hasMoved: Bool = false)
    /// The provider refuses every refresh, which does not prove an end. The session is kept; a sign-in replaces it.
    case refreshRefused(AccountName, host: String, RefreshRefusal)
    /// The provider does not know the client that was registered for the account. The next sign-in registers another
    /// one; with `terms` the user has to register it. `code` and `message` are the provider's, checked.
    case clientForgotten(
        AccountName, host: String, code: String?, message: String?, terms: RegistrationTerms? = nil)
    case accessDenied(AccountName)
    /// The state of the account does not allow this. The reason says why.
    case conflict(Reason, cause: ConflictCause? = nil)
    case invalid(field: String, reason: Reason)
    /// `method` is the sign-in method that the provider does not offer, if that is the reason.
    case methodUnsupported(Reason, method: String? = nil)
    /// The port of the redirect URI is in use or may not be opened.
    case portInUse(ListenerFailure)
    /// No listener can be opened for the address that a browser is started with.
    case entranceUnavailable(ListenerFailure)
    /// Not a callback of a pending flow; the reason says why.
    case invalidCallback(Reason)
    case flowEnded
    /// The user did not finish in time. The reason says what the flow waited for.
    case flowExpired(Reason)
    /// The flow was cancelled, or its account changed.
    case flowCancelled(Reason)
    case provider(ProviderFailure)
    /// The provider refused a token to a service account. `code` and `message` are the provider's, checked.
    case serviceRefused(AccountName, code: String, message: String?)
    /// The provider's error, read by the code for this kind of account, with what it means.
    case problem(ProviderProblem)
    /// Ringback's own limit: a message of the flow was just sent. `retryAfter` is in seconds.
    case resendTooEarly(retryAfter: Int)
    case vaultLocked(Reason, obstacle: VaultObstacle? = nil)
    case wrongPassphrase
    /// Too many wrong passphrases. `retryAfter`: seconds until the next one may be tried.
    case tooManyAttempts(retryAfter: Int)
    case vaultFailed(Reason)
    /// The vault is shared, and its database cannot be used now, or another host is at the record. Nothing was changed,
    /// and it ends by itself. `retryAfter` is in seconds, where it is known when to try again.
    case vaultUnreachable(Reason, retryAfter: Int? = nil)
    case misconfigured(Reason)
    /// A setting names something, such as a file, that cannot be used.
    case unusableSetting(UnusableSetting)
    /// The provider wants another sign-in of the account for this: the last one is too weak or too long ago (RFC 9470). The
    /// parameters are for the next authorization request; `maxAge` is in seconds.
    case stepUpRequired(AccountName, acrValues: String?, maxAge: Int?)
    /// The sign-in of another account, whose ID token is needed, has failed.
    case upstream(AccountName, BrokerError)
    case timedOut
    /// The caller disconnected, or the daemon is shutting down.
    case cancelled
}

/// Why every refresh of a session is refused. The texts are the provider's, checked.
public enum RefreshRefusal: Sendable, Equatable {
    /// Without a readable error code.
    case unexplained(status: Int, message: String?)
    case answered(code: String, message: String?)
    /// The provider does not know the registered client. The next sign-in registers another one.
    case client(code: String?, message: String?)
    /// The secret of the registered client has expired, and there is no new one. The same holds for the next sign-in.
    case clientSecretExpired
}

/// Why something is not allowed now, for programs that advise the user.
public enum ConflictCause: Sendable, Equatable {
    case signInPending(AccountName)
    /// The account's user has data that an app is to move first.
    case migrationPending(AccountName)
    case vault(VaultObstacle)
    /// A directory for sockets is open to others.
    case openToOthers(path: String)
}

/// A setting that was valid when it was read, but names something that cannot be used now.
public struct UnusableSetting: Sendable, Equatable {
    /// The reason, with the place in the configuration where one is known.
    public var reason: Reason
    /// The key, such as `client_secret_file`.
    public var setting: String
    public var file: String?
    public var line: Int?
    /// The name of the credential that the daemon is given at its start.
    public var credential: String?
    /// What other users may do with ``path``.
    public var trouble: PathTrouble?
    /// The file or directory that the setting names, or one above it.
    public var path: String?
    /// True for a client secret of the provider that has expired and was not replaced.
    public var hasExpired = false
    /// If a new registration of the account's client helps.
    public var terms: RegistrationTerms?

    public init(_ reason: Reason, setting: String, file: String? = nil, line: Int? = nil, credential: String? = nil) {
        self.reason = reason
        self.setting = setting
        self.file = file
        self.line = line
        self.credential = credential
    }
}

/// Why there is no usable response of the provider.
public enum ProviderFailure: Sendable, Equatable {
    /// No connection, or no response in time. `reason` ends a sentence. `proxy` (`HOST:PORT`) opened no tunnel.
    case unreachable(host: String, reason: Reason, proxy: String? = nil)
    /// 429, or a 503 with `Retry-After`; in seconds.
    case rateLimited(retryAfter: Int?)
    /// A 5xx. `retryAfter` is in seconds, where the provider says so.
    case unavailable(status: Int, retryAfter: Int?)
    /// A 5xx with an error body. `code` and `message` are checked, `retryAfter` is in seconds.
    case failing(status: Int, code: String, message: String?, retryAfter: Int?)
    /// The certificate is not trusted. `reason` ends a sentence.
    case untrusted(host: String, reason: Reason)
    /// The server speaks TLS and the URL is an http URL, or the other way round.
    case wrongScheme(host: String, speaksTLS: Bool)
    /// The response has a wrong format, or breaks a rule of the protocol.
    case invalidResponse(Reason)
    /// A request was refused (4xx) without a readable error code. `message` is the provider's text, checked.
    case unexplained(host: String, status: Int, message: String? = nil)
    /// The response to a refresh belongs to another user or another session. The reason says which.
    case otherSession(Reason)
    /// It could not be checked to whom an access token belongs. It is not served until it is checked.
    case unproved(host: String)
    /// The provider's error response. `code` and `message` are checked.
    case refused(code: String, message: String?)
}

extension BrokerError {
    /// True if the same request may succeed later without any change.
    public var isTransient: Bool {
        switch self {
        case .provider(.refused): false
        case .provider: true
        case .problem(let problem): problem.isTrouble
        case .vaultUnreachable: true
        case .upstream(_, let error): error.isTransient
        default: false
        }
    }

    /// True if there was no connection with the provider. The request may succeed in another network.
    var isOfNetwork: Bool {
        switch self {
        // A captive portal responds in the provider's place, with its own certificate or without TLS.
        case .provider(.unreachable), .provider(.untrusted), .provider(.wrongScheme): true
        default: false
        }
    }

    /// The provider's `Retry-After`, in seconds.
    public var retryAfter: Int? {
        switch self {
        case .provider(.rateLimited(let seconds)), .provider(.unavailable(_, let seconds)),
            .provider(.failing(_, _, _, let seconds)):
            seconds
        case .problem(let problem): problem.retryAfter
        case .resendTooEarly(let seconds): seconds
        case .upstream(_, let error): error.retryAfter
        default: nil
        }
    }

    /// The provider refused the request with an error response, and did nothing else.
    public var provesUnchanged: Bool {
        switch self {
        case .provider(.refused), .provider(.rateLimited), .refreshRefused(_, _, .answered),
            .refreshRefused(_, _, .client), .clientForgotten:
            true
        default: false
        }
    }

    /// The provider refuses, and would refuse again. An error that asks to wait does not count.
    var refusesRevocation: Bool {
        switch self {
        case .provider(.refused): true
        case .problem(let problem): !problem.isRateLimit && !problem.isTrouble
        default: false
        }
    }

    /// False for a mistake in the request, and for errors that say nothing about the sign-in, such as a locked vault.
    var refusesSignIn: Bool {
        switch self {
        case .problem(let problem): !problem.isMistake
        case .upstream(_, let error): error.refusesSignIn
        case .accessDenied, .clientForgotten, .conflict, .flowEnded, .flowExpired, .invalidCallback, .misconfigured,
            .portInUse, .provider, .refreshRefused, .serviceRefused, .sessionExpired, .unusableSetting, .vaultFailed,
            .vaultUnreachable:
            true
        case .accountNotFound, .cancelled, .entranceUnavailable, .flowCancelled, .flowNotFound, .invalid,
            .methodUnsupported, .nothingHeld, .resendTooEarly, .sessionRanOut, .signInRequired, .stepUpRequired,
            .timedOut,
            .tooManyAttempts, .vaultLocked, .wrongPassphrase:
            false
        }
    }
}

extension BrokerError {
    /// The error of another account's sign-in. If its provider or its settings are the cause, it names that account.
    public func ofUpstream(_ name: AccountName) -> BrokerError {
        switch self {
        case .provider, .problem, .misconfigured, .unusableSetting: .upstream(name, self)
        default: self
        }
    }
}

/// An error of a provider whose kind of account has an error table of its own. The broker passes the codes on to the
/// socket API and makes no decision by them.
public struct ProviderProblem: Sendable, Equatable {
    /// The causes that the broker makes decisions by.
    public enum Cause: Sendable, Equatable {
        case rateLimited
        case methodUnsupported
    }

    /// Nil for every other cause.
    public var cause: Cause?
    /// The API's error code.
    public let code: String
    /// What the caller can do: a `recovery` of the socket API.
    public let recovery: String
    /// The identifier of the message for the user; nil if there is none.
    public var message: String?
    /// The provider's error code, checked.
    public var providerCode: String?
    public var providerMessage: String?
    /// Why the password is too weak.
    public var weaknesses: [String] = []
    /// Seconds.
    public var retryAfter: Int?
    /// Ringback's own sentence, if the mistake was found before anything was sent.
    public var reason: String?
    /// True if it proves that the session of the request's token has ended, or that its user was deleted.
    public var endsSession = false
    /// An error of the provider itself (HTTP 5xx). The request may have taken effect nevertheless.
    public var isTrouble = false
    /// A field of the request was found to be invalid before anything was sent. The sign-in did not fail.
    public var isMistake = false

    public init(code: String, recovery: String) {
        self.code = code
        self.recovery = recovery
    }

    public var isRateLimit: Bool { cause == .rateLimited }

    /// A copy without the provider's texts, which may repeat a secret of the request.
    public var withoutWords: ProviderProblem {
        var problem = self
        problem.providerMessage = nil
        problem.reason = nil
        problem.isMistake = false
        return problem
    }
}

/// Why no listener can be opened for a redirect URI, or for an address that a browser is started with.
public struct ListenerFailure: Sendable, Equatable {
    public enum Cause: Sendable, Equatable {
        /// Another program listens there. Its uid, if the kernel tells it.
        case portTaken(by: UInt32?)
        /// A system call failed with this `errno`.
        case system(call: String, errno: Int32)
        case unsuitable(Reason)
    }

    public let cause: Cause
    /// The address without brackets, such as `::1`; nil if it is not known.
    public let host: String?
    public let port: Int?
    /// The setting of the account that says where to listen; nil if the address is Ringback's own.
    public let setting: String?

    public init(_ cause: Cause, host: String? = nil, port: Int? = nil, setting: String? = nil) {
        self.cause = cause
        self.host = host
        self.port = port
        self.setting = setting
    }
}

/// What the client of an account is registered with again (RFC 7591): settings, which the daemon does not change.
public struct RegistrationTerms: Sendable, Equatable {
    public let issuer: String
    public let scopes: [String]
    public let redirectURI: String?
    /// Nil for a client without a secret.
    public let authentication: String?
    public let responseMode: String?
    /// The path of the certificates that are trusted instead of the system's; nil for the system's.
    public let certificateFile: String?

    public init(
        issuer: String, scopes: [String], redirectURI: String?, authentication: String?, responseMode: String?,
        certificateFile: String?
    ) {
        self.issuer = issuer
        self.scopes = scopes
        self.redirectURI = redirectURI
        self.authentication = authentication
        self.responseMode = responseMode
        self.certificateFile = certificateFile
    }
}

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

    public init(_ error: HTTPClientError) {
        switch error {
        case .unreachable(let host, let reason, let proxy):
            self = .provider(.unreachable(host: host, reason: .stated(reason), proxy: proxy))
        case .timedOut(let host):
            self = .provider(.unreachable(host: host, reason: .stated("no response within the time allowed")))
        case .untrusted(let host, let reason):
            self = .provider(.untrusted(host: host, reason: .stated(reason)))
        case .wrongScheme(let host, let speaksTLS):
            self = .provider(.wrongScheme(host: host, speaksTLS: speaksTLS))
        case .tooLarge(let host):
            self = .provider(.invalidResponse(.stated("The response of \(host) is too large.")))
        case .malformed(let host):
            self = .provider(.invalidResponse(.stated("The response of \(host) is not valid HTTP.")))
        case .refusedURL: self = .misconfigured(.endpointNotAllowed)
        case .cancelled: self = .cancelled
        }
    }
}

extension WebURL {
    public static func origin(of endpoint: String) throws(BrokerError) -> String {
        guard let url = try? WebURL(parsing: endpoint) else {
            throw .misconfigured(.stated("An endpoint of the provider is not a URL."))
        }
        return url.origin
    }
}
