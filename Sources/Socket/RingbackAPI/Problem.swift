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
    /// A sentence for the user, where there is something to show.
    public var userMessage: String?
    /// Seconds.
    public var retryAfter: Int?
    /// Members of certain codes: `errors`, `provider_code`, `provider_message`.
    public var extensions: JSONObject

    /// A problem of a code in ``ErrorCode/table``.
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

    /// The document.
    public var json: JSON {
        var object = JSONObject([
            .init("title", .string(title)), .init("status", .integer(status)), .init("code", .string(code.rawValue)),
        ])
        if let detail { object["detail"] = .string(detail) }
        object["recovery"] = .string(recovery)
        if let userMessage { object["user_message"] = .string(userMessage) }
        if let retryAfter { object["retry_after"] = .integer(retryAfter) }
        object.members += extensions.members
        return .object(object)
    }
}

/// What is wrong: `cause` of a problem document, of a check of the diagnostics, and of a mistake in the configuration.
/// Programs that advise their user go by it. The raw values are the words of the wire.
public enum ProblemCause: String, Sendable, CaseIterable {
    // MARK: The way to a provider, and the provider

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

    // MARK: Configuration

    /// A setting is wrong; `setting` names it, where there is one.
    case configuration
    /// A call has made an exposed socket of the table's name; `socket` names it.
    case nameTaken = "name_taken"
    case callbackIsPasted = "callback_is_pasted"
    case schemeNotReserved = "scheme_not_reserved"
    case portTaken = "port_taken"

    // MARK: Paths: `path` has the rights of other users that it must not have

    case writableByOthers = "writable_by_others"
    case readableByOthers = "readable_by_others"
    case openToOthers = "open_to_others"
    case foreignOwner = "foreign_owner"

    // MARK: Sessions and the vault

    case signInPending = "sign_in_pending"
    case migrationPending = "migration_pending"
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

    // MARK: The daemon

    case notExposed = "not_exposed"
    case fileNotKept = "file_not_kept"
    case peersUnproved = "peers_unproved"
    case shuttingDown = "shutting_down"
}

/// What went wrong, as it is sent on the wire. Open: a newer daemon may send codes that are unknown here.
public struct ErrorCode: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public init(stringLiteral value: String) { rawValue = value }

    public static let invalidRequest: ErrorCode = "invalid_request"
    public static let invalidCallback: ErrorCode = "invalid_callback"
    public static let validationFailed: ErrorCode = "validation_failed"
    public static let weakPassword: ErrorCode = "weak_password"
    public static let methodUnsupported: ErrorCode = "method_unsupported"
    public static let invalidConfiguration: ErrorCode = "invalid_configuration"
    public static let signInRequired: ErrorCode = "sign_in_required"
    public static let sessionExpired: ErrorCode = "session_expired"
    public static let refreshRefused: ErrorCode = "refresh_refused"
    public static let invalidCredentials: ErrorCode = "invalid_credentials"
    public static let accessDenied: ErrorCode = "access_denied"
    public static let policyDenied: ErrorCode = "policy_denied"
    public static let notFound: ErrorCode = "not_found"
    public static let accountNotFound: ErrorCode = "account_not_found"
    public static let flowNotFound: ErrorCode = "flow_not_found"
    public static let userNotFound: ErrorCode = "user_not_found"
    public static let methodNotAllowed: ErrorCode = "method_not_allowed"
    public static let payloadTooLarge: ErrorCode = "payload_too_large"
    public static let unsupportedMediaType: ErrorCode = "unsupported_media_type"
    public static let stateConflict: ErrorCode = "state_conflict"
    public static let vaultNotShared: ErrorCode = "vault_not_shared"
    public static let emailAlreadyInUse: ErrorCode = "email_already_in_use"
    public static let portInUse: ErrorCode = "port_in_use"
    public static let flowExpired: ErrorCode = "flow_expired"
    public static let flowCancelled: ErrorCode = "flow_cancelled"
    public static let providerError: ErrorCode = "provider_error"
    public static let passwordResetFailed: ErrorCode = "password_reset_failed"
    public static let vaultLocked: ErrorCode = "vault_locked"
    public static let rateLimited: ErrorCode = "rate_limited"
    public static let internalError: ErrorCode = "internal_error"
    public static let invalidProviderResponse: ErrorCode = "invalid_provider_response"
    public static let providerUnreachable: ErrorCode = "provider_unreachable"
    public static let vaultUnreachable: ErrorCode = "vault_unreachable"
    public static let shuttingDown: ErrorCode = "shutting_down"
    public static let timeout: ErrorCode = "timeout"

    /// A row of the table: the HTTP status and title of a code, and what the caller can do.
    public struct Meaning: Sendable {
        public let status: Int
        public let title: String
        public let recovery: Recovery
    }

    /// Every code that this version sends, with its meaning. A test compares the OpenAPI document with this table.
    public static let table: [ErrorCode: Meaning] = [
        .invalidRequest: .init(status: 400, title: "The request is not valid", recovery: .none),
        .invalidCallback: .init(status: 400, title: "This is not a callback of a pending sign-in", recovery: .signIn),
        .validationFailed: .init(status: 400, title: "A field is not valid", recovery: .none),
        .weakPassword: .init(status: 400, title: "The password is too weak", recovery: .none),
        .methodUnsupported: .init(
            status: 400, title: "The account has no such sign-in method", recovery: .fixConfiguration),
        .invalidConfiguration: .init(
            status: 400, title: "The configuration has mistakes", recovery: .fixConfiguration),
        .signInRequired: .init(status: 401, title: "The account is not signed in", recovery: .signIn),
        .sessionExpired: .init(status: 401, title: "The provider ended the session", recovery: .signIn),
        .refreshRefused: .init(status: 401, title: "The provider refuses to renew the session", recovery: .signIn),
        .invalidCredentials: .init(status: 401, title: "The credentials are wrong", recovery: .none),
        .accessDenied: .init(status: 403, title: "The sign-in was refused at the provider", recovery: .none),
        .policyDenied: .init(status: 403, title: "The policy does not allow this", recovery: .none),
        .notFound: .init(status: 404, title: "There is nothing at this address", recovery: .none),
        .accountNotFound: .init(status: 404, title: "There is no such account", recovery: .fixConfiguration),
        .flowNotFound: .init(status: 404, title: "There is no such flow", recovery: .signIn),
        .userNotFound: .init(status: 404, title: "There is no such user", recovery: .signIn),
        .methodNotAllowed: .init(status: 405, title: "The address has no such method", recovery: .none),
        .payloadTooLarge: .init(status: 413, title: "The body is too large", recovery: .none),
        .unsupportedMediaType: .init(status: 415, title: "The body must be JSON", recovery: .none),
        .stateConflict: .init(status: 409, title: "The account's state does not allow this", recovery: .none),
        .vaultNotShared: .init(status: 409, title: "The vault is not shared", recovery: .fixConfiguration),
        .emailAlreadyInUse: .init(status: 409, title: "The address is in use", recovery: .signIn),
        .portInUse: .init(status: 409, title: "The callback's port is in use", recovery: .retry),
        .flowExpired: .init(status: 410, title: "The sign-in has ended", recovery: .signIn),
        .flowCancelled: .init(status: 410, title: "The sign-in was cancelled", recovery: .signIn),
        .providerError: .init(status: 422, title: "The provider refused", recovery: .none),
        .passwordResetFailed: .init(status: 422, title: "The password was not changed", recovery: .none),
        // The program cannot fix this: the user unlocks the vault, and the same call succeeds.
        .vaultLocked: .init(status: 423, title: "The vault is locked", recovery: .retry),
        .rateLimited: .init(status: 429, title: "Too early: wait before the next attempt", recovery: .retry),
        .internalError: .init(status: 500, title: "Ringback made a mistake", recovery: .retry),
        .invalidProviderResponse: .init(status: 502, title: "The provider's response is not valid", recovery: .retry),
        .providerUnreachable: .init(status: 503, title: "The provider cannot be reached", recovery: .retry),
        .vaultUnreachable: .init(status: 503, title: "The shared vault cannot be used now", recovery: .retry),
        .shuttingDown: .init(status: 503, title: "The daemon is shutting down", recovery: .retry),
        .timeout: .init(status: 504, title: "The time allowed has passed", recovery: .retry),
    ]
}

/// What the caller can do about a problem.
public enum Recovery: String, Sendable {
    case retry
    case signIn = "sign_in"
    case link
    case fixConfiguration = "fix_configuration"
    case none
}
