public import HTTPMessages
public import Secrets
internal import StrictJSON

/// Requests that redeem what was sent to a person: the code as it is typed, or the hash of a mail's link. Neither needs
/// a PKCE verifier, and no redirect has a part in it.
extension SupabaseProject {
    /// What a code or a hash was sent for.
    public enum Purpose: String, Sendable {
        case signUp = "signup"
        case invite
        case recovery
        case magicLink = "magiclink"
        case emailChange = "email_change"
        /// A sign-up's or a magic link's code.
        case email
        case sms
        case phoneChange = "phone_change"

        fileprivate var isForPhone: Bool { self == .sms || self == .phoneChange }
    }

    /// Redeems a typed code. `contact` is where it was sent: for a change, the new address or number. Throws for
    /// `type` if the two do not fit. The answer is a ``SessionResponse``.
    public func verify(_ code: OneTimeCode, for purpose: Purpose, of contact: Contact) throws(FieldError) -> HTTPRequest
    {
        switch contact {
        case .email where !purpose.isForPhone, .phone where purpose.isForPhone: break
        default:
            throw FieldError(field: "type", reason: "\(purpose.rawValue) does not belong to this kind of address")
        }
        var body = JSONObject(["type": .string(purpose.rawValue), "token": .secret(code.digits)])
        body.set(contact)
        return request("POST", "/verify", body: body)
    }

    /// Redeems the hash of a mail's link, one of PKCE (`pkce_…`) included. Throws for `type` and `token_hash`.
    public func verify(tokenHash: Secret, for purpose: Purpose) throws(FieldError) -> HTTPRequest {
        guard !purpose.isForPhone else {
            throw FieldError(field: "type", reason: "\(purpose.rawValue) has no token_hash")
        }
        guard tokenHash.count <= 512, PlainText.isToken(tokenHash.revealed()) else {
            throw FieldError(field: "token_hash", reason: "not the hash of a link")
        }
        return request(
            "POST", "/verify",
            body: JSONObject(["type": .string(purpose.rawValue), "token_hash": .secret(tokenHash)]))
    }
}
