internal import OAuth
internal import RingbackBase

/// Why a project's response cannot be used. Contains statuses and checked texts, never a body, URL or token.
public enum SupabaseError: Error, Sendable, Equatable {
    /// An error response of the project, in any of its forms.
    case refused(ErrorResponse)
    /// Status 408, 425, 5xx, or an error of the gateway: the request may succeed later. `retryAfter` in seconds.
    case unavailable(status: Int, retryAfter: Int?)
    /// Not a response of a Supabase project: a web page, a redirect, a malformed or missing body. The reason is ours.
    case invalid(reason: String)
    /// The URL or the key does not belong to a running project. The reason is ours.
    case misconfigured(reason: String)

    public struct ErrorResponse: Error, Sendable, Equatable {
        /// One of ``SupabaseCode/all``, another code of the server, or `unknown`.
        public let code: String
        /// The HTTP status; 0 for an error in a callback.
        public let status: Int
        /// The message of the server, a hook or a trigger, in any language.
        public let message: String?
        /// Why a password is too weak: `length`, `characters`, `pwned`.
        public let weaknesses: [String]
        /// Seconds, from a header or the message.
        public let retryAfter: Int?
        /// SQLSTATE (five characters) or a code of PostgREST, if the database has rejected the request.
        public let databaseCode: String?

        public init(
            code: String, status: Int, message: String? = nil, weaknesses: [String] = [], retryAfter: Int? = nil,
            databaseCode: String? = nil
        ) {
            self.code = code
            self.status = status
            self.message = message
            self.weaknesses = weaknesses
            self.retryAfter = retryAfter
            self.databaseCode = databaseCode
        }
    }

    /// The response is about another user than the session.
    public static let ofOtherUser = SupabaseError.invalid(reason: "another user than the session's")

    public var code: String? {
        if case .refused(let errorResponse) = self { errorResponse.code } else { nil }
    }

    /// Until the request may be repeated, in seconds.
    public var retryAfter: Int? {
        switch self {
        case .refused(let errorResponse): errorResponse.retryAfter
        case .unavailable(_, let seconds): seconds
        case .invalid, .misconfigured: nil
        }
    }

    public var isTransient: Bool {
        switch self {
        case .unavailable, .invalid: true
        case .refused(let errorResponse): [409, 429].contains(errorResponse.status) || errorResponse.status >= 500
        case .misconfigured: false
        }
    }
}

extension SupabaseError.ErrorResponse {
    /// True if the access token was not accepted, expired or forged: refresh once and repeat the request. PostgREST has
    /// its own codes for this.
    public var asksForRefresh: Bool {
        let isOfTables = databaseCode.map { ["PGRST301", "PGRST303"].contains($0) } ?? false
        return (code == "bad_jwt" || isOfTables) && (status == 401 || status == 403)
    }

    /// True if a request with an access token showed that the session has ended.
    public var endsSession: Bool {
        ["session_not_found", "session_expired"].contains(code) && (400..<500).contains(status)
    }
}

/// What the error of a refresh means for the session.
public enum RefreshVerdict: Sendable, Equatable {
    /// Why a session has ended.
    public enum Cause: String, Sendable {
        /// The server does not know the refresh token or has ended the session.
        case ended
        /// The user is banned or was deleted.
        case userGone
    }

    /// The error proves that the session has ended: delete it.
    case dead(Cause)
    /// The refresh token was used before. Read the vault again and try a newer token once, if there is one; else delete
    /// the session.
    case reused
    /// The error does not prove that the session has ended: keep it and try again, after `retryAfter` seconds if given.
    case transient(retryAfter: Int?)
    /// Keep the session and tell the user: the URL or key is wrong, or the project is paused.
    case misconfigured

    public init(_ error: SupabaseError) {
        switch error {
        case .unavailable(_, let seconds): self = .transient(retryAfter: seconds)
        case .invalid: self = .transient(retryAfter: nil)
        case .misconfigured: self = .misconfigured
        case .refused(let errorResponse):
            // These statuses mean that the request may succeed later. The session may be valid, whatever the body says.
            guard (400..<500).contains(errorResponse.status), ![408, 409, 425, 429].contains(errorResponse.status)
            else {
                self = .transient(retryAfter: errorResponse.retryAfter)
                return
            }
            switch errorResponse.code {
            case "refresh_token_not_found", "session_not_found", "session_expired", "validation_failed",
                "invalid_client", "invalid_grant":
                self = .dead(.ended)
            case "user_banned", "user_not_found": self = .dead(.userGone)
            case "refresh_token_already_used": self = .reused
            // Other codes may come from hooks, so they do not prove that the session has ended.
            default: self = .transient(retryAfter: errorResponse.retryAfter)
            }
        }
    }
}

/// The first step for every response. Errors come from the Auth server, its hooks, the database, the gateway and
/// proxies, each in their own form. The member `code` is a number in the old form, an error code in the new form, and a
/// database code from the database; the ID token grant sends only `error`. The error code is taken from `code` if the
/// response has the API version or the code is known; else from `error_code`, then the header field with the same
/// content, then `error`.
enum ErrorReading {
    static func success(_ response: HTTPResponse) throws(SupabaseError) {
        guard (200..<300).contains(response.status) else { throw error(response) }
        // A truncated response may have lost content that changes its meaning.
        guard !response.isTruncated else { throw .invalid(reason: "the response was truncated") }
    }

    static func json(_ response: HTTPResponse) throws(SupabaseError) -> JSON {
        try success(response)
        guard !response.body.isEmpty else { throw .invalid(reason: "an empty response (HTTP \(response.status))") }
        do {
            return try JSON(parsing: UnicodeText.utf8(response.body.revealedBytes()))
        } catch {
            throw .invalid(reason: "\(shape(of: response)) (HTTP \(response.status))")
        }
    }

    static func object(_ response: HTTPResponse) throws(SupabaseError) -> JSONObject {
        guard let object = try json(response).object else {
            throw .invalid(reason: "JSON, but not an object (HTTP \(response.status))")
        }
        return object
    }

    static func error(_ response: HTTPResponse) -> SupabaseError {
        let status = response.status
        if (300..<400).contains(status) {
            // Following a redirect could send tokens to a host that is not configured.
            return .invalid(reason: "a redirect, which is not followed (HTTP \(status))")
        }
        guard !response.isTruncated,
            let object = try? JSON(parsing: UnicodeText.utf8(response.body.revealedBytes())).object,
            let errorResponse = errorResponse(object, response)
        else { return withoutShape(response) }
        return .refused(errorResponse)
    }

    /// The error response of an Edge Function, or of the relay in front of it, or the `problem` of a result. A function
    /// chooses its status and its codes itself, so none of them says anything of the session or of the project, and none
    /// is a reason to call it again.
    static func functionError(_ response: HTTPResponse, _ problem: String? = nil) -> SupabaseError {
        let text = UnicodeText.utf8(response.body.revealedBytes())
        let object = (try? JSON(parsing: text))?.object
        let plain = mediaType(of: response) == "text/plain" ? String(decoding: text, as: UTF8.self) : nil
        let message = problem ?? PlainText.message(object.flatMap(statedText) ?? plain)
        return .refused(
            SupabaseError.ErrorResponse(
                code: "function_error", status: response.status,
                message: "HTTP \(response.status)" + (message.map { ": \($0)" } ?? ""),
                retryAfter: RetryAfter.seconds(in: response.fields)))
    }

    static func isOfRelay(_ response: HTTPResponse) -> Bool { response.fields["x-relay-error"] == "true" }

    /// In lower case, without parameters; nil if there is none.
    static func mediaType(of response: HTTPResponse) -> String? {
        let type = response.fields["Content-Type"]?.lowercased().prefix { !";, \t".contains($0) }
        return PlainText.message(type.map { String($0) })
    }

    private static func statedText(in object: JSONObject) -> String? {
        let texts = [object["msg"], object["message"], object["error_description"], object["error"]]
        return texts.compactMap { $0?.string }.first { !$0.isEmpty }
    }

    /// Nil if the body has the form of neither the Auth server nor the database.
    private static func errorResponse(_ object: JSONObject, _ response: HTTPResponse) -> SupabaseError.ErrorResponse? {
        let message = PlainText.message(statedText(in: object))
        let database = databaseCode(object, response)
        guard let code = code(object, response) ?? (database == nil ? nil : "database_error") else { return nil }
        let weaknesses = object["weak_password"]?["reasons"]?.array?.compactMap { PlainText.code($0.string) } ?? []
        return SupabaseError.ErrorResponse(
            code: weaknesses.isEmpty ? code : "weak_password", status: response.status, message: message,
            weaknesses: weaknesses, retryAfter: retryAfter(response, message), databaseCode: database)
    }

    private static func code(_ object: JSONObject, _ response: HTTPResponse) -> String? {
        if let code = object["code"]?.string, isVersioned(response) || SupabaseCode.all.contains(code) {
            return PlainText.code(code)
        }
        // `error` without `error_code` always has status 400. The gateway also sends an `error`, with other statuses.
        let error = response.status == 400 ? object["error"]?.string : nil
        let words = [object["error_code"]?.string, response.fields["x-sb-error-code"], error]
        if let code = words.lazy.compactMap(PlainText.code).first { return code }
        // An auth hook's error in the old form: the status as `code`, and the hook's message.
        return object["code"]?.integer != nil && object["msg"] != nil ? "unknown" : nil
    }

    /// The server repeats the version only in error responses.
    private static func isVersioned(_ response: HTTPResponse) -> Bool {
        guard let version = response.fields["X-Supabase-Api-Version"], version.utf8.count == 10 else { return false }
        return version >= SupabaseProject.apiVersion
    }

    /// The database's code in the form of PostgREST: SQLSTATE (five characters) or `PGRST…`.
    private static func databaseCode(_ object: JSONObject, _ response: HTTPResponse) -> String? {
        guard !isVersioned(response), let code = object["code"]?.string, object["message"] != nil else { return nil }
        let isWord = code.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
        return isWord && (code.utf8.count == 5 || (code.hasPrefix("PGRST") && code.utf8.count <= 10)) ? code : nil
    }

    /// Seconds from `Retry-After`, or from the message ("you can only request this after 59 seconds.").
    private static func retryAfter(_ response: HTTPResponse, _ message: String?) -> Int? {
        if let seconds = RetryAfter.seconds(in: response.fields) { return seconds }
        guard response.status == 429, let words = message?.split(separator: " ") else { return nil }
        for (number, unit) in zip(words, words.dropFirst()) where unit.hasPrefix("second") {
            guard number.utf8.count <= 6, number.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { continue }
            // The server rounds down.
            return Int(number).map { min(max($0, 1), RetryAfter.longest) }
        }
        return nil
    }

    /// Responses of the gateway, a proxy or a captive portal.
    private static func withoutShape(_ response: HTTPResponse) -> SupabaseError {
        let status = response.status
        let retryAfter = RetryAfter.seconds(in: response.fields)
        switch status {
        case 429: return .refused(.init(code: "over_request_rate_limit", status: 429, retryAfter: retryAfter))
        case 540: return .misconfigured(reason: "The project is paused (HTTP 540).")
        case 408, 425, 500...: return .unavailable(status: status, retryAfter: retryAfter)
        case 401: return .misconfigured(reason: "The gateway does not accept the project's api_key (HTTP 401).")
        case 403 where gatewaySays("api key", response):
            return .misconfigured(reason: "The gateway does not accept the project's api_key (HTTP 403).")
        case 404, 405: return .misconfigured(reason: "There is no Auth server at the project's url (HTTP \(status)).")
        default: return .invalid(reason: "\(shape(of: response)) (HTTP \(status))")
        }
    }

    private static func gatewaySays(_ words: String, _ response: HTTPResponse) -> Bool {
        let message = (try? JSON(parsing: UnicodeText.utf8(response.body.revealedBytes())))?["message"]?.string
        return message?.lowercased().contains(words) ?? false
    }

    private static func shape(of response: HTTPResponse) -> String {
        if response.body.isEmpty { return "an empty response" }
        return mediaType(of: response) == "text/html"
            ? "a web page in place of JSON" : "not the JSON of a Supabase project"
    }
}

/// An error for the API's caller.
public struct SupabaseProblem: Sendable, Equatable {
    /// Those of the API's codes that an Auth server's response can lead to.
    public enum Code: String, Sendable, CaseIterable {
        case accessDenied = "access_denied"
        case emailAlreadyInUse = "email_already_in_use"
        case flowExpired = "flow_expired"
        case internalError = "internal_error"
        case invalidCallback = "invalid_callback"
        case invalidConfiguration = "invalid_configuration"
        case invalidCredentials = "invalid_credentials"
        case invalidProviderResponse = "invalid_provider_response"
        case methodUnsupported = "method_unsupported"
        case notFound = "not_found"
        case passwordResetFailed = "password_reset_failed"
        case payloadTooLarge = "payload_too_large"
        case providerError = "provider_error"
        case providerUnreachable = "provider_unreachable"
        case rateLimited = "rate_limited"
        case sessionExpired = "session_expired"
        case signInRequired = "sign_in_required"
        case stateConflict = "state_conflict"
        case userNotFound = "user_not_found"
        case validationFailed = "validation_failed"
        case weakPassword = "weak_password"
    }

    /// Values of the API.
    public enum Recovery: String, Sendable, CaseIterable {
        case retry
        case signIn = "sign_in"
        case link
        case fixConfiguration = "fix_configuration"
        case none
    }

    /// The kind of request, on which the meaning of an error code depends.
    public enum Occasion: Sendable {
        /// A token request, a sign-up, a message to a user who is not signed in, or the verification of a code.
        case signIn
        /// ``SupabaseProject/authorization(_:)``, in which only the provider's name can be wrong.
        case authorization
        /// An error in a callback. It concerns the link or the provider, not a typed code.
        case callback
        case refresh
        /// A request with an access token.
        case account
        /// With a credential of an authenticator. If the server rejects it, it responds with HTTP 500.
        case credential
        /// ``SupabaseProject/identityLink(_:bearer:)``, in which only the provider's name can be wrong.
        case identityPage
        /// A new password after the old one was forgotten.
        case passwordReset
    }

    public let code: Code
    public let recovery: Recovery
    public let message: UserMessage?
    /// For `provider_code`; nil if the server sent none.
    public let providerCode: String?
    /// For `provider_message`.
    public let providerMessage: String?
    public let weaknesses: [String]
    /// In seconds.
    public let retryAfter: Int?
    /// Ours, if the error was found before a request was sent.
    public let reason: String?
    /// The server said that the session has ended or its user is gone, in response to a request with its access token.
    public let endsSession: Bool
    /// True for an error response with status 5xx: the change may have been made nevertheless.
    public var isTrouble = false

    init(
        _ meaning: SupabaseCode.Meaning, providerCode: String? = nil, providerMessage: String? = nil,
        weaknesses: [String] = [], retryAfter: Int? = nil, reason: String? = nil, endsSession: Bool = false
    ) {
        self.endsSession = endsSession
        code = meaning.code
        recovery = meaning.recovery
        message = meaning.message
        self.providerCode = providerCode
        self.providerMessage = providerMessage
        self.weaknesses = weaknesses
        self.retryAfter = retryAfter
        self.reason = reason
    }

    /// A copy without the server's message, which may repeat what was sent.
    public var withoutWords: SupabaseProblem {
        var bare = SupabaseProblem(
            .init(code, recovery, message), providerCode: providerCode, weaknesses: weaknesses, retryAfter: retryAfter,
            endsSession: endsSession)
        bare.isTrouble = isTrouble
        return bare
    }

    /// With another status than 403, `user_not_found` means a user that the request searched for.
    private static func endsSession(_ errorResponse: SupabaseError.ErrorResponse) -> Bool {
        ["session_not_found", "session_expired"].contains(errorResponse.code)
            || (errorResponse.code == "user_not_found" && errorResponse.status == 403)
    }

    public init(_ error: SupabaseError, on occasion: Occasion) {
        switch error {
        case .refused(let errorResponse):
            let isTrouble =
                errorResponse.status >= 500 && errorResponse.databaseCode == nil
                && errorResponse.code != "function_error"
            self.init(
                isTrouble
                    ? SupabaseCode.trouble(errorResponse, on: occasion)
                    : SupabaseCode.meaning(of: errorResponse, on: occasion),
                providerCode: errorResponse.code, providerMessage: errorResponse.message,
                weaknesses: errorResponse.weaknesses, retryAfter: errorResponse.retryAfter,
                endsSession: !isTrouble && SupabaseProblem.endsSession(errorResponse))
            self.isTrouble = isTrouble
        case .unavailable(_, let seconds):
            self.init(.init(.providerUnreachable, .retry, .serviceDown), retryAfter: seconds)
        case .invalid:
            let isSigningIn = [.signIn, .authorization, .callback].contains(occasion)
            self.init(.init(.invalidProviderResponse, .retry, isSigningIn ? .signInFailed : nil))
        case .misconfigured: self.init(.init(.invalidConfiguration, .fixConfiguration, nil))
        }
    }

    public init(_ error: FieldError) {
        let isShort = error == PasswordRule.tooShort
        let message: UserMessage? =
            switch error.field {
            case "email": .invalidEmail
            case "phone": .invalidPhone
            case "code": .wrongCode
            case "password" where isShort: .weakPassword
            default: nil
            }
        self.init(
            .init(isShort ? .weakPassword : .validationFailed, .none, message), weaknesses: isShort ? ["length"] : [],
            reason: "\(error.field): \(error.reason)")
    }

    /// A sign-up with an address that belongs to an existing user. The server does not report this.
    public static let addressTaken = SupabaseProblem(.init(.emailAlreadyInUse, .signIn, .emailTaken))

    public static func taken(_ contact: Contact) -> SupabaseProblem {
        switch contact {
        case .email: addressTaken
        case .phone: SupabaseProblem(.init(.stateConflict, .signIn, .phoneTaken))
        }
    }
}

extension SupabaseCode {
    /// The table's entry, except for a few codes with another meaning in their context.
    static func meaning(of errorResponse: SupabaseError.ErrorResponse, on occasion: SupabaseProblem.Occasion) -> Meaning
    {
        exception(errorResponse, occasion) ?? table[errorResponse.code] ?? stranger(errorResponse)
    }

    /// The meaning of a 5xx response. If a trigger or an auth hook of the project has failed, or a credential was not
    /// accepted, the server itself is running and its message says what is wrong.
    static func trouble(_ errorResponse: SupabaseError.ErrorResponse, on occasion: SupabaseProblem.Occasion) -> Meaning
    {
        let isSaid = ["unexpected_failure", "unknown"].contains(errorResponse.code) && errorResponse.message != nil
        switch occasion {
        case .signIn where isSaid, .callback where isSaid: return Meaning(.providerError, .retry, .signInFailed)
        case .credential where isSaid, .account where isSaid, .identityPage where isSaid, .passwordReset where isSaid:
            return Meaning(.providerError, .retry)
        default: return Meaning(.providerUnreachable, .retry, .serviceDown)
        }
    }

    private static let ended = Meaning(.sessionExpired, .signIn, .sessionEnded)

    private static func exception(
        _ errorResponse: SupabaseError.ErrorResponse, _ occasion: SupabaseProblem.Occasion
    ) -> Meaning? {
        switch (occasion, errorResponse.code) {
        // The user of the access token no longer exists.
        case (.refresh, "user_not_found"), (.account, "user_not_found"): ended
        case (.refresh, "validation_failed"), (.refresh, "invalid_grant"), (.refresh, "invalid_client"): ended
        case (.authorization, "validation_failed"), (.identityPage, "validation_failed"):
            Meaning(.methodUnsupported, .fixConfiguration, .notOffered)
        case (.identityPage, _), (.credential, _): exception(errorResponse, .account)
        // The link of a mail has expired; no code was typed.
        case (.callback, "otp_expired"): Meaning(.flowExpired, .signIn, .linkExpired)
        // A provider's error without an error code. Usually the user declined, so no message is shown.
        case (.callback, "access_denied"): Meaning(.accessDenied, .none)
        // The server could not redeem the provider's code.
        case (.callback, "unexpected_failure"), (.callback, "server_error"), (.callback, "temporarily_unavailable"):
            Meaning(.providerError, .retry, .signInFailed)
        // An anonymous user is not allowed to do this.
        case (.account, "no_authorization") where errorResponse.status == 403: Meaning(.stateConflict, .none)
        // In the path.
        case (.account, "validation_failed") where errorResponse.status == 404: Meaning(.notFound, .none)
        // Adding a passkey, which is not a sign-in.
        case (.account, "webauthn_challenge_not_found"), (.account, "webauthn_challenge_expired"):
            Meaning(.flowExpired, .retry)
        case (.account, "webauthn_verification_failed"): Meaning(.invalidCredentials, .none)
        case (.passwordReset, "same_password"): Meaning(.passwordResetFailed, .none, .samePassword)
        case (.passwordReset, "reauthentication_needed"), (.passwordReset, "user_sso_managed"),
            (.passwordReset, "current_password_required"):
            table[errorResponse.code].map { Meaning(.passwordResetFailed, $0.recovery, $0.message) }
        default: nil
        }
    }

    /// Codes of a newer server, an auth hook or the database.
    private static func stranger(_ errorResponse: SupabaseError.ErrorResponse) -> Meaning {
        switch errorResponse.code {
        case "access_denied": Meaning(.accessDenied, .none)
        // The ID token grant's, for a wrong ID token or nonce.
        case "invalid nonce", "invalid request", "invalid_grant": Meaning(.invalidCredentials, .signIn, .signInFailed)
        case _ where errorResponse.status == 429: Meaning(.rateLimited, .retry, .tooManyAttempts)
        default: Meaning(.providerError, .none)
        }
    }
}
