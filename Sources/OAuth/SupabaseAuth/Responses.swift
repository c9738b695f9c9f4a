public import OAuth
public import RingbackBase

/// The URL of a provider's page, from the server's redirect to it.
public struct ProviderRedirect: SupabaseResponse, Equatable {
    /// To open in the browser. Only its scheme is checked.
    public let url: String

    /// A redirect means success.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard (300..<400).contains(response.status) else {
            guard (200..<300).contains(response.status) else { throw ErrorReading.error(response) }
            throw .invalid(reason: "no redirect to a provider (HTTP \(response.status))")
        }
        url = try WebAddress.checked(response.fields["Location"])
    }
}

/// The URL of a provider's page, from a body.
public struct URLResponse: SupabaseResponse, Equatable {
    /// To open in the browser.
    public let url: String

    /// Throws `.invalid` without a valid URL.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        url = try WebAddress.checked(try ErrorReading.object(response)["url"]?.string)
    }
}

private enum WebAddress {
    /// Schemes other than those of the web are not allowed: the desktop would open other programs for them.
    static func checked(_ text: String?) throws(SupabaseError) -> String {
        guard let text, let url = try? WebURL(parsing: text), url.isSecure else {
            throw .invalid(reason: "no address of a provider's page")
        }
        return text
    }
}

/// A success whose content is not used.
public struct EmptyResponse: SupabaseResponse, Equatable {
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
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let object = Self(reading: try ErrorReading.object(response)) else {
            throw .invalid(reason: Self.absences.object)
        }
        self = object
    }
}

public struct SupabaseList<Entry: SupabaseObject>: SupabaseResponse {
    public let entries: [Entry]

    /// Entries that cannot be identified are skipped, because they cannot be used.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let entries = try ErrorReading.json(response).array else { throw .invalid(reason: Entry.absences.list) }
        self.entries = entries.compactMap { $0.object.flatMap { Entry(reading: $0) } }
    }
}

public enum SignUpResponse: SupabaseResponse {
    /// The user is signed in. The refresh token is in ``SessionResponse/refreshToken``.
    case session(SessionResponse)
    /// A message was sent; the user must confirm the address with it.
    case confirmationAwaited(SupabaseUser)
    /// The address belongs to an existing user. The server hides this: it returns an invented user and sends nothing.
    case addressTaken

    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let session = try SessionResponse(reading: response)
        guard session.refreshToken == nil, case .user(let user) = try session.outcome() else {
            self = .session(session)
            return
        }
        self = user.isStandIn ? .addressTaken : .confirmationAwaited(user)
    }
}

public enum SignOutResponse: SupabaseResponse, Equatable {
    /// The sessions were ended.
    case ended
    /// The server does not know the session or no longer accepts the token. For `others` and `global` the other
    /// sessions may still exist, because a request with an invalid token ends no session.
    case unknownSession

    /// The statuses 401, 403 and 404 are not errors: the session has ended, or ends when its access token expires.
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
    /// Throws `.invalid` for any other response.
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
    /// Enabled sign-in methods: `google`, `email`, `anonymous_users` ... Without newer and custom providers.
    public let open: Set<String>
    public let signUpIsClosed: Bool

    /// Throws `.invalid` without providers.
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

    /// Two rows are an error, because the key must be unique.
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
    /// Null if it has none.
    public let value: JSON

    public init(reading response: HTTPResponse) throws(SupabaseError) {
        try ErrorReading.success(response)
        value = response.body.isEmpty ? .null : try ErrorReading.json(response)
    }
}

/// The result of an Edge Function.
public struct EdgeFunctionResponse: SupabaseResponse, Equatable {
    /// A string for a text, null if the response is empty.
    public let value: JSON

    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard (200..<300).contains(response.status), !ErrorReading.isOfRelay(response) else {
            throw ErrorReading.functionError(response)
        }
        try ErrorReading.success(response)
        guard !response.body.isEmpty else {
            value = .null
            return
        }
        let type = ErrorReading.mediaType(of: response)
        if type == "application/json" || type?.hasSuffix("+json") == true {
            guard let json = try? JSON(parsing: UnicodeText.utf8(response.body.revealedBytes())) else {
                throw ErrorReading.functionError(response, "its result is not valid JSON")
            }
            value = json
        } else if type?.hasPrefix("text/") == true {
            value = .string(String(decoding: UnicodeText.utf8(response.body.revealedBytes()), as: UTF8.self))
        } else {
            throw ErrorReading.functionError(
                response, "its result is neither JSON nor text (Content-Type: \(type ?? "none"))")
        }
    }
}

/// Checks of text from outside before it is stored, sent or shown.
enum PlainText {
    /// In bytes.
    static let maxToken = 65_536
    static let maxCode = 64
    /// In characters.
    static let maxMessage = 300

    /// True for 1 byte to 64 KiB of printable ASCII without spaces, which is safe in a header field and a form.
    static func isToken(_ text: String) -> Bool {
        (1...maxToken).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    static func token(_ value: JSON?) -> Secret? {
        value?.string.flatMap { isToken($0) ? Secret($0) : nil }
    }

    /// Letters, digits, `_`, `-`, `.`, `:`, and spaces, which the ID token grant uses. Nil for other text.
    static func code(_ text: String?) -> String? {
        guard let text, (1...maxCode).contains(text.utf8.count) else { return nil }
        return text.utf8.allSatisfy { isNameByte($0) || $0 == UInt8(ascii: " ") } ? text : nil
    }

    static func isNameByte(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || "_-.:".utf8.contains(byte)
    }

    /// In any language, since a project's hooks and triggers may write their own. Control characters, line breaks and
    /// characters that change the text direction become question marks. Nil if it is empty.
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

    /// Safe in a path. Throws for `field`.
    static func uuid(_ text: String, field: String = "id") throws(FieldError) -> String {
        guard isUUID(text) else { throw FieldError(field: field, reason: "not a UUID") }
        return text
    }

    /// In either letter case.
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
