internal import Cryptography
internal import HTTPMessages
public import Secrets

/// A form of the sign-in page, as it was sent.
public struct PageForm: Sendable {
    /// What the form asks for. The raw values are those of its hidden field.
    public enum Action: String, Sendable, CaseIterable {
        case password
        case signUp = "sign_up"
        case forgotten
        /// Send a code and a link to an address.
        case mail
        /// Send a code to a phone.
        case sms
        case code
        case resend
        /// A code of the second factor.
        case factor
        /// Send a message to the phone that is the second factor.
        case challenge
        case newPassword = "new_password"
        /// Leave a step out that is not needed for the sign-in.
        case skip
        /// Let the user who has just signed in take the account over.
        case switchUser = "switch_user"

        /// The fields that its form has, beside those of every form.
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

    /// Why a form is refused: no page of ours has such a one.
    public enum Failure: Error, Equatable, Sendable {
        case malformed
        case unknownAction
        /// A field is there twice, belongs to another form, or is too long.
        case field(String)
    }

    public let action: Action
    /// A digest of the form. Only a copy of the form has the same.
    public let digest: [UInt8]
    public let token: Secret
    /// Without spaces around it; nil if nothing was typed.
    public let email: String?
    public let phone: String?
    public let factor: String?
    public let password: Secret?
    public let code: Secret?

    /// True if the user has typed something.
    public var hasInput: Bool { email != nil || phone != nil || password != nil || code != nil }

    /// Reads the body of a POST request. Throws ``Failure``.
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
