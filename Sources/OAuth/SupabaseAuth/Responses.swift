public import OAuth
public import RingbackBase

/// The URL of a provider's page, from the server's redirect to it.
public struct ProviderRedirect: SupabaseResponse, Equatable {
    /// The URL to open in the browser. Only its scheme is checked.
    public let url: String

    /// Reads the response; a redirect means success. Throws ``SupabaseError`` for other responses.
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

/// The URL of a provider's page, from a body.
public struct URLResponse: SupabaseResponse, Equatable {
    /// The URL to open in the browser.
    public let url: String

    /// Reads the response. Throws `.invalid` without a valid URL.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        url = try WebAddress.checked(try ErrorReading.object(response)["url"]?.string)
    }
}

/// URLs to which the server sends the user.
private enum WebAddress {
    /// A web URL. Other schemes are not allowed, because the desktop would open other programs for them.
    static func checked(_ text: String?) throws(SupabaseError) -> String {
        guard let text, let url = try? WebURL(parsing: text), url.isSecure else {
            throw .invalid(reason: "no address of a provider's page")
        }
        return text
    }
}

/// A success whose content is not used.
public struct EmptyResponse: SupabaseResponse, Equatable {
    /// Throws ``SupabaseError`` for an error response.
    public init(reading response: HTTPResponse) throws(SupabaseError) { try ErrorReading.success(response) }
}

/// An object of the server that is listed or returned alone.
public protocol SupabaseObject: SupabaseResponse {
    /// Nil if what identifies it is missing.
    init?(reading document: JSONObject)
    /// What is missing, for an error: `a passkey without id`, `no list of passkeys`.
    static var absences: (object: String, list: String) { get }
}

extension SupabaseObject {
    /// Reads an object that is returned alone. Throws ``SupabaseError``.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let object = Self(reading: try ErrorReading.object(response)) else {
            throw .invalid(reason: Self.absences.object)
        }
        self = object
    }
}

/// A list of objects.
public struct SupabaseList<Entry: SupabaseObject>: SupabaseResponse {
    public let entries: [Entry]

    /// Reads the response. Entries that cannot be identified are skipped, because they cannot be used. Throws
    /// ``SupabaseError``.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let entries = try ErrorReading.json(response).array else { throw .invalid(reason: Entry.absences.list) }
        self.entries = entries.compactMap { $0.object.flatMap { Entry(reading: $0) } }
    }
}

/// The response to a sign-up.
public enum SignUpResponse: SupabaseResponse {
    /// The user is signed in. The refresh token is in ``SessionResponse/refreshToken``.
    case session(SessionResponse)
    /// A message was sent; the user must confirm the address with it.
    case confirmationAwaited(SupabaseUser)
    /// The address belongs to an existing user. The server hides this: it returns an invented user and sends no
    /// message.
    case addressTaken

    /// Reads the response. Throws ``SupabaseError`` for an error response.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let session = try SessionResponse(reading: response)
        guard session.refreshToken == nil, case .user(let user) = try session.outcome() else {
            self = .session(session)
            return
        }
        self = user.isStandIn ? .addressTaken : .confirmationAwaited(user)
    }
}

/// The response to a sign-out.
public enum SignOutResponse: SupabaseResponse, Equatable {
    /// The sessions were ended.
    case ended
    /// The server does not know the session or no longer accepts the token. For `others` and `global` the other
    /// sessions may still exist, because a request with an invalid token ends no session.
    case unknownSession

    /// Reads the response. The statuses 401, 403 and 404 of the Auth server are not errors: they mean that the session
    /// has ended, or ends when its access token expires.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        do {
            try ErrorReading.success(response)
            self = .ended
        } catch {
            guard case .refused(let errorResponse) = error, [401, 403, 404].contains(errorResponse.status) else {
                throw error
            }
            self = .unknownSession
        }
    }
}

extension JSONWebKeySet: SupabaseResponse {
    /// The public keys of access tokens. Throws `.invalid` for any other response.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        do throws(OAuthError) {
            self = try JSONWebKeySet(parsing: response)
        } catch {
            throw .invalid(reason: "no keys")
        }
    }
}

/// The sign-in methods of a project.
public struct SupabaseSettings: SupabaseResponse, Equatable {
    /// The names of the enabled sign-in methods: `google`, `email`, `anonymous_users` ... The server's list does not
    /// contain newer and custom providers.
    public let open: Set<String>
    public let signUpIsClosed: Bool

    /// Reads the response. Throws `.invalid` without providers.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let object = try ErrorReading.object(response)
        guard let external = object["external"]?.object else { throw .invalid(reason: "settings without providers") }
        open = Set(external.members.filter { $0.value == true }.map(\.name))
        signUpIsClosed = object["disable_signup"]?.bool ?? false
    }
}

/// The app's own row about a user.
public enum ProfileResponse: SupabaseResponse, Equatable {
    case row(JSONObject)
    /// There is no row, or the user is not allowed to see it.
    case missing

    /// Reads the response. Throws ``SupabaseError``. Two rows are an error, because the key must be unique.
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

    /// False if the row has `is_active` false; otherwise true.
    public var isActive: Bool {
        if case .row(let row) = self { row["is_active"]?.bool ?? true } else { true }
    }
}

/// The result of a function of the database.
public struct FunctionResponse: SupabaseResponse, Equatable {
    /// The function's result; null if it has none.
    public let value: JSON

    /// Reads the response. Throws ``SupabaseError`` for an error response.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        try ErrorReading.success(response)
        value = response.body.isEmpty ? .null : try ErrorReading.json(response)
    }
}

/// Checks of text from outside before it is stored, sent or shown.
enum PlainText {
    /// The maximum length of a token in bytes.
    static let maxToken = 65_536
    /// The maximum length of an error code in bytes.
    static let maxCode = 64
    /// The maximum length of a message in characters.
    static let maxMessage = 300

    /// True for 1 byte to 64 KiB of printable ASCII without spaces, which is safe in a header field and a form.
    static func isToken(_ text: String) -> Bool {
        (1...maxToken).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// The text as a token; nil if it is not one.
    static func token(_ value: JSON?) -> Secret? {
        value?.string.flatMap { isToken($0) ? Secret($0) : nil }
    }

    /// The server's error code: letters, digits, `_`, `-`, `.`, `:`, and spaces, which the ID token grant uses. Nil for
    /// other text.
    static func code(_ text: String?) -> String? {
        guard let text, (1...maxCode).contains(text.utf8.count) else { return nil }
        return text.utf8.allSatisfy { isNameByte($0) || $0 == UInt8(ascii: " ") } ? text : nil
    }

    /// True for a letter, a digit, `_`, `-`, `.` and `:`.
    static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: ":"):
            true
        default: false
        }
    }

    /// A message in any language, since a project's hooks and triggers may write their own. Control characters, line
    /// breaks and characters that change the text direction become question marks. Nil if it is empty.
    static func message(_ text: String?) -> String? {
        guard let text, !text.isEmpty else { return nil }
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(maxMessage) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
                kept.append("?")
            default: kept.append(scalar)
            }
        }
        return String(kept)
    }

    /// The text if it is a UUID, which is safe in a path. Throws for `field`.
    static func uuid(_ text: String, field: String = "id") throws(FieldError) -> String {
        guard isUUID(text) else { throw FieldError(field: field, reason: "not a UUID") }
        return text
    }

    /// True for a UUID in its usual form, in either letter case. It is safe in a path.
    static func isUUID(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 36 else { return false }
        return bytes.indices.allSatisfy { index in
            switch index {
            case 8, 13, 18, 23: bytes[index] == UInt8(ascii: "-")
            default: (0x30...0x39).contains(bytes[index]) || (0x61...0x66).contains(bytes[index] | 0x20)
            }
        }
    }
}

/// A JWT that is parsed but not verified.
struct CompactToken {
    let header: JSONObject
    let payload: JSONObject

    /// Nil unless the token has three base64url parts, the first two of which are JSON objects.
    init?(_ token: Secret) {
        guard token.count <= PlainText.maxToken else { return nil }
        let parts = token.revealedBytes().split(
            separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let header = CompactToken.object(parts[0]), let payload = CompactToken.object(parts[1])
        else { return nil }
        self.header = header
        self.payload = payload
    }

    private static func object(_ part: ArraySlice<UInt8>) -> JSONObject? {
        Base64URL.decode(part).flatMap { try? JSON(parsing: $0).object }
    }
}
