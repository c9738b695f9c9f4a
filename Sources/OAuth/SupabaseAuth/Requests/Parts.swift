internal import Secrets
internal import StrictJSON

/// Members that several requests share.
extension JSONObject {
    /// Creates an object with the members in this order; those with nil are left out.
    init(_ members: KeyValuePairs<String, JSON?>) {
        self.init(members.compactMap { name, value in value.map { Member(name, $0) } })
    }

    /// `email` or `phone`.
    mutating func set(_ contact: Contact) {
        switch contact {
        case .email(let address): self["email"] = .string(address.text)
        case .phone(let number): self["phone"] = .string(number.digits)
        }
    }

    /// The CAPTCHA token, if the project has CAPTCHA protection.
    mutating func set(captcha: Secret?) {
        guard let captcha else { return }
        self["gotrue_meta_security"] = ["captcha_token": .secret(captcha)]
    }

    /// The PKCE challenge (RFC 7636), always S256, which the server writes in lower case.
    mutating func set(challenge: String?) {
        guard let challenge else { return }
        self["code_challenge"] = .string(challenge)
        self["code_challenge_method"] = .string(SupabaseProject.challengeMethod)
    }
}

extension JSON {
    /// A secret as JSON text; the body as a whole is a secret.
    static func secret(_ secret: Secret) -> JSON { .string(secret.revealed()) }

    /// A text, or nil.
    static func optional(_ text: String?) -> JSON? { text.map { .string($0) } }
}

extension SupabaseProject {
    static let challengeMethod = "s256"

    /// `redirect_to` as a query parameter, where the server reads it.
    static func query(redirectTo: String?) -> [(String, String)] {
        redirectTo.map { [("redirect_to", $0)] } ?? []
    }
}
