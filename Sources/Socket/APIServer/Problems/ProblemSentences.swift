internal import BrokerCore
internal import RingbackAPI
internal import RingbackBase
internal import SessionVault
internal import SharedVault
internal import SupabaseAuth

/// The one place where the broker's failures become problem documents, with their sentences.
extension Problem {
    /// `endedSignIn`: a user was signing in. Only then is there a sentence about a response that is not valid.
    init(_ error: BrokerError, language: Language, endedSignIn: Bool = false) {
        self = Problem(error)
        userMessage = UserMessage(error, endedSignIn: endedSignIn)?.text(in: language)
    }

    private init(_ error: BrokerError) {
        switch error {
        case .accountNotFound(let name):
            let words = name.contains("://") ? "No account has the issuer \(name)." : "There is no account “\(name)”."
            self.init(.accountNotFound, words)
        case .flowNotFound: self.init(.flowNotFound, "The flow is unknown, or was forgotten 10 minutes after its end.")
        case .nothingHeld(let reason): self.init(.notFound, reason.sentence)
        case .signInRequired(let name):
            self.init(.signInRequired, "\(name) is not signed in.", extensions: ["account": name.rawValue])
        case .sessionRanOut(let name, let advice):
            let words = "The session of \(name) runs out, and the provider gave no refresh token to renew it."
            self.init(
                .signInRequired, "\(words)\(advice.map { " \($0.sentence)" } ?? "")",
                extensions: ["account": name.rawValue])
        case .sessionExpired(let name, let word, let message, let hasMoved):
            let words = message.map { ": \(Problem.clause($0))" } ?? ""
            let reason = (word.map { ": it responded with “\($0)”" } ?? "") + words
            let copy = " The vault was used on another machine: another copy of this vault may have refreshed it."
            self.init(
                .sessionExpired, "The provider ended the session of \(name)\(reason).\(hasMoved ? copy : "")",
                extensions: ["account": name.rawValue, "provider_code": word, "provider_message": message])
        case .refreshRefused(let name, let host, let refusal): self.init(refused: name, by: host, refusal)
        case .clientForgotten(let name, let host, let code, let message, let terms?):
            self.init(
                .providerError,
                "\(host) does not accept the client that was registered for \(name)"
                    + "\(Problem.quoting(code, message)). Register the client again.",
                recovery: .fixConfiguration,
                extensions: [
                    "provider_code": code, "provider_message": message, "account": name.rawValue,
                    "setting": "client_id", "registration": terms.json,
                ])
        case .clientForgotten(let name, let host, let code, let message, nil):
            self.init(
                .providerError,
                "\(host) does not know the client that was registered for \(name)\(Problem.quoting(code, message)). The "
                    + "next sign-in registers another one.",
                recovery: .signIn,
                extensions: ["provider_code": code, "provider_message": message, "account": name.rawValue])
        case .accessDenied(let name): self.init(.accessDenied, "The sign-in of \(name) was denied at the provider.")
        case .conflict(let reason, let cause):
            self.init(.stateConflict, reason.sentence, extensions: cause?.members ?? JSONObject())
        case .invalid(let field, let reason): self.init(invalid: field, reason.sentence)
        case .methodUnsupported(let reason, let method):
            self.init(.methodUnsupported, reason.sentence, extensions: ["method": method])
        case .portInUse(let failure):
            self.init(
                .portInUse, "The callback cannot be listened for: \(failure.clause).", extensions: failure.members)
        case .entranceUnavailable(let failure):
            self.init(
                .portInUse, "No address for a browser to open can be listened for: \(failure.clause).",
                extensions: failure.members)
        case .invalidCallback(let reason): self.init(.invalidCallback, reason.sentence)
        case .flowEnded:
            self.init(.flowExpired, "The sign-in of this callback has ended. Start it again if you are not signed in.")
        case .flowExpired(let reason): self.init(.flowExpired, reason.sentence)
        case .flowCancelled(let reason): self.init(.flowCancelled, reason.sentence)
        case .provider(let failure): self.init(failure)
        case .serviceRefused(let name, let code, let message): self.init(refused: name, code: code, message: message)
        case .problem(let problem): self.init(problem)
        case .resendTooEarly(let seconds):
            self.init(
                .rateLimited,
                "Ringback itself waits 60 seconds between two messages of a sign-in. The project may require a longer "
                    + "pause.",
                retryAfter: seconds)
        case .vaultLocked(let reason, let obstacle):
            self.init(.vaultLocked, reason.sentence, extensions: obstacle?.members ?? JSONObject())
        case .wrongPassphrase: self.init(.invalidCredentials, VaultError.wrongPassphrase.sentence)
        case .tooManyAttempts(let seconds):
            self.init(.rateLimited, "Too many attempts to open the vault.", retryAfter: seconds)
        case .vaultFailed(let reason):
            // The disk failed, not Ringback.
            self.init(.internalError, reason.sentence)
            title = "The vault cannot be used"
        case .vaultUnreachable(let reason, let seconds):
            self.init(
                .vaultUnreachable, "\(reason.sentence) Nothing was lost: try again.",
                retryAfter: seconds ?? error.hostWait)
        case .misconfigured(let reason): self.init(.invalidConfiguration, reason.sentence)
        case .unusableSetting(let setting):
            self.init(
                .invalidConfiguration, setting.reason.sentence,
                extensions: [
                    "setting": setting.setting, "file": setting.file, "line": setting.line,
                    "credential": setting.credential, "cause": setting.trouble?.rawValue, "path": setting.path,
                    "registration": setting.terms?.json,
                ])
        case .stepUpRequired(let name, let acrValues, let maxAge):
            let params: JSONObject = ["acr_values": acrValues, "max_age": maxAge.map(String.init)]
            self.init(
                .signInRequired,
                "\(name) has to be signed in to again: for this its provider wants a stronger or a newer sign-in.",
                extensions: ["account": name.rawValue, "params": params.members.isEmpty ? nil : params])
        case .upstream(let name, let error):
            self = Problem(error)
            detail = "The sign-in of \(name), which is needed here, failed. \(detail ?? "")"
            extensions["account"] = .string(name.rawValue)
        case .timedOut: self.init(.timeout, "It took longer than the time allowed. Nothing was lost: try again.")
        case .cancelled: self.init(.shuttingDown, "The daemon is shutting down. Try again when it is back.")
        }
    }

    init(invalid field: String, _ reason: String) {
        self.init(.validationFailed, "\(field): \(reason)", extensions: ["field": field])
    }

    private init(_ failure: ProviderFailure) {
        switch failure {
        case .unreachable(let host, let reason, let proxy):
            self.init(
                .providerUnreachable, "\(host) cannot be reached: \(reason.asSentenceEnd)",
                extensions: Problem.members(ofPlace: host, cause: proxy.map { _ in .proxyFailed }))
        case .rateLimited(let seconds):
            self.init(.rateLimited, "The provider requires a pause before the next request.", retryAfter: seconds)
        case .unavailable(let status, let seconds):
            // An authorization response reports this without an HTTP status.
            let cause = status > 0 ? " (HTTP status \(status))" : ""
            self.init(.providerUnreachable, "The provider is not available for now\(cause).", retryAfter: seconds)
        case .failing(let status, let code, let message, let seconds):
            self.init(
                .providerUnreachable,
                "The provider failed (HTTP status \(status)) and said \(Problem.said(code, message)).",
                retryAfter: seconds, extensions: ["provider_code": code, "provider_message": message])
        case .untrusted(let host, let reason):
            self.init(
                .providerUnreachable,
                "There is no trusted connection to \(host): \(reason.asSentenceEnd)",
                extensions: Problem.members(ofPlace: host, cause: .untrusted))
        case .wrongScheme(let host, let speaksTLS):
            self.init(
                .providerUnreachable, Reason.wrongScheme(host: host, speaksTLS: speaksTLS).sentence,
                extensions: Problem.members(ofPlace: host, cause: .wrongScheme))
        case .invalidResponse(let reason), .otherSession(let reason):
            self.init(.invalidProviderResponse, reason.sentence)
        case .unexplained(let host, let status, let message):
            var members = Problem.members(ofPlace: host)
            members["provider_message"] = message.map { .string($0) }
            let why = message.map { "and said: \(Problem.clause($0))" }
            self.init(
                .invalidProviderResponse,
                "\(host) refused the request (HTTP status \(status)) \(why ?? "and did not say why").",
                extensions: members)
        case .unproved(let host):
            self.init(
                .providerUnreachable,
                "The access token of \(host) is not used yet: no published key verifies it, and \(host) could not be "
                    + "asked about it (GET /user). Nothing was lost; the check is repeated.",
                extensions: Problem.members(ofPlace: host))
        case .refused(let code, let message):
            let remedy = Problem.remedy(for: code)
            let advice = remedy.map { " Look at \($0.place)." } ?? ""
            let detail = "The provider responded with \(Problem.said(code, message)).\(advice)"
            // The session may still be valid, but the provider wants the user to sign in.
            let needsUser = ["interaction_required", "login_required", "consent_required"].contains(code)
            self.init(
                .providerError, detail, recovery: needsUser ? .signIn : nil,
                extensions: ["provider_code": code, "provider_message": message, "setting": remedy?.setting])
        }
    }

    private init(refused name: AccountName, by host: String, _ refusal: RefreshRefusal) {
        let kept = "The session was not deleted, and the refresh is tried again."
        var code: String?
        var message: String?
        let detail: String
        switch refusal {
        case .unexplained(let status, let words):
            message = words
            let why = message.map { "and says: \(Problem.clause($0))" }
            detail =
                "\(host) refuses to renew the session of \(name) (HTTP status \(status)) "
                + "\(why ?? "and does not say why"). \(kept) Sign in again to replace it."
        case .answered(let word, let words):
            (code, message) = (word, words)
            detail =
                "\(host) refuses to renew the session of \(name)\(Problem.quoting(code, message)). \(kept) "
                + "Sign in again to replace it."
        case .client(let word, let words):
            (code, message) = (word, words)
            detail =
                "\(host) does not know the client that was registered for \(name)\(Problem.quoting(code, message)). "
                + "\(kept) Sign in again: that registers another client."
        case .clientSecretExpired:
            detail =
                "The client secret that \(host) issued for \(name) has expired, and it issues no new one. The session was "
                + "not deleted. Sign in again: that registers another client."
        }
        self.init(
            .refreshRefused, detail,
            extensions: ["provider_code": code, "provider_message": message, "account": name.rawValue])
    }

    private static func clause(_ text: String) -> String { text.hasSuffix(".") ? String(text.dropLast()) : text }

    private static func quoting(_ code: String?, _ message: String?) -> String {
        let said = said(code, message)
        return said.isEmpty ? "" : " (\(said))"
    }

    /// The provider's error code and text, without a period at the end; no code that only stands for a missing one.
    private static func said(_ code: String?, _ message: String?) -> String {
        let words = message.map(clause)
        let code = code == "unspecified_error" && words != nil ? nil : code
        return [code.map { "“\($0)”" }, words].compactMap { $0 }.joined(separator: ": ")
    }

    /// Host and port of a place (`host` or `host:port`, as messages have it). The port of https is left out.
    private static func members(ofPlace place: String, cause: ProblemCause? = nil) -> JSONObject {
        let url = WebURL(ofPlace: place)
        return ["host": url?.host ?? place, "port": url?.port, "cause": cause?.rawValue]
    }
}

extension BrokerError {
    /// The seconds after which it is looked again whether another host is still at a session; nil if none is.
    fileprivate var hostWait: Int? {
        guard case .vaultUnreachable(.session(.heldElsewhere(_, let wait)), _) = self else { return nil }
        return max(1, Int((wait / .seconds(1)).rounded(.up)))
    }
}

extension Problem {
    /// What to look at after an error response (RFC 6749 sections 4.1.2.1 and 5.2), and for programs the first setting of
    /// the account to check. `incorrect_client_credentials` and `redirect_uri_mismatch` are GitHub's.
    fileprivate static func remedy(for code: String) -> (place: String, setting: String?)? {
        switch code {
        case "invalid_client", "incorrect_client_credentials":
            ("client_id, client_authentication and the client's secret of the account", "client_id")
        case "unauthorized_client":
            ("what the provider allows this client to do, and at client_id of the account", nil)
        case "redirect_uri_mismatch":
            ("redirect_uri of the account: the provider must know the same one", "redirect_uri")
        case "invalid_scope": ("scopes of the account", "scopes")
        default: nil
        }
    }
}

extension RegistrationTerms {
    /// For programs; the members are called as the settings are.
    var json: JSONObject {
        [
            "issuer": issuer, "scopes": scopes, "redirect_uri": redirectURI, "client_authentication": authentication,
            "response_mode": responseMode, "ca_file": certificateFile,
        ]
    }
}

extension ConflictCause {
    fileprivate var members: JSONObject {
        switch self {
        case .signInPending(let account):
            ["account": account.rawValue, "cause": ProblemCause.signInPending.rawValue]
        case .migrationPending(let account):
            ["account": account.rawValue, "cause": ProblemCause.migrationPending.rawValue]
        case .vault(let obstacle): obstacle.members
        case .openToOthers(let path): VaultObstacle.openToOthers(path: path).members
        }
    }
}

extension VaultObstacle {
    var members: JSONObject {
        switch self {
        case .keySourceDiffers(let recorded, let configured):
            [
                "cause": ProblemCause.keySourceDiffers.rawValue, "key_source": recorded.rawValue,
                "other_key_source": configured.rawValue,
            ]
        case .openToOthers(let path): ["cause": ProblemCause.openToOthers.rawValue, "path": path]
        case .notJoined: ["cause": ProblemCause.notJoined.rawValue]
        case .noHostsKey: ["cause": ProblemCause.noHostsKey.rawValue]
        }
    }
}

extension WebURL {
    init?(ofPlace place: String) {
        // An IPv6 address without a port has no brackets.
        let isAddress = !place.hasPrefix("[") && place.count { $0 == ":" } > 1
        try? self.init(parsing: "https://" + (isAddress ? "[\(place)]" : place))
    }
}

extension Component {
    static let problem = Component(
        "Problem", .required("title"), .required("status", as: .integer),
        .required("code", as: .words(ErrorCode.table.keys.map(\.rawValue).sorted())),
        .optional(
            "detail", "user_message", "provider_code", "provider_message", "account", "host", "setting", "file",
            "credential", "cause", "path", "field", "method", "key_source", "other_key_source", "exposed_socket"),
        .required("recovery", as: .words(["retry", "sign_in", "link", "fix_configuration", "none"])),
        .optional("params", as: .anyObject, text: "What the next sign-in needs: `params` of its request"),
        .optional("retry_after", "port", "line", as: .integer), .optional("errors", as: .array(.anyObject)),
        .optional("reasons", as: .array(.string)), .optional("registration", as: .anyObject),
        .optional("notified", as: .boolean))
}

/// Problems as an exposed socket reports them. Its clients are in a container or at the far end of a connection, where
/// nothing of the daemon can be changed: details of the daemon's machine are left out.
extension Problem {
    init(elsewhere error: BrokerError, language: Language) {
        self.init(error, language: language)
        switch error {
        case .sessionRanOut(let name, _):
            detail = "The session of \(name) runs out, and the provider issued no refresh token to renew it."
        case .sessionExpired(let name, _, _, _):
            detail = "The provider ended the session of \(name)."
            extensions["provider_message"] = nil
        case .refreshRefused(let name, _, _):
            detail = "The provider rejects the refreshes of the session of \(name)."
            extensions["provider_message"] = nil
        case .vaultLocked: detail = "The vault is locked: no session is served."
        case .vaultUnreachable: detail = "The vault cannot be used at the moment. Nothing was lost: try again."
        case .vaultFailed, .misconfigured, .unusableSetting:
            detail = "The daemon cannot serve this account as it is configured."
        case .tooManyAttempts:
            detail = "This socket caused more requests to the provider than are allowed within a minute."
        default: break
        }
        switch error {
        case .clientForgotten, .vaultLocked, .vaultFailed, .vaultUnreachable, .misconfigured, .unusableSetting:
            // Names of files and settings are for the machine that runs the daemon.
            for member in Problem.ofMachine { extensions[member] = nil }
        default: break
        }
    }

    private static let ofMachine = [
        "setting", "file", "line", "credential", "cause", "path", "key_source", "other_key_source", "registration",
    ]

    /// Names the socket, so that the client knows that commands have no effect on its machine.
    func told(by exposedSocket: ExposedSocket) -> Problem {
        var problem = self
        problem.extensions["exposed_socket"] = .string(exposedSocket.name)
        return problem
    }
}

/// What may be wrong with the hosts that share a vault.
extension Problem {
    init(_ failure: HostFailure, language: Language) {
        switch failure {
        case .vault, .database, .noHost, .notJoined, .cryptography:
            self.init(BrokerError(VaultError(failure)), language: language)
        case .invitationUsed:
            self.init(.stateConflict, "This invitation was accepted before, with another key. A new one is needed.")
        case .tooManyHosts:
            self.init(.stateConflict, "The owner has as many hosts as the database allows. Remove one first.")
        case .nameTaken:
            self.init(.stateConflict, "Another host has this name. Choose another one.", extensions: ["field": "name"])
        case .passwordNeeded: self.init(invalid: "password", "that of the invitation is needed.")
        case .passwordRefused:
            self.init(
                .invalidCredentials,
                "The vault's database does not let this host's role in with this password. It was mistyped, the "
                    + "invitation is over, or another host has accepted it.")
        case .noSuchHost: self.init(.notFound, "No host that has joined is called so, or has shown this code.")
        case .failedCode:
            self.init(
                .stateConflict,
                "This code has failed before, and is not accepted again. Remove the host that has shown it, and invite it "
                    + "anew.")
        case .ownHost: self.init(.stateConflict, "This is the host that was asked. Remove it from another host.")
        }
    }

    /// A provider's error response to a service. A service has no sign-in, so the text says what to correct.
    init(refused name: AccountName, code: String, message: String?) {
        let words = message.map { " (\($0))" } ?? ""
        let advice = Problem.advice(on: code).map { " \($0)" } ?? ""
        self.init(
            .providerError, "The provider rejected the token request of \(name): “\(code)”\(words).\(advice)",
            recovery: .fixConfiguration,
            extensions: ["provider_code": code, "provider_message": message])
    }

    /// Advice on the errors of RFC 6749 section 5.2 and RFC 8693 section 2.2.2 that a service may get.
    private static func advice(on code: String) -> String? {
        switch code {
        case "invalid_client": "Check client_id, client_authentication and the client's secret or key."
        case "unauthorized_client", "unsupported_grant_type":
            "The client may not use this grant: allow it at the provider, or choose another grant."
        case "invalid_grant":
            "Check assertion_file, or with self_issued_jwt client_key_file, assertion_subject, assertion_audience and this "
                + "machine's clock; and which issuers of assertions the provider trusts."
        case "invalid_scope": "Check scopes."
        case "invalid_target": "Check audience and resource."
        default: nil
        }
    }

    /// An error response that the provider's own table has translated already.
    init(_ problem: ProviderProblem) {
        let words = problem.providerMessage.map { ": \($0)" } ?? Problem.reasons(problem.weaknesses)
        self.init(
            ErrorCode(rawValue: problem.code),
            problem.providerCode.map { "The project responded with “\($0)”\(words)" }
                ?? problem.reason.map { "\($0)." },
            recovery: Recovery(rawValue: problem.recovery), retryAfter: problem.retryAfter,
            extensions: [
                "provider_code": problem.providerCode, "provider_message": problem.providerMessage,
                "reasons": problem.weaknesses.isEmpty ? nil : problem.weaknesses,
            ])
    }

    /// Ringback's own text about a password, if the project's is missing or may repeat a part of the password.
    private static func reasons(_ weaknesses: [String]) -> String {
        guard !weaknesses.isEmpty else { return "." }
        let sentences = weaknesses.map { weakness in
            switch weakness {
            case "length": "it is too short"
            case "characters": "it lacks some of the required characters"
            case "pwned": "it is known from a leak"
            default: weakness
            }
        }
        return ": \(sentences.joined(separator: ", "))."
    }
}

extension UserMessage {
    init?(_ error: BrokerError, endedSignIn: Bool) {
        switch error {
        case .problem(let problem):
            guard let message = problem.message.flatMap(UserMessage.init(rawValue:)) else { return nil }
            self = message
        // If a proxy failed, or a server on this machine cannot be reached, the network is not the cause.
        case .provider(.unreachable(let host, _, let proxy)):
            self = proxy != nil || WebURL(ofPlace: host)?.isLoopback == true ? .serviceDown : .network
        case .provider(.unavailable), .provider(.failing), .provider(.unproved), .vaultUnreachable: self = .serviceDown
        case .provider(.rateLimited), .tooManyAttempts: self = .tooManyAttempts
        case .resendTooEarly: self = .messageSentAlready
        case .upstream(_, let error):
            guard let message = UserMessage(error, endedSignIn: endedSignIn) else { return nil }
            self = message
        case .invalidCallback: self = .signInFailed
        case .flowExpired: self = .notFinished
        case .provider(.invalidResponse) where endedSignIn, .provider(.refused) where endedSignIn: self = .signInFailed
        case .sessionExpired(_, word: "user_banned", _, _): self = .blocked
        case .sessionExpired: self = .sessionEnded
        case .clientForgotten where endedSignIn: self = .signInFailed
        case .refreshRefused: self = .sessionNotRenewed
        case .invalid(field: "email", _): self = .invalidEmail
        case .invalid(field: "phone", _): self = .invalidPhone
        default: return nil
        }
    }
}
