public import SessionVault

/// Everything that can go wrong inside the broker, in its own words. The socket API maps it once to a problem document.
/// Holds names, hosts, statuses and checked codes; never a token, a URL or a body.
public indirect enum BrokerError: Error, Sendable, Equatable {
    case accountNotFound(String)
    case flowNotFound
    /// The vault holds nothing of the kind; the sentence says what.
    case nothingHeld(String)
    /// There is no session.
    case signInRequired(AccountName)
    /// There is a session, but it has run out, and the provider gave nothing to renew it with; the sentence says how
    /// to get that.
    case sessionRanOut(AccountName, advice: String?)
    /// There was a session, and the provider ended it; the word is its own for why.
    case sessionExpired(AccountName, word: String? = nil)
    /// The provider refuses every refresh without a readable error. The session is kept and tried again; a sign-in
    /// replaces it.
    case refreshRefused(AccountName, host: String, status: Int)
    /// The person said no at the provider.
    case accessDenied(AccountName)
    /// The state of the account does not allow this; the sentence says why.
    case conflict(String, cause: ConflictCause? = nil)
    case invalid(field: String, reason: String)
    /// `method` is the sign-in method that the provider does not offer, where it is that.
    case methodUnsupported(String, method: String? = nil)
    /// The redirect's port cannot be had.
    case portInUse(Int, reason: String)
    /// No address that a browser may be started with can be had.
    case entranceUnavailable(port: Int, reason: String)
    /// Not a callback of a pending flow; the sentence says why.
    case invalidCallback(String)
    /// A callback of a flow that has ended.
    case flowEnded
    /// The person did not finish in time; the sentence says what was awaited.
    case flowExpired(String)
    /// The flow was cancelled, or its account changed.
    case flowCancelled(String)
    case provider(ProviderFailure)
    /// The provider's no to a service: nobody can sign in in its place; its words checked.
    case serviceRefused(AccountName, code: String, message: String?)
    /// The provider's refusal as its own kind has read it: with what is to be made of it.
    case problem(ProviderProblem)
    /// A message of a flow was sent a moment ago, by our own bound; seconds until another may be.
    case resendTooEarly(retryAfter: Int)
    /// The vault has no key now; the sentence says why.
    case vaultLocked(String, obstacle: VaultObstacle? = nil)
    case wrongPassphrase
    /// Too many wrong passphrases; seconds until the next may be tried.
    case tooManyAttempts(retryAfter: Int)
    case vaultFailed(String)
    case misconfigured(String)
    /// What a setting of the account names cannot be used.
    case unusableSetting(UnusableSetting)
    /// The caller's own bound passed.
    case timedOut
    /// The caller went away, or the daemon is going.
    case cancelled
}

/// Why something is not allowed now, for programs that advise the user.
public enum ConflictCause: Sendable, Equatable {
    /// Another sign-in of the account is pending.
    case signInPending(AccountName)
    /// The account's user has data that an app is to move first.
    case migrationPending(AccountName)
    case vault(VaultObstacle)
    /// A directory for sockets is open to others.
    case openToOthers(path: String)
}

/// A setting that was good when it was read, and names what cannot be used now.
public struct UnusableSetting: Sendable, Equatable {
    /// A sentence, with the place where there is one.
    public var reason: String
    /// The key, such as `client_secret_file`.
    public var setting: String
    /// Where it stands.
    public var file: String?
    public var line: Int?
    /// The name of the credential that the daemon is given at its start.
    public var credential: String?
    /// What is wrong with ``path``, as a word of the socket API; nil if the sentence says everything.
    public var cause: String?
    /// The file or directory that the setting names, or one above it.
    public var path: String?
    /// Of a client secret that the provider gave: it ended, and there is no other one.
    public var hasExpired = false

    public init(_ reason: String, setting: String, file: String? = nil, line: Int? = nil, credential: String? = nil) {
        self.reason = reason
        self.setting = setting
        self.file = file
        self.line = line
        self.credential = credential
    }
}

/// Why the provider's answer could not be had or used.
public enum ProviderFailure: Sendable, Equatable {
    /// No connection, no trust, no answer in time, or a 5xx: `reason` is our own sentence.
    case unreachable(host: String, reason: String)
    /// 429, or a 503 that says when; seconds.
    case rateLimited(retryAfter: Int?)
    /// A 5xx; seconds, where the provider says.
    case unavailable(status: Int, retryAfter: Int?)
    /// A 5xx with the provider's own words for it, checked; seconds, where the provider says.
    case failing(status: Int, code: String, message: String?, retryAfter: Int?)
    /// Its certificate is not believed: `reason` is our own sentence.
    case untrusted(host: String, reason: String)
    /// The answer broke its format or its promises.
    case invalidResponse(String)
    /// A refresh was refused (4xx) without a readable error.
    case unexplained(host: String, status: Int)
    /// A checked response to a refresh is of another user or another session; the sentence says which.
    case otherSession(String)
    /// Whose an access token is could not be told: it is not served until that can be.
    case unproved(host: String)
    /// The provider's no, its words checked.
    case refused(code: String, message: String?)
}

extension BrokerError {
    /// True if the same request may succeed later without anybody doing anything.
    public var isTransient: Bool {
        switch self {
        case .provider(.refused): false
        case .provider: true
        case .problem(let problem): problem.isTrouble
        default: false
        }
    }

    /// True if there was no connection with the provider: another network may bring one.
    var isOfNetwork: Bool {
        switch self {
        // The page of a captive portal comes with a certificate of its own.
        case .provider(.unreachable), .provider(.untrusted): true
        default: false
        }
    }

    /// When the provider said to come back, in seconds.
    public var retryAfter: Int? {
        switch self {
        case .provider(.rateLimited(let seconds)), .provider(.unavailable(_, let seconds)),
            .provider(.failing(_, _, _, let seconds)):
            seconds
        case .problem(let problem): problem.retryAfter
        case .resendTooEarly(let seconds): seconds
        default: nil
        }
    }
}

extension BrokerError {
    /// `invalid_grant` is the only proof (RFC 6749 section 5.2); everything else may pass.
    public var provesDeadGrant: Bool {
        if case .provider(.refused("invalid_grant", _)) = self { true } else { false }
    }

    /// The provider said no in its own words, before it did anything.
    public var provesUnchanged: Bool {
        switch self {
        case .provider(.refused), .provider(.rateLimited): true
        default: false
        }
    }

    /// The provider's own no, which it will repeat. One that asks to wait is none.
    var refusesRevocation: Bool {
        switch self {
        case .provider(.refused): true
        case .problem(let problem): !problem.isRateLimit && !problem.isTrouble
        default: false
        }
    }

    /// False for a mistake in the request, and for what says nothing of the sign-in: a lock, a caller who left.
    var refusesSignIn: Bool {
        switch self {
        case .problem(let problem): !problem.isMistake
        case .accessDenied, .conflict, .flowEnded, .flowExpired, .invalidCallback, .misconfigured, .portInUse,
            .provider, .refreshRefused, .serviceRefused, .sessionExpired, .unusableSetting, .vaultFailed:
            true
        case .accountNotFound, .cancelled, .entranceUnavailable, .flowCancelled, .flowNotFound, .invalid,
            .methodUnsupported, .nothingHeld,
            .resendTooEarly, .sessionRanOut, .signInRequired, .timedOut, .tooManyAttempts, .vaultLocked,
            .wrongPassphrase:
            false
        }
    }
}
