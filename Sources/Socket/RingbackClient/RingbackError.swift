import Glibc
package import RingbackAPI
package import RingbackBase

/// Why a call failed. Its description is for the user: ``userMessage`` where there is one, otherwise ``detail``.
///
/// The library does not use Foundation. An app that shows `localizedDescription` declares once:
///
/// ```swift
/// extension RingbackError: @retroactive LocalizedError {
///     public var errorDescription: String? { description }
/// }
/// ```
public struct RingbackError: Error, Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    /// What went wrong: a `code` of the socket API, or one of this library's own. Open, since the daemon may be newer
    /// than the app: compare with the constants, and fall back on ``RingbackError/recovery``.
    public struct Kind: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }

        /// No daemon responds at the socket, or there is no path for one.
        public static let noDaemon: Kind = "no_daemon"
        /// The socket belongs to another user. Nothing was sent to it.
        public static let foreignServer: Kind = "foreign_server"
        /// The daemon's response is not what the socket API defines.
        public static let badResponse: Kind = "bad_response"
        /// The daemon did not respond within this library's own time limit.
        public static let timedOut: Kind = "timed_out"
        /// The waiting task was cancelled, or the sign-in was.
        public static let cancelled: Kind = "cancelled"
        /// The system refused something this library needs, such as a descriptor or a thread.
        public static let systemError: Kind = "system_error"
        public static let signInRequired: Kind = "sign_in_required"
        public static let sessionExpired: Kind = "session_expired"
        /// The provider refuses to renew the session and does not say why: it is kept, and a sign-in replaces it.
        public static let refreshRefused: Kind = "refresh_refused"
        /// A passphrase is wrong, or credentials of another kind than those of ``wrongPassword`` and ``wrongCode``.
        public static let invalidCredentials: Kind = "invalid_credentials"
        /// The address or number and the password do not belong together (`invalid_credentials` of the socket API).
        public static let wrongPassword: Kind = "wrong_password"
        /// A code, or the link of a mail, is wrong or no longer valid (`invalid_credentials` of the socket API).
        public static let wrongCode: Kind = "wrong_code"
        /// A value that was typed or passed is not valid: `detail` says which and why.
        public static let validationFailed: Kind = "validation_failed"
        public static let weakPassword: Kind = "weak_password"
        public static let emailAlreadyInUse: Kind = "email_already_in_use"
        public static let methodUnsupported: Kind = "method_unsupported"
        public static let accessDenied: Kind = "access_denied"
        public static let policyDenied: Kind = "policy_denied"
        public static let notFound: Kind = "not_found"
        public static let accountNotFound: Kind = "account_not_found"
        public static let flowNotFound: Kind = "flow_not_found"
        public static let flowExpired: Kind = "flow_expired"
        public static let flowCancelled: Kind = "flow_cancelled"
        /// The account's state does not allow this: another sign-in is pending, or the session has another subject.
        public static let stateConflict: Kind = "state_conflict"
        /// The vault is locked: the same call succeeds once the user has unlocked it.
        public static let vaultLocked: Kind = "vault_locked"
        /// The vault is shared with other hosts, and its database cannot be used now, or another host is at the session.
        /// The session is kept: the same call succeeds later.
        public static let vaultUnreachable: Kind = "vault_unreachable"
        /// The provider asks to wait: see ``RingbackError/retryAfter``.
        public static let rateLimited: Kind = "rate_limited"
        /// The provider cannot be reached now; the session is kept.
        public static let providerUnreachable: Kind = "provider_unreachable"
        public static let invalidProviderResponse: Kind = "invalid_provider_response"
        public static let providerError: Kind = "provider_error"
        public static let invalidConfiguration: Kind = "invalid_configuration"
        public static let shuttingDown: Kind = "shutting_down"
        /// The time limit that the call named has passed.
        public static let timeout: Kind = "timeout"
    }

    /// What may help. Open, like ``Kind``.
    public struct Recovery: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }

        /// The same call may succeed later, after ``RingbackError/retryAfter`` if that is given.
        public static let retry: Recovery = "retry"
        public static let signIn: Recovery = "sign_in"
        /// The identity should be linked from the account that it would have to belong to.
        public static let link: Recovery = "link"
        public static let fixConfiguration: Recovery = "fix_configuration"
        public static let none: Recovery = "none"
    }

    public var kind: Kind
    /// What failed, in English, for logs and developers. It may have text of the provider: sanitize it for a terminal.
    public var detail: String
    /// A sentence for the user, in their language where the daemon has it; nil where there is nothing to show.
    public var userMessage: String?
    public var recovery: Recovery
    /// Seconds to wait before the next attempt, where that is known.
    public var retryAfter: Int?
    /// What the user can run next. The command line prints it after `detail`. Nil if nothing is known to help.
    package var advice: String?
    package var problem: Problem?

    package init(_ kind: Kind, _ detail: String, recovery: Recovery = .none) {
        self.kind = kind
        self.detail = detail
        self.recovery = recovery
    }

    package init(_ problem: Problem) {
        kind = RingbackError.kind(of: problem)
        detail = problem.detail ?? problem.title
        userMessage = problem.userMessage
        recovery = Recovery(rawValue: problem.recovery)
        retryAfter = problem.retryAfter
        self.problem = problem
    }

    package init?(reading document: JSON?) {
        guard let document, document.object != nil else { return nil }
        self.init(Problem(reading: document, status: 0))
    }

    /// The provider's own code, such as `otp_expired` of Supabase Auth or `invalid_grant`; nil if it sent none.
    public var providerCode: String? { problem?.extensions["provider_code"]?.string }
    public var description: String { userMessage ?? detail }
    public var debugDescription: String { "\(kind.rawValue): \(detail)" }

    /// The socket API has one code for wrong credentials. The provider's code tells which credentials they were.
    private static func kind(of problem: Problem) -> Kind {
        guard problem.code == .invalidCredentials else { return Kind(rawValue: problem.code.rawValue) }
        return switch problem.extensions["provider_code"]?.string {
        case "invalid_credentials", "current_password_invalid": .wrongPassword
        case "otp_expired", "reauthentication_not_valid", "mfa_verification_failed": .wrongCode
        default: .invalidCredentials
        }
    }

    static func system(_ call: String, _ number: Int32) -> RingbackError {
        RingbackError(.systemError, "\(call): \(unsafe String(cString: strerror(number)))", recovery: .retry)
    }
}

extension JSON {
    func text(_ member: String, of resource: String) throws(RingbackError) -> String {
        guard let text = self[member]?.string else { throw .missing(member, in: resource) }
        return text
    }

    func list<Element>(
        _ member: String, _ read: (JSON) throws(RingbackError) -> Element
    ) throws(RingbackError) -> [Element] {
        guard let list = self[member]?.array else { throw .missing(member, in: "response") }
        var elements: [Element] = []
        for item in list { elements.append(try read(item)) }
        return elements
    }
}

extension RingbackError {
    static func missing(_ member: String, in resource: String) -> RingbackError {
        RingbackError(.badResponse, "The daemon's \(resource) has no “\(member)”.")
    }
}
