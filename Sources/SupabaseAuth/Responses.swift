public import HTTPMessages
internal import Secrets
public import StrictJSON

/// The answer to ``SupabaseProject/authorization(_:)``: the provider's page, or why there is none.
public struct AuthorizationAnswer: Sendable, Equatable {
    /// Where to send the person. The server's own redirect; nothing is asked of it but that a browser can open it.
    public let url: String

    /// Reads the answer: a redirect is the success.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard (300..<400).contains(response.status) else {
            if (200..<300).contains(response.status) {
                throw .invalid(reason: "no redirect to a provider (HTTP \(response.status))")
            }
            throw ErrorReading.error(response)
        }
        url = try WebAddress.checked(response.fields["Location"])
    }
}

/// The answer to ``SupabaseProject/singleSignOn(_:redirectTo:challenge:captcha:)`` and
/// ``SupabaseProject/identityLink(_:bearer:)``.
public struct URLResponse: Sendable, Equatable {
    /// Where to send the person.
    public let url: String

    /// Reads the answer.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        url = try WebAddress.checked(try ErrorReading.object(response)["url"]?.string)
    }
}

/// Addresses that a server sends a person to.
private enum WebAddress {
    /// An address for a browser, and for nothing else that a desktop may open.
    static func checked(_ text: String?) throws(SupabaseError) -> String {
        guard let text, let url = try? WebURL(parsing: text), url.isSecure else {
            throw .invalid(reason: "no address of a provider's page")
        }
        return text
    }
}

/// The answer to a request that sends a message: nothing, mostly.
public struct MessageResponse: Sendable, Equatable {
    /// The messenger's identifier of the message.
    public let messageID: String?

    /// Reads the answer.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        try ErrorReading.success(response)
        let object = try? ErrorReading.object(response)
        messageID = PlainText.code(object?["message_id"]?.string)
    }
}

/// The answer to a sign-up.
public enum SignUpResponse: Sendable {
    /// Signed in at once. The refresh token is in ``SessionResponse/refreshToken``.
    case session(SessionResponse)
    /// A message was sent; the user is there once it is confirmed.
    case confirmationAwaited(SupabaseUser)
    /// The address has a user already. The server does not say so: it answers with a stranger, and sends nothing.
    case addressTaken

    /// Reads the answer.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let answer = try SessionResponse(reading: response)
        guard answer.refreshToken == nil, case .user(let user) = try answer.outcome() else {
            self = .session(answer)
            return
        }
        self = user.isStandIn ? .addressTaken : .confirmationAwaited(user)
    }
}

/// The answer to ``SupabaseProject/signOut(_:bearer:)``.
public enum SignOutResponse: Sendable, Equatable {
    /// Done now.
    case ended
    /// The server did not know the session any more, or not the token. For `others` and `global` nothing is proved
    /// then: a token that is not accepted ends no other session.
    case unknownSession

    /// Reads the answer: 401, 403 and 404 of the Auth server's own are no errors, since what was to end has ended or
    /// will with its access token.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        do {
            try ErrorReading.success(response)
            self = .ended
        } catch {
            guard case .refused(let refusal) = error, [401, 403, 404].contains(refusal.status) else { throw error }
            self = .unknownSession
        }
    }
}

extension SupabaseUser {
    /// Reads the answer to ``SupabaseProject/user(bearer:)`` and ``SupabaseProject/update(_:link:bearer:)``.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let user = SupabaseUser(reading: try ErrorReading.object(response)) else {
            throw .invalid(reason: "a user without id")
        }
        self = user
    }
}

/// The answer to a request that removes something: an identity, a factor.
public struct RemovalResponse: Sendable, Equatable {
    /// Reads the answer; whatever a success says, it is one.
    public init(reading response: HTTPResponse) throws(SupabaseError) { try ErrorReading.success(response) }
}

/// The answer to ``SupabaseProject/settings()``.
public struct SupabaseSettings: Sendable, Equatable {
    /// The ways in that are open, by name: `google`, `email`, `anonymous_users` ... Providers of newer kinds and those
    /// of the project's own are not listed.
    public let open: Set<String>
    public let signUpIsClosed: Bool
    public let confirmsEmailItself: Bool
    public let confirmsPhoneItself: Bool

    /// Reads the answer.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let object = try ErrorReading.object(response)
        guard let external = object["external"]?.object else { throw .invalid(reason: "settings without providers") }
        open = Set(external.members.filter { $0.value == true }.map(\.name))
        signUpIsClosed = object["disable_signup"]?.bool ?? false
        confirmsEmailItself = object["mailer_autoconfirm"]?.bool ?? false
        confirmsPhoneItself = object["phone_autoconfirm"]?.bool ?? false
    }
}

/// The answer to ``SupabaseProject/health()``.
public struct SupabaseHealth: Sendable, Equatable {
    /// The Auth server's version; nil where it does not say.
    public let version: String?

    /// Reads the answer: a page with 200 is no Auth server.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        version = PlainText.code(try ErrorReading.object(response)["version"]?.string)
    }
}

/// The answer to ``SupabaseProject/row(in:where:is:bearer:)``.
public enum ProfileResponse: Sendable, Equatable {
    case row(JSONObject)
    /// The table has no row that the user may see.
    case missing

    /// Reads the answer. Two rows are an error: the key is none.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let rows = try ErrorReading.json(response).array else { throw .invalid(reason: "no list of rows") }
        guard rows.count < 2 else { throw .misconfigured(reason: "The profile's key names more than one row.") }
        guard let first = rows.first else {
            self = .missing
            return
        }
        guard let row = first.object else { throw .invalid(reason: "a row that is not an object") }
        self = .row(row)
    }

    /// False if the row says that the account is not active; true without such a word.
    public var isActive: Bool {
        if case .row(let row) = self { row["is_active"]?.bool ?? true } else { true }
    }
}

/// The answer to ``SupabaseProject/call(_:arguments:bearer:)``.
public struct FunctionResponse: Sendable, Equatable {
    /// What the function returned; null for nothing.
    public let value: JSON

    /// Reads the answer.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        try ErrorReading.success(response)
        value = response.body.isEmpty ? .null : try ErrorReading.json(response)
    }
}
