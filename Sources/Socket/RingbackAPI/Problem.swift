public import RingbackBase

/// A problem document (RFC 9457), as the socket API sends it and as a client reads it.
public struct Problem: Error, Sendable, Equatable {
    public var code: ErrorCode
    public var status: Int
    public var title: String
    /// What failed, which account, and the next step.
    public var detail: String?
    /// The raw value: a newer daemon may send one that is unknown here.
    public var recovery: String
    public var userMessage: String?
    /// Seconds.
    public var retryAfter: Int?
    /// Members of certain codes: `errors`, `provider_code`, `provider_message`.
    public var extensions: JSONObject

    public init(
        _ code: ErrorCode, _ detail: String? = nil, recovery: Recovery? = nil, userMessage: String? = nil,
        retryAfter: Int? = nil, extensions: JSONObject = JSONObject()
    ) {
        let meaning = ErrorCode.table[code]
        self.code = code
        self.status = meaning?.status ?? 500
        self.title = meaning?.title ?? code.rawValue
        self.detail = detail
        self.recovery = (recovery ?? meaning?.recovery ?? .none).rawValue
        self.userMessage = userMessage
        self.retryAfter = retryAfter
        self.extensions = extensions
    }

    /// Reads a document leniently: only an object is required. A missing code is derived from `status`.
    public init(reading document: JSON, status: Int) {
        let object = document.object ?? JSONObject()
        self.code = ErrorCode(rawValue: object["code"]?.string ?? "http_\(status)")
        self.status = object["status"]?.integer ?? status
        self.title = object["title"]?.string ?? "HTTP status \(status)"
        self.detail = object["detail"]?.string
        self.recovery = object["recovery"]?.string ?? Recovery.none.rawValue
        self.userMessage = object["user_message"]?.string
        self.retryAfter = object["retry_after"]?.integer
        let known: Set = ["code", "status", "title", "detail", "recovery", "user_message", "retry_after", "type"]
        self.extensions = JSONObject(object.members.filter { !known.contains($0.name) })
    }

    public var json: JSON {
        let members: JSONObject = [
            "title": title, "status": status, "code": code.rawValue, "detail": detail, "recovery": recovery,
            "user_message": userMessage, "retry_after": retryAfter,
        ]
        return .object(JSONObject(members.members + extensions.members))
    }
}

/// What is wrong: `cause` of a problem document, of a check, and of a mistake in the configuration.
public enum ProblemCause: String, Sendable, CaseIterable {
    case unreachable
    /// The proxy opened no tunnel to the provider.
    case proxyFailed = "proxy_failed"
    /// The server's certificate is not trusted.
    case untrusted
    /// The server speaks TLS and the URL is an http URL, or the other way round.
    case wrongScheme = "wrong_scheme"
    case badResponse = "bad_response"
    case clientRefused = "client_refused"
    /// The provider registers clients that ask for it: nothing is wrong.
    case registrationOffered = "registration_offered"
    case clockDiffers = "clock_differs"

    /// A setting is wrong; `setting` names it, where there is one.
    case configuration
    /// A call has made an exposed socket of the table's name; `socket` names it.
    case nameTaken = "name_taken"
    case callbackIsPasted = "callback_is_pasted"
    case schemeNotReserved = "scheme_not_reserved"
    case portTaken = "port_taken"

    // `path` has the rights of other users that it must not have.
    case writableByOthers = "writable_by_others"
    case readableByOthers = "readable_by_others"
    case openToOthers = "open_to_others"
    case foreignOwner = "foreign_owner"

    case signInPending = "sign_in_pending"
    case migrationPending = "migration_pending"
    /// The account's token is bound to a key, and what was asked for gives no proof with it.
    case tokenBound = "token_bound"
    case sessionStale = "session_stale"
    case signInNeeded = "sign_in_needed"
    case vaultLocked = "vault_locked"
    /// The vault's key is kept by another source than the configured one.
    case keySourceDiffers = "key_source_differs"
    case vaultInMemory = "vault_in_memory"
    /// This host has not joined those that share the vault.
    case notJoined = "not_joined"
    /// Another host must give the key of the shared vault to this one.
    case noHostsKey = "no_hosts_key"

    case notExposed = "not_exposed"
    case fileNotKept = "file_not_kept"
    case peersUnproved = "peers_unproved"
    /// No program that shows the page could be started.
    case browserNotStarted = "browser_not_started"
    case shuttingDown = "shutting_down"
}

/// What went wrong, as it is sent on the wire. Open: a newer daemon may send codes that are unknown here.
public struct ErrorCode: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    public struct Meaning: Sendable {
        public let status: Int
        public let title: String
        public let recovery: Recovery
    }

    public let rawValue: String
    /// Nil for a code that is not a constant below.
    private let meaning: Meaning?
    public init(rawValue: String) { (self.rawValue, meaning) = (rawValue, nil) }
    public init(stringLiteral value: String) { self.init(rawValue: value) }

    private init(_ rawValue: String, _ status: Int, _ title: String, _ recovery: Recovery = .none) {
        (self.rawValue, meaning) = (rawValue, Meaning(status: status, title: title, recovery: recovery))
    }

    public static let invalidRequest = ErrorCode("invalid_request", 400, "The request is not valid")
    public static let invalidCallback = ErrorCode(
        "invalid_callback", 400, "This is not a callback of a pending sign-in", .signIn)
    public static let validationFailed = ErrorCode("validation_failed", 400, "A field is not valid")
    public static let weakPassword = ErrorCode("weak_password", 400, "The password is too weak")
    public static let methodUnsupported = ErrorCode(
        "method_unsupported", 400, "The account has no such sign-in method", .fixConfiguration)
    public static let invalidConfiguration = ErrorCode(
        "invalid_configuration", 400, "The configuration has mistakes", .fixConfiguration)
    public static let signInRequired = ErrorCode("sign_in_required", 401, "The account is not signed in", .signIn)
    public static let sessionExpired = ErrorCode("session_expired", 401, "The provider ended the session", .signIn)
    public static let refreshRefused = ErrorCode(
        "refresh_refused", 401, "The provider refuses to renew the session", .signIn)
    public static let invalidCredentials = ErrorCode("invalid_credentials", 401, "The credentials are wrong")
    public static let accessDenied = ErrorCode("access_denied", 403, "The sign-in was refused at the provider")
    public static let policyDenied = ErrorCode("policy_denied", 403, "The policy does not allow this")
    public static let consentRequired = ErrorCode("consent_required", 403, "The user has to consent first")
    public static let consentTimeout = ErrorCode("consent_timeout", 403, "The user has not answered in time", .retry)
    public static let notFound = ErrorCode("not_found", 404, "There is nothing at this address")
    public static let accountNotFound = ErrorCode(
        "account_not_found", 404, "There is no such account", .fixConfiguration)
    public static let flowNotFound = ErrorCode("flow_not_found", 404, "There is no such flow", .signIn)
    public static let userNotFound = ErrorCode("user_not_found", 404, "There is no such user", .signIn)
    public static let methodNotAllowed = ErrorCode("method_not_allowed", 405, "The address has no such method")
    public static let payloadTooLarge = ErrorCode("payload_too_large", 413, "The body is too large")
    public static let unsupportedMediaType = ErrorCode("unsupported_media_type", 415, "The body must be JSON")
    public static let stateConflict = ErrorCode("state_conflict", 409, "The account's state does not allow this")
    public static let vaultNotShared = ErrorCode("vault_not_shared", 409, "The vault is not shared", .fixConfiguration)
    public static let emailAlreadyInUse = ErrorCode("email_already_in_use", 409, "The address is in use", .signIn)
    public static let portInUse = ErrorCode("port_in_use", 409, "The callback's port is in use", .retry)
    public static let flowExpired = ErrorCode("flow_expired", 410, "The sign-in has ended", .signIn)
    public static let flowCancelled = ErrorCode("flow_cancelled", 410, "The sign-in was cancelled", .signIn)
    public static let providerError = ErrorCode("provider_error", 422, "The provider refused")
    public static let passwordResetFailed = ErrorCode("password_reset_failed", 422, "The password was not changed")
    // The program cannot fix this: the user unlocks the vault, and the same call succeeds.
    public static let vaultLocked = ErrorCode("vault_locked", 423, "The vault is locked", .retry)
    public static let rateLimited = ErrorCode("rate_limited", 429, "Too early: wait before the next attempt", .retry)
    public static let internalError = ErrorCode("internal_error", 500, "Ringback made a mistake", .retry)
    public static let invalidProviderResponse = ErrorCode(
        "invalid_provider_response", 502, "The provider's response is not valid", .retry)
    public static let providerUnreachable = ErrorCode(
        "provider_unreachable", 503, "The provider cannot be reached", .retry)
    public static let vaultUnreachable = ErrorCode(
        "vault_unreachable", 503, "The shared vault cannot be used now", .retry)
    public static let shuttingDown = ErrorCode("shutting_down", 503, "The daemon is shutting down", .retry)
    public static let timeout = ErrorCode("timeout", 504, "The time allowed has passed", .retry)

    /// Every code that this version sends, with its meaning. A test compares the OpenAPI document with this table.
    public static let table: [ErrorCode: Meaning] = [
        invalidRequest, invalidCallback, validationFailed, weakPassword, methodUnsupported, invalidConfiguration,
        signInRequired, sessionExpired, refreshRefused, invalidCredentials, accessDenied, policyDenied, consentRequired,
        consentTimeout, notFound,
        accountNotFound, flowNotFound, userNotFound, methodNotAllowed, payloadTooLarge, unsupportedMediaType,
        stateConflict, vaultNotShared, emailAlreadyInUse, portInUse, flowExpired, flowCancelled, providerError,
        passwordResetFailed, vaultLocked, rateLimited, internalError, invalidProviderResponse, providerUnreachable,
        vaultUnreachable, shuttingDown, timeout,
    ].reduce(into: [:]) { $0[$1] = $1.meaning }

    /// Those of a sign-in that failed, which say nothing about a session that the account holds.
    public static let ofSignIns: Set<ErrorCode> = [
        invalidCallback, validationFailed, weakPassword, methodUnsupported, invalidCredentials, accessDenied,
        stateConflict, emailAlreadyInUse, portInUse, flowExpired, flowCancelled,
    ]

    public static func == (left: ErrorCode, right: ErrorCode) -> Bool { left.rawValue == right.rawValue }
    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
}

public enum Recovery: String, Sendable {
    case retry
    case signIn = "sign_in"
    case link
    case fixConfiguration = "fix_configuration"
    case none
}
