internal import Cryptography
public import RingbackBase

/// A form of the sign-in page, as it was sent.
public struct PageForm: Sendable {
    /// The raw values are those of the form's hidden field.
    public enum Action: String, Sendable, CaseIterable {
        case password
        case signUp = "sign_up"
        case forgotten
        /// A code and a link are sent to an address.
        case mail
        /// A code is sent to a phone.
        case sms
        case code
        case resend
        /// A code of the second factor.
        case factor
        /// A message is sent to the phone that is the second factor.
        case challenge
        case newPassword = "new_password"
        /// A step that is not needed for the sign-in is left out.
        case skip
        /// The user who has just signed in takes the account over.
        case switchUser = "switch_user"

        /// Beside those of every form.
        var fields: Set<String> {
            switch self {
            case .password, .signUp: ["email", "phone", "password"]
            case .forgotten, .mail: ["email"]
            case .sms: ["phone"]
            case .code: ["code"]
            case .factor: ["factor", "code"]
            case .challenge: ["factor"]
            case .newPassword: ["password"]
            case .resend, .skip, .switchUser: []
            }
        }
    }

    /// None of our pages contains such a form.
    public enum Failure: Error, Equatable, Sendable {
        case malformed
        case unknownAction
        /// A field is there twice, belongs to another form, or is too long.
        case field(String)
    }

    public let action: Action
    /// Only a copy of the form has the same.
    public let digest: [UInt8]
    public let token: Secret
    /// Without spaces around it; nil if nothing was typed.
    public let email: String?
    public let phone: String?
    public let factor: String?
    public let password: Secret?
    public let code: Secret?
    public var hasInput: Bool { email != nil || phone != nil || password != nil || code != nil }

    /// `body` is that of a POST request. Throws ``Failure``.
    public init(parsing body: [UInt8]) throws(Failure) {
        let pairs: [FormEncoding.Pair]
        do throws(FormEncoding.Failure) {
            pairs = try FormEncoding.parse(body, maxPairs: PageForm.mostFields)
        } catch {
            throw .malformed
        }
        guard let action = pairs.first(where: { $0.name == "action" }).flatMap({ Action(rawValue: $0.value) }) else {
            throw .unknownAction
        }
        let allowed = action.fields.union(["action", "token"])
        var values: [String: String] = [:]
        for pair in pairs {
            guard allowed.contains(pair.name), pair.value.utf8.count <= PageForm.longest,
                values.updateValue(pair.value, forKey: pair.name) == nil
            else { throw .field(allowed.contains(pair.name) ? pair.name : "unknown") }
        }
        self.action = action
        digest = Digest.sha256(body)
        token = Secret(values["token"] ?? "")
        email = PageForm.typed(values["email"])
        phone = PageForm.typed(values["phone"])
        factor = PageForm.typed(values["factor"])
        code = PageForm.typed(values["code"]).map { Secret($0) }
        // Spaces are part of a password.
        password = values["password"].flatMap { $0.isEmpty ? nil : Secret($0) }
    }

    private static let mostFields = 8
    /// In bytes. No address, number, password or code is as long.
    private static let longest = 1_024

    private static func typed(_ text: String?) -> String? {
        guard let text else { return nil }
        let start = text.drop { $0.isWhitespace }
        guard let end = start.lastIndex(where: { !$0.isWhitespace }) else { return nil }
        return String(start[...end])
    }
}

/// The secrets by which one sign-in's page knows its browser and its own forms: whether a request is from the browser
/// that opened the page's start address, and, for a form, from the page itself.
public struct PageGuard: Sendable {
    public enum Verdict: Sendable {
        case page
        case form(PageForm)
        /// Another browser, or the same one without the cookie.
        case stranger
        /// With this status.
        case refused(Int)
    }

    private let cookie = RandomToken.base64URL(bits: 256)
    /// Stands in every form.
    public let token = RandomToken.base64URL(bits: 256)

    public init() {}

    /// `Set-Cookie` for the browser that opened the start address. `Lax`: the browser comes from another site, that of
    /// the start address. It lasts as long as the browser runs; the page ends before.
    public var cookieField: String { "\(PageGuard.name)=\(cookie.revealed()); Path=/; HttpOnly; SameSite=Lax" }

    /// `origin` is the page's own, without a slash at its end.
    public func judge(_ request: HTTPRequest, at origin: String) -> Verdict {
        // A program on another port of `localhost` may have set a cookie of the same name: any that fits will do.
        guard cookies(of: request.fields).contains(where: { Secret($0) == cookie }) else {
            return request.method == "GET" ? .stranger : .refused(403)
        }
        guard request.method == "POST" else { return .page }
        let origins = request.fields[all: "Origin"]
        // A browser sends its origin with every form; old browsers lack the second field.
        guard origins == [origin], request.fields[all: "Sec-Fetch-Site"].allSatisfy({ $0 == "same-origin" }) else {
            return .refused(403)
        }
        let types = request.fields[all: "Content-Type"]
        guard types.count == 1,
            types[0].prefix(while: { $0 != ";" && $0 != " " }).lowercased() == "application/x-www-form-urlencoded"
        else { return .refused(415) }
        guard let form = try? PageForm(parsing: request.body?.revealedBytes() ?? []) else { return .refused(400) }
        guard form.token == token else { return .refused(403) }
        return .form(form)
    }

    private func cookies(of fields: HTTPFields) -> [String] {
        fields[all: "Cookie"].flatMap { $0.split(separator: ";") }.compactMap { pair in
            let pair = pair.drop { $0 == " " }
            guard pair.hasPrefix("\(PageGuard.name)=") else { return nil }
            return String(pair.dropFirst(PageGuard.name.count + 1))
        }
    }

    private static let name = "ringback"
}
