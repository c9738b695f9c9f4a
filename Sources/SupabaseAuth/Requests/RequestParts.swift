internal import Secrets
internal import StrictJSON

/// Members that several requests have, written the same everywhere.
extension JSONObject {
    /// The members in the order they are written; those without a value are left out.
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

    /// The answer of a puzzle that the project may ask of people.
    mutating func set(captcha: Secret?) {
        guard let captcha else { return }
        self["gotrue_meta_security"] = ["captcha_token": .secret(captcha)]
    }

    /// The challenge of RFC 7636, always by S256, which the server and its clients write in small letters.
    mutating func set(challenge: String?) {
        guard let challenge else { return }
        self["code_challenge"] = .string(challenge)
        self["code_challenge_method"] = .string(SupabaseProject.challengeMethod)
    }
}

extension JSON {
    /// A secret's text, for a body that is secret as a whole.
    static func secret(_ secret: Secret) -> JSON { .string(secret.revealed()) }

    /// A text that may be missing.
    static func optional(_ text: String?) -> JSON? { text.map { .string($0) } }
}

extension SupabaseProject {
    static let challengeMethod = "s256"

    /// `redirect_to` is read from the query, not from the body.
    static func query(redirectTo: String?) -> [(String, String)] {
        redirectTo.map { [("redirect_to", $0)] } ?? []
    }
}
